"""What a file is, by its first bytes rather than by its name: names lie, and nobody checks them."""

from __future__ import annotations

import bz2
import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any

from lakehouse.ingest.files.discover import SourceFile, unreadable
from lakehouse.ingest.files.errors import BinaryFileError, DamagedFileError, EmptyFileError
from lakehouse.ingest.files.model import Compression, Kind

_PACKED: dict[bytes, Compression] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2"}
_PACKED_NAMES: dict[str, Compression] = {
    ".gz": "gzip",
    ".gzip": "gzip",
    ".zst": "zstd",
    ".zstd": "zstd",
    ".bz2": "bzip2",
}
_KIND_NAMES: dict[str, Kind] = {
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt", ".psv"), "csv"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
    **dict.fromkeys((".parquet", ".parq", ".pq"), "parquet"),
}
#: What people hand over by mistake, and what to do about it.
_OTHERS = {
    b"PK\x03\x04": ("a zip archive or an Excel workbook", "Unpack it, or save the sheet as CSV."),
    b"\xd0\xcf\x11\xe0": ("an old Excel workbook", "Save the sheet as CSV."),
    b"%PDF": ("a PDF", "Tables in a PDF must be taken out with another tool first."),
    b"\x89PNG": ("a picture", "Give a CSV, JSON lines or Parquet file."),
    b"\x7fELF": ("a program", "Give a CSV, JSON lines or Parquet file."),
    b"SQLite format 3": ("an SQLite database", "Export its tables as CSV first."),
    b"Obj\x01": ("an Avro file", "Convert it to Parquet first."),
    b"ORC": ("an ORC file", "Convert it to Parquet first."),
    b"\xfd7zXZ": ("packed with xz", "Unpack it first: xz -d"),
    b"7z\xbc\xaf": ("a 7z archive", "Unpack it first."),
}
#: What the unpackers say of a file that is cut off or broken.
_BROKEN = (EOFError, zlib.error, gzip.BadGzipFile, OSError, ValueError)


def look(file: SourceFile) -> tuple[Kind, Compression, list[str]]:
    """Kind and compression of a file, with a note where its name says something else."""
    start = head(file, "", 16)
    if not start:
        raise EmptyFileError(f"{file.name} is empty.", "There is nothing to read in it.", file=file.name)
    packed: Compression = next((kind for magic, kind in _PACKED.items() if start.startswith(magic)), "")
    inner = head(file, packed, 4096)
    if not inner:
        raise EmptyFileError(f"{file.name} is empty once it is unpacked.", "There is nothing in it.", file=file.name)
    _refuse_others(file.name, inner)
    told_kind, told_packed = _told(file.name)
    kind = _kind(inner, told_kind)
    notes = []
    if packed != told_packed:
        notes.append(f"{file.name}: read as {packed or 'plain, not ' + told_packed}, whatever its name says.")
    if told_kind and kind != told_kind:
        notes.append(f"{file.name}: its content is {kind.upper()}, so it is read as that.")
    return kind, packed, notes


def head(file: SourceFile, packed: Compression, size: int) -> bytes:
    """The first bytes of a file, unpacked."""
    with opened(file, packed) as stream:
        return bytes(stream.read(size))


@contextmanager
def opened(file: SourceFile, packed: Compression) -> Iterator[IO[bytes]]:
    """The unpacked bytes of a file as a stream; what goes wrong while reading it becomes an error of ours."""
    with ExitStack() as stack:
        try:
            raw = stack.enter_context(open(file.path, "rb"))
        except OSError as exc:
            raise unreadable(file.name, exc) from exc
        try:
            yield _unpacked(raw, packed)
        except _BROKEN as exc:
            if not packed:
                raise
            raise _damaged(file, packed, exc) from exc


def _damaged(file: SourceFile, packed: str, exc: BaseException) -> DamagedFileError:
    cut_off = isinstance(exc, EOFError) or "end-of-stream" in str(exc) or "ended before" in str(exc)
    what = "is cut off" if cut_off else f"is damaged ({str(exc) or type(exc).__name__})"
    return DamagedFileError(
        f"{file.name} {what}: its {packed} data cannot be unpacked.",
        "Fetch it again; nothing of it was read.",
        file=file.name,
    )


def _unpacked(raw: IO[bytes], packed: Compression) -> Any:
    if packed == "gzip":
        return gzip.GzipFile(fileobj=raw)
    if packed == "bzip2":
        return bz2.BZ2File(raw)
    if packed == "zstd":
        import pyarrow

        # A file of several frames, as `zstd` makes of joined files, is unpacked to its end.
        return pyarrow.CompressedInputStream(pyarrow.PythonFile(raw, mode="r"), "zstd")
    return raw


def _told(name: str) -> tuple[Kind | None, Compression]:
    """What the name says: kind and compression."""
    stem, last = os.path.splitext(name.lower())
    packed = _PACKED_NAMES.get(last, "")
    if packed:
        last = os.path.splitext(stem)[1]
    return _KIND_NAMES.get(last), packed


def _kind(inner: bytes, told: Kind | None) -> Kind:
    if inner.startswith(b"PAR1"):
        return "parquet"
    text = inner.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{") and (told == "json" or b'"' in text[:200]):
        return "json"
    # A Parquet file without its mark is damaged; reading it as CSV would only confuse.
    return "json" if told == "json" else "csv"


def _refuse_others(name: str, inner: bytes) -> None:
    for magic, (what, hint) in _OTHERS.items():
        # ORC is three letters that may well start a header.
        if inner.startswith(magic) and not (magic == b"ORC" and b"\x00" not in inner):
            raise BinaryFileError(f"{name} is {what}.", hint, file=name)
