"""The body of an upload: files of this machine, read piece by piece while they are sent, or addresses that the service reads."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lakehouse.client.messages import Content, as_json
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import NotSupportedError, SourceError
from lakehouse.core.requests import SERVED_READ_OPTIONS, IngestRequest, ReadOptions

_CHUNK = 1 << 20


@dataclass(frozen=True)
class UploadFile:
    """A file to send, under a name."""

    path: Path
    name: str
    size: int


def multipart(fields: Mapping[str, str], files: Sequence[UploadFile]) -> Content:
    """Fields and files as multipart/form-data."""
    boundary = uuid.uuid4().hex
    heads = [
        (_head(boundary, f'name="{_quoted(name)}"') + value.encode() + b"\r\n", None) for name, value in fields.items()
    ]
    parts: list[tuple[bytes, UploadFile | None]] = [
        *heads,
        *((_head(boundary, f'name="file"; filename="{_quoted(file.name)}"'), file) for file in files),
    ]
    end = f"--{boundary}--\r\n".encode()
    length = sum(len(head) + (file.size + 2 if file else 0) for head, file in parts) + len(end)

    def read() -> Iterator[bytes]:
        for head, file in parts:
            yield head
            if file is not None:
                yield from _pieces(file)
                yield b"\r\n"
        yield end

    return Content(f"multipart/form-data; boundary={boundary}", length, read)


def file_content(path: Path, content_type: str) -> Content:
    """One file as the whole body."""
    file = UploadFile(path, path.name, path.stat().st_size)
    return Content(content_type, file.size, lambda: _pieces(file))


def _pieces(file: UploadFile) -> Iterable[bytes]:
    """The content; a file that changes while it is sent is an error, because its length was announced."""
    left = file.size
    with file.path.open("rb") as stream:
        while left and (piece := stream.read(min(_CHUNK, left))):
            left -= len(piece)
            yield piece
        if left or os.fstat(stream.fileno()).st_size != file.size:
            raise SourceError(f"{file.name} changed while it was uploaded.", "Try again when it is complete.")


def _head(boundary: str, disposition: str) -> bytes:
    return f"--{boundary}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n".encode()


def _quoted(text: str) -> str:
    return "".join(letter if letter.isprintable() and letter not in '"\\' else "_" for letter in text)


def ingest_content(request: IngestRequest, branch: str) -> Content:
    """The files and options of an ingest."""
    remote = [source for source in request.sources if "://" in source and not source.startswith("file://")]
    local = [source for source in request.sources if source not in remote]
    if remote and local:
        raise NotSupportedError(
            "An ingest over a service has files of this machine or addresses that the service reads, not both.",
            "Ingest them one after the other.",
        )
    options = _options(request, branch)
    if remote:
        return as_json({**options, "key": list(request.key), "sources": remote})
    from lakehouse.ingest.files.discover import discover

    files = [UploadFile(Path(file.path), Path(file.name).name, file.size) for file in discover(local)]
    return multipart({name: _text(value) for name, value in options.items()} | _key(request), files)


def _options(request: IngestRequest, branch: str) -> dict[str, Any]:
    """What differs from the default."""
    given: dict[str, Any] = {
        "into": str(request.table),
        "mode": request.mode,
        "format": request.format,
        "contract": request.contract,
        "order_by": request.order_by,
        "partition_by": request.partition_by,
        "sort_by": request.sort_by,
        "force": request.force,
        "dry_run": request.dry_run,
        "branch": branch,
    }
    given_read, default = {name: getattr(request.read, name) for name in SERVED_READ_OPTIONS}, ReadOptions()
    read = {name: value for name, value in given_read.items() if value != getattr(default, name)}
    if request.read != ReadOptions(**read):
        raise NotSupportedError(
            f"A service reads files with the options {', '.join(SERVED_READ_OPTIONS[:-1])} and {SERVED_READ_OPTIONS[-1]} only.",
            "Leave out the others, or ingest with open_lake() where the lake is.",
        )
    return {name: value for name, value in given.items() if value not in ("", False)} | read


def _key(request: IngestRequest) -> dict[str, str]:
    return {"key": ",".join(request.key)} if request.key else {}


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
