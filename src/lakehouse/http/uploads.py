"""Uploaded files: streamed to disk piece by piece, checked for what they would become when they are read."""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import AsyncIterator
from dataclasses import field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BadRequestError, RequestTooLargeError

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartParser

_MAX_FILES, _MAX_FIELDS, _MAX_FIELD = 100, 100, 100_000
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_CHUNK = 1 << 20
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
_HEADER = re.compile(r';\s*(name|filename)="((?:[^"\\]|\\.)*)"', re.IGNORECASE)


@dataclass
class Upload:
    """The files and fields of a request, in a folder of their own."""

    folder: Path
    files: list[Path] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)

    def new_file(self, name: str) -> Path:
        """The path of a new file, under a harmless form of the name that the client gave."""
        if len(self.files) >= _MAX_FILES:
            raise RequestTooLargeError(f"A request has at most {_MAX_FILES} files.", "Send the others separately.")
        safe = _UNSAFE.sub("_", name.replace("\\", "/").rsplit("/", 1)[-1]).lstrip(".")[-100:] or "upload"
        path = self.folder / (safe if not (self.folder / safe).exists() else f"{len(self.files)}_{safe}")
        self.files.append(path)
        return path

    def remove(self) -> None:
        """Delete the files."""
        shutil.rmtree(self.folder, ignore_errors=True)


def new_upload(parent: Path) -> Upload:
    """An upload without files yet."""
    folder = parent / uuid.uuid4().hex
    folder.mkdir(parents=True, mode=0o700)
    return Upload(folder)


async def save_body(request: Request, upload: Upload, name: str) -> Path:
    """Write the whole body to a file."""
    path = upload.new_file(name)
    with path.open("wb") as out:
        async for part in _parts(request):
            await run_in_threadpool(out.write, part)
    return path


async def save_multipart(request: Request, upload: Upload) -> None:
    """Write the files of a multipart body to disk and collect its fields."""
    from python_multipart.exceptions import MultipartParseError
    from python_multipart.multipart import parse_options_header

    _, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary", b"")
    if not boundary:
        raise BadRequestError("The multipart body has no boundary.", "Let the HTTP client set the content type.")
    reader = _MultipartReader(upload)
    parser = reader.parser(boundary)
    try:
        async for part in _parts(request):
            await run_in_threadpool(parser.write, part)
        parser.finalize()
    except MultipartParseError as exc:
        raise BadRequestError(f"The multipart body is damaged: {exc}.", "Send it again.") from exc
    finally:
        reader.close()
    if not reader.is_complete:
        raise BadRequestError("The multipart body ends early.", "Send it again.")


async def _parts(request: Request) -> AsyncIterator[bytes]:
    async for part in request.stream():
        if part:
            yield part


class _MultipartReader:
    """Receives the pieces of a multipart body: files go to disk, fields to memory."""

    def __init__(self, upload: Upload) -> None:
        self._upload = upload
        self._out: IO[bytes] | None = None
        self._field, self._name, self._header, self._value = "", b"", b"", b""
        self.is_complete = False

    def parser(self, boundary: bytes) -> MultipartParser:
        from python_multipart.multipart import MultipartParser

        callbacks: Any = {
            "on_part_begin": self._begin,
            "on_header_field": self._header_name,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_part_data": self._data,
            "on_part_end": self.close,
            "on_end": self._end,
        }
        return MultipartParser(boundary, callbacks)

    def _begin(self) -> None:
        self._field, self._header, self._value = "", b"", b""
        if len(self._upload.fields) > _MAX_FIELDS:
            raise RequestTooLargeError(f"A request has at most {_MAX_FIELDS} fields.", "See /docs.")

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        name, value = self._header.lower(), self._value.decode("utf-8", "replace")
        self._header, self._value = b"", b""
        if name != b"content-disposition":
            return
        headers = {key.lower(): text for key, text in _HEADER.findall(value)}
        self._field = headers.get("name", "")[:200]
        if "filename" in headers:
            self._out = self._upload.new_file(headers["filename"]).open("wb")
        else:
            self._upload.fields[self._field] = ""

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._out is not None:
            self._out.write(data[start:end])
            return
        text = self._upload.fields.get(self._field, "") + data[start:end].decode("utf-8", "replace")
        if len(text) > _MAX_FIELD:
            raise RequestTooLargeError(f"The field {self._field!r} is too long.", "Send data as a file.")
        self._upload.fields[self._field] = text

    def close(self) -> None:
        """End the current file."""
        if self._out is not None:
            self._out.close()
            self._out = None

    def _end(self) -> None:
        self.is_complete = True


def check_size(path: Path, limit: int) -> None:
    """Refuse a file that would become larger than the limit when it is read; its own words do not count."""
    with path.open("rb") as file:
        start = file.read(4)
    kind = next((kind for magic, kind in _COMPRESSED.items() if start.startswith(magic)), "")
    if kind:
        _check_compressed(path, kind, limit)
    elif start == b"PAR1":
        _check_parquet(path, limit)


def _check_compressed(path: Path, kind: str, limit: int) -> None:
    import pyarrow

    size = 0
    try:
        with pyarrow.input_stream(str(path), compression=kind) as stream:
            while part := stream.read(_CHUNK):
                size += len(part)
                if size > limit:
                    raise _bomb(path, limit)
    except (OSError, pyarrow.ArrowException) as exc:
        raise BadRequestError(f"{path.name} is damaged: it cannot be decompressed.", "Send it again.") from exc


def _check_parquet(path: Path, limit: int) -> None:
    import pyarrow
    from pyarrow import parquet

    try:
        metadata = parquet.read_metadata(path)
    except (OSError, pyarrow.ArrowException) as exc:
        raise BadRequestError(f"{path.name} is not a complete Parquet file.", "Send it again.") from exc
    if sum(metadata.row_group(at).total_byte_size for at in range(metadata.num_row_groups)) > limit:
        raise _bomb(path, limit)


def _bomb(path: Path, limit: int) -> RequestTooLargeError:
    return RequestTooLargeError(
        f"{path.name} is larger than {limit:,} bytes when it is decompressed.", "Split it, or raise serve.max_upload."
    )
