"""Rejected rows with line, reason and text, written to a Parquet file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.core.errors import BadRowError
from lakehouse.ingest.files.dialect import csv_rows
from lakehouse.ingest.files.model import Dialect, FilePlan, OnBad, Reject
from lakehouse.ingest.files.records import Record, records

if TYPE_CHECKING:
    import duckdb

_BATCH = 10_000
_CHUNK = 4 << 20
_COUNTS = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")


class RejectsWriter:
    """Writes rejected rows in batches; with `on_bad="fail"` the first one raises BadRowError."""

    def __init__(self, path: Path, on_bad: OnBad) -> None:
        self.path, self.on_bad, self.count = path, on_bad, 0
        self._batch: list[Reject] = []
        self._writer: Any = None

    def add(self, rejects: Iterable[Reject]) -> None:
        for reject in rejects:
            if self.on_bad == "fail":
                raise BadRowError(
                    f"{reject.file}, line {reject.line}: {reject.reason}.",
                    "Correct the file, or quarantine invalid rows with --contract evolve or quarantine.",
                    file=reject.file,
                    line=reject.line,
                )
            self.count += 1
            self._batch.append(reject)
            if len(self._batch) >= _BATCH:
                self._flush()

    def close(self) -> Path | None:
        """Close the file; returns its path, or None if no row was rejected."""
        if self._batch:
            self._flush()
        if self._writer is None:
            return None
        self._writer.close()
        return self.path

    def _flush(self) -> None:
        import pyarrow
        from pyarrow import parquet

        schema = pyarrow.schema([("file", "string"), ("line", "int64"), ("reason", "string"), ("raw", "string")])
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self.path, schema, compression="zstd")
        self._writer.write_table(pyarrow.Table.from_pylist([vars(reject) for reject in self._batch], schema=schema))
        self._batch.clear()


def has_rejects(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether the last scan stored rejected rows."""
    query = "SELECT 1 FROM duckdb_tables() WHERE table_name = 'reject_errors'"
    return connection.execute(query).fetchone() is not None


def parse_rejects(
    connection: duckdb.DuckDBPyConnection, plan: FilePlan, path: Path
) -> tuple[list[Reject], frozenset[int]]:
    """The rows that DuckDB could not parse in its last scan, in file order, and the first byte of each."""
    if not has_rejects(connection):
        return [], frozenset()
    rejected = connection.execute(
        """SELECT line_byte_position - 1, error_type, csv_line, error_message FROM reject_errors
        QUALIFY row_number() OVER (PARTITION BY line_byte_position ORDER BY column_idx) = 1 ORDER BY 1"""
    ).fetchall()
    offsets = [offset for offset, *_ in rejected]
    rejects = []
    for (offset, kind, csv_line, message), line in zip(rejected, _lines_at(path, offsets), strict=True):
        raw = _line_at(path, offset) if "ENCODING" in kind else csv_line or ""
        rejects.append(Reject(plan.file.name, line, _reason(kind, message or "", raw, plan.dialect), raw))
    return rejects, frozenset(offsets)


def locate_rejects(
    path: Path, plan: FilePlan, bad: Iterable[tuple[int, str]], skipped: frozenset[int]
) -> Iterator[Reject]:
    """Find the line and text of rows that are given by number, from 1 and ascending, with their reasons.

    `skipped` has the first byte of each record that DuckDB did not read as a row.
    """
    remaining = iter(bad)
    number, reason = next(remaining, (0, ""))
    for row, record in enumerate(_row_records(path, plan.dialect, skipped), start=1):
        if not number:
            return
        if row == number:
            yield Reject(plan.file.name, record.line, reason, record.text)
            number, reason = next(remaining, (0, ""))


def _row_records(path: Path, dialect: Dialect, skipped: frozenset[int]) -> Iterator[Record]:
    expect_header = dialect.header
    with open(path, "rb") as stream:
        for record in records(stream, dialect):
            if record.blank:
                continue
            if expect_header:
                expect_header = False
            elif record.offset not in skipped:
                yield record


def _reason(kind: str, message: str, raw: str, dialect: Dialect) -> str:
    if counts := _COUNTS.search(message):
        # DuckDB reports an error for every missing or extra field, each with a count of its own.
        count = len(next(csv_rows(raw.splitlines(keepends=True), dialect), [])) or int(counts[2])
        return f"has {count} {'field' if count == 1 else 'fields'} instead of {counts[1]}"
    known = {
        "INVALID ENCODING": "has bytes that are not valid in the encoding of the file",
        "UNQUOTED VALUE": "a quote is not closed, or text follows it",
        "LINE SIZE OVER MAXIMUM": "is longer than the maximum row size",
    }
    return known.get(kind, kind.lower())


def _lines_at(path: Path, offsets: list[int]) -> Iterator[int]:
    """The line, from 1, of each byte offset; `offsets` must ascend."""
    if not offsets:
        return
    with open(path, "rb") as stream:
        ending = b"\n" if b"\n" in stream.read(_CHUNK) else b"\r"
        stream.seek(0)
        line, at = 1, 0
        for offset in offsets:
            while at < offset:
                chunk = stream.read(min(_CHUNK, offset - at))
                line, at = line + chunk.count(ending), at + len(chunk)
            yield line


def _line_at(path: Path, offset: int) -> str:
    with open(path, "rb") as stream:
        stream.seek(offset)
        return stream.readline(_CHUNK).rstrip(b"\r\n").decode("utf-8", errors="backslashreplace")
