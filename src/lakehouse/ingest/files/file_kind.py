"""Detect the kind and compression of a file from its first bytes; its name may be wrong."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import re
import shlex
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any

from lakehouse.core.errors import BinaryFileError, DamagedFileError, EmptyFileError
from lakehouse.ingest.files.arrow_file import MAGIC as ARROW
from lakehouse.ingest.files.dialect import after_lines
from lakehouse.ingest.files.discover import SourceFile, unreadable_file
from lakehouse.ingest.files.model import Compression, FileKind, JsonLayout

#: How much of a file decides its kind.
_HEAD_BYTES = 4096
_FIRST_KEY = re.compile(r'\{\s*"(?:[^"\\]|\\.)*"\s*:')
_MAGIC: dict[bytes, Compression] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2"}
_COMPRESSION_SUFFIXES: dict[str, Compression] = {
    ".gz": "gzip",
    ".gzip": "gzip",
    ".zst": "zstd",
    ".zstd": "zstd",
    ".bz2": "bzip2",
}
_KIND_SUFFIXES: dict[str, FileKind] = {
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt", ".psv"), "csv"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
    **dict.fromkeys((".parquet", ".parq", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "arrow"),
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), "workbook"),
}
#: Unsupported files by their magic number: what they are, and what to do instead.
_UNSUPPORTED = {
    b"PK\x03\x04": ("a zip archive", "Extract it first."),
    b"%PDF": ("a PDF", "Extract its tables with another tool first."),
    b"\x89PNG": ("a picture", "Give a CSV, JSON lines or Parquet file."),
    b"\x7fELF": ("a program", "Give a CSV, JSON lines or Parquet file."),
    b"SQLite format 3": ("an SQLite database", "Export its tables as CSV first."),
    b"Obj\x01": ("an Avro file", "Convert it to Parquet first."),
    b"ORC": ("an ORC file", "Convert it to Parquet first."),
    b"\xfd7zXZ": ("compressed with xz", "Decompress it first: xz -d"),
    b"7z\xbc\xaf": ("a 7z archive", "Extract it first."),
}
#: How many files of an archive an error names.
_MAX_NAMES = 5
#: What decompression raises for a truncated or damaged file.
_DECOMPRESSION_ERRORS = (EOFError, zlib.error, gzip.BadGzipFile, OSError, ValueError)


def detect_kind(file: SourceFile, skipped: int = 0) -> tuple[FileKind, Compression, list[str]]:
    """Kind and compression of a file below its skipped lines, and notes where its name suggests others."""
    start = read_head(file, "", 16)
    if not start:
        raise EmptyFileError(f"{file.name} is empty.", "Choose a file with data.", file=file.name)
    compression: Compression = next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), "")
    content = read_head(file, compression, _HEAD_BYTES)
    if not content:
        raise EmptyFileError(f"{file.name} is empty after decompression.", "Choose a file with data.", file=file.name)
    named_kind, named_compression = _kind_of_name(file.name)
    if not compression and _is_workbook(file, content):
        kind: FileKind = "workbook"
    else:
        if not compression and _is_archive(file, content):
            raise _archive_error(file)
        _refuse_unsupported(file.name, content)
        kind = _kind(content, named_kind, skipped)
    notes = []
    if compression != named_compression:
        notes.append(
            f"{file.name}: its content is {compression or 'not compressed'}, although its name says {named_compression or 'uncompressed'}."
        )
    if named_kind and kind != named_kind:
        notes.append(f"{file.name}: its content is {kind.upper()}, although its name says {named_kind.upper()}.")
    return kind, compression, notes


def read_head(file: SourceFile, compression: Compression, size: int) -> bytes:
    """The first bytes of a file, decompressed."""
    with open_decompressed(file, compression) as stream:
        return bytes(stream.read(size))


@contextmanager
def open_decompressed(file: SourceFile, compression: Compression) -> Iterator[IO[bytes]]:
    """Open a file as a stream of decompressed bytes; errors on reading become a SourceError."""
    with ExitStack() as stack:
        try:
            raw = stack.enter_context(open(file.path, "rb"))
        except OSError as exc:
            raise unreadable_file(file.name, exc) from exc
        try:
            yield _decompress(raw, compression)
        except _DECOMPRESSION_ERRORS as exc:
            if not compression:
                raise
            raise _damaged_file(file, compression, exc) from exc


def _damaged_file(file: SourceFile, compression: str, exc: BaseException) -> DamagedFileError:
    truncated = isinstance(exc, EOFError) or "end-of-stream" in str(exc) or "ended before" in str(exc)
    problem = "is truncated" if truncated else f"is damaged ({str(exc) or type(exc).__name__})"
    return DamagedFileError(
        f"{file.name} {problem}: its {compression} data cannot be decompressed.",
        "Download or copy it again; nothing was written.",
        file=file.name,
    )


def _decompress(raw: IO[bytes], compression: Compression) -> Any:
    if compression == "gzip":
        return gzip.GzipFile(fileobj=raw)
    if compression == "bzip2":
        return bz2.BZ2File(raw)
    if compression == "zstd":
        import pyarrow

        # This reads all frames of a file; concatenated files have several.
        return pyarrow.CompressedInputStream(pyarrow.PythonFile(raw, mode="r"), "zstd")
    return raw


def _kind_of_name(name: str) -> tuple[FileKind | None, Compression]:
    """Kind and compression by the name of the file."""
    stem, last = os.path.splitext(name.lower())
    compression = _COMPRESSION_SUFFIXES.get(last, "")
    if compression:
        last = os.path.splitext(stem)[1]
    return _KIND_SUFFIXES.get(last), compression


def _kind(content: bytes, named: FileKind | None, skipped: int) -> FileKind:
    if content.startswith(b"PAR1"):
        return "parquet"
    if content.startswith(ARROW):
        return "arrow"
    text = after_lines(_text(content), skipped).lstrip()
    if json_layout(text, len(content) < _HEAD_BYTES) is not None:
        return "json"
    # Of a file whose name says JSON, the first line may be damaged.
    later = any(line.lstrip().startswith(("{", "[")) for line in text.splitlines())
    return "json" if named == "json" and (later or not text) else "csv"


def json_layout(text: str, whole: bool) -> JsonLayout | None:
    """How the objects of a JSON file are laid out; None if its first characters are no JSON: a CSV header may start with `{`.

    Args:
        whole: whether the characters are the whole file.
    """
    text = text.lstrip()
    if text.startswith("["):
        return "array" if re.match(r"\[\s*(\{\s*[\"}]|\]\s*$)", text) else None
    if not text.startswith("{"):
        return None
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        # The object may be longer than what was read: then its first key must do.
        if whole or not _FIRST_KEY.match(text):
            return None
        return "values" if re.match(r"\{\s*\n", text) else "lines"
    if text[end:].partition("\n")[0].strip() not in ("", ","):
        return None
    return "values" if "\n" in text[:end] else "lines"


def _text(content: bytes) -> str:
    """The first characters of a text file in whatever encoding: those that make it JSON are ASCII in all of them."""
    plain = re.sub(rb"^(\xef\xbb\xbf|\xff\xfe|\xfe\xff)", b"", content).replace(b"\x00", b"")
    return plain.decode("utf-8", errors="replace")


def _is_workbook(file: SourceFile, content: bytes) -> bool:
    """Whether a file is an Excel workbook, also of the old format, or an OpenDocument spreadsheet."""
    if content.startswith(b"\xd0\xcf\x11\xe0"):
        return True
    return _is_archive(file, content) and any(
        name.startswith("xl/workbook.") or name == "content.xml" for name in _names_in_archive(file)
    )


def _is_archive(file: SourceFile, content: bytes) -> bool:
    return content.startswith(b"PK\x03\x04") and zipfile.is_zipfile(file.path)


def _names_in_archive(file: SourceFile) -> list[str]:
    with zipfile.ZipFile(file.path) as archive:
        # Some programs write the paths of Windows.
        return [name.replace("\\", "/") for name in archive.namelist()]


def _archive_error(file: SourceFile) -> BinaryFileError:
    """The error for a zip archive, which names the files in it that could be read."""
    readable = [name for name in _names_in_archive(file) if _kind_of_name(name)[0] and name.isprintable()]
    shown = ", ".join([*readable[:_MAX_NAMES], *(["…"] if len(readable) > _MAX_NAMES else [])])
    archive = os.path.basename(file.name)
    folder = os.path.splitext(archive)[0]
    return BinaryFileError(
        f"{file.name} is a zip archive{f' of {shown}' if readable else ''}.",
        f"Extract it, and ingest the files: unzip {shlex.quote(archive)} -d {shlex.quote(folder)}",
        file=file.name,
    )


def _refuse_unsupported(name: str, content: bytes) -> None:
    for magic, (description, hint) in _UNSUPPORTED.items():
        # A CSV header may start with the letters ORC; a binary file has NUL bytes.
        if content.startswith(magic) and not (magic == b"ORC" and b"\x00" not in content):
            raise BinaryFileError(f"{name} is {description}.", hint, file=name)
