"""Check single files: that they exist, have their length, match their checksum, and can be read."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from typing import Any, BinaryIO

from lakehouse.copies.findings import CORRUPT, MISSING, TRUNCATED
from lakehouse.copies.lake_parts import EXTERNAL, FileNames
from lakehouse.core.dataclass import dataclass
from lakehouse.core.files import Files
from lakehouse.storage.tree import FileStat, Tree

#: A checksum file of Hadoop: this magic number, the number of bytes per checksum, then the CRC-32s.
_CRC_MAGIC = b"crc\x00"
_CRC_HEADER = 8
_AVRO = b"Obj\x01"
_ORC = b"ORC"

Problem = tuple[str, str]
"""The kind of a finding and its detail."""


@dataclass(frozen=True)
class Warehouse:
    """The files of a warehouse, as one listing has them."""

    tree: Tree
    files: Files
    names: FileNames
    stats: Mapping[str, FileStat]

    def size(self, uri: str) -> int | None:
        """Return the size of a file; None if it does not exist."""
        name = self.names.of(uri)
        if name in self.stats:
            return self.stats[name].size
        tree, place = self._place(name, uri)  # newer than the listing, or elsewhere
        return tree.size(place)

    def open(self, uri: str) -> BinaryIO:
        """Open a file for reading."""
        tree, place = self._place(self.names.of(uri), uri)
        return tree.open(place)

    def _place(self, name: str, uri: str) -> tuple[Tree, str]:
        inside = name in self.stats or not name.startswith(f"{EXTERNAL}/")
        return (self.tree, name) if inside else self.tree.at(uri)

    def check(self, uri: str, size: int) -> Problem | None:
        """Check that a file exists with the length that the metadata states (-1: it states none)."""
        actual = self.size(uri)
        if actual is None:
            return MISSING, "there is no such file"
        if size >= 0 and actual != size:
            return TRUNCATED, f"it has {actual} bytes instead of {size}"
        return None

    def check_sum(self, uri: str) -> Problem | None:
        """Compare a file with the checksum that Hadoop stored beside it, if there is one."""
        folder, _, last = self.names.of(uri).rpartition("/")
        name = f"{folder}/.{last}.crc"
        if name not in self.stats:
            return None
        try:
            sums = self.tree.read(name)
            with self.open(uri) as content:
                place = _first_wrong(content, sums)
        except FileNotFoundError:
            return None  # removed since the listing; whether it may be is another check
        return None if place is None else (CORRUPT, f"the bytes from {place} on do not match their checksum")


def _first_wrong(content: BinaryIO, sums: bytes) -> int | None:
    """Return the position of the first bytes whose CRC-32 differs; None if there are none."""
    if sums[:4] != _CRC_MAGIC or len(sums) < _CRC_HEADER:
        return None  # written by something else
    (width,) = struct.unpack(">i", sums[4:_CRC_HEADER])
    at = 0
    for start in range(_CRC_HEADER, len(sums) - 3, 4):
        chunk = content.read(width)
        if zlib.crc32(chunk) != int.from_bytes(sums[start : start + 4], "big"):
            return at
        at += len(chunk)
    return at if content.read(1) else None


def check_data(warehouse: Warehouse, uri: str, file_format: str, rows: int, deep: bool) -> Problem | None:
    """Check the footer of a data or delete file, and with `deep` all of its content."""
    if deep and (problem := warehouse.check_sum(uri)):
        return problem
    try:
        with warehouse.open(uri) as content:
            if file_format.upper() == "PARQUET":
                return _check_parquet(content, rows, deep)
            start = {"AVRO": _AVRO, "ORC": _ORC, "PUFFIN": b"PFA1"}.get(file_format.upper(), b"")
            if content.read(len(start)) != start:
                return CORRUPT, f"it does not begin as a file of the format {file_format}"
    except FileNotFoundError:
        return MISSING, "there is no such file"
    return None


def _check_parquet(content: BinaryIO, rows: int, deep: bool) -> Problem | None:
    import pyarrow
    from pyarrow import parquet

    try:
        # Some writers store a checksum for each page.
        file: Any = parquet.ParquetFile(content, page_checksum_verification=deep)
        if rows >= 0 and file.metadata.num_rows != rows:
            return CORRUPT, f"it has {file.metadata.num_rows} rows instead of {rows}"
        if deep:
            readable = sum(batch.num_rows for batch in file.iter_batches())
            if readable != file.metadata.num_rows:
                return CORRUPT, f"{readable} of {file.metadata.num_rows} rows can be read"
    except (pyarrow.ArrowException, OSError, ValueError) as exc:
        return CORRUPT, f"it cannot be read as Parquet: {_first_line(exc)}"
    return None


def _first_line(exc: BaseException) -> str:
    return (str(exc).strip().splitlines() or [type(exc).__name__])[0].rstrip(".")
