"""Files as the body of a request: read piece by piece while they are sent, so that their size does not matter."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakehouse.client.messages import Content
from lakehouse.core.errors import SourceError

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
