"""The rows that could not be read, each with its place, reason and text, in a Parquet file of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.ingest.files.errors import BadRowError
from lakehouse.ingest.files.model import Dialect, FilePlan, OnBad, Reject
from lakehouse.ingest.files.records import Record, records

if TYPE_CHECKING:
    import duckdb

_BATCH = 10_000
_CHUNK = 4 << 20
_COUNTS = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")


class RejectsFile:
    """Takes rejected rows and writes them out in batches; with `on_bad="fail"` the first one is an error instead."""

    def __init__(self, path: Path, on_bad: OnBad) -> None:
        self.path, self.on_bad, self.count = path, on_bad, 0
        self._batch: list[Reject] = []
        self._writer: Any = None

    def add(self, rejects: Iterable[Reject]) -> None:
        for reject in rejects:
            if self.on_bad == "fail":
                raise BadRowError(
                    f"{reject.file}, line {reject.line}: {reject.reason}.",
                    "Mend the file, or let bad rows be set aside.",
                    file=reject.file,
                    line=reject.line,
                )
            self.count += 1
            self._batch.append(reject)
            if len(self._batch) >= _BATCH:
                self._flush()

    def close(self) -> Path | None:
        """The file, or None if there was nothing to put into it."""
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
    """Whether the last scan was one that sets rows aside, and came far enough to have a table for them."""
    query = "SELECT 1 FROM duckdb_tables() WHERE table_name = 'reject_errors'"
    return connection.execute(query).fetchone() is not None


def unparsed(connection: duckdb.DuckDBPyConnection, plan: FilePlan, path: Path) -> tuple[list[Reject], frozenset[int]]:
    """The rows that DuckDB could not parse in its last scan, in the file's order, and the first byte of each."""
    if not has_rejects(connection):
        return [], frozenset()
    found = connection.execute(
        """SELECT line_byte_position - 1, error_type, csv_line, error_message FROM reject_errors
        QUALIFY row_number() OVER (PARTITION BY line_byte_position ORDER BY column_idx) = 1 ORDER BY 1"""
    ).fetchall()
    offsets = [offset for offset, *_ in found]
    rejects = [
        Reject(
            plan.file.name, line, _reason(kind, message), _line_of(path, offset) if "ENCODING" in kind else raw or ""
        )
        for (offset, kind, raw, message), line in zip(found, _lines_at(path, offsets), strict=True)
    ]
    return rejects, frozenset(offsets)


def placed(path: Path, plan: FilePlan, bad: Iterable[tuple[int, str]], gone: frozenset[int]) -> Iterator[Reject]:
    """Rejects for rows known by their number (from 1, in rising order), found again in the file for their line and text.

    `gone` are the first bytes of records that never became rows.
    """
    wanted = iter(bad)
    number, reason = next(wanted, (0, ""))
    for row, record in enumerate(_row_records(path, plan.dialect, gone), start=1):
        if not number:
            return
        if row == number:
            yield Reject(plan.file.name, record.line, reason, record.text)
            number, reason = next(wanted, (0, ""))


def _row_records(path: Path, dialect: Dialect, gone: frozenset[int]) -> Iterator[Record]:
    header_to_come = dialect.header
    with open(path, "rb") as stream:
        for record in records(stream, dialect):
            if record.blank:
                continue
            if header_to_come:
                header_to_come = False
            elif record.offset not in gone:
                yield record


def _reason(kind: str, message: str) -> str:
    if found := _COUNTS.search(message or ""):
        return f"has {found[2]} fields instead of {found[1]}"
    known = {
        "INVALID ENCODING": "holds bytes that are not valid in the file's encoding",
        "UNQUOTED VALUE": "a quote is not closed, or text follows it",
        "LINE SIZE OVER MAXIMUM": "is longer than a row may be",
    }
    return known.get(kind, kind.lower())


def _lines_at(path: Path, offsets: list[int]) -> Iterator[int]:
    """The line, counted from 1, of each byte; `offsets` rise."""
    if not offsets:
        return
    with open(path, "rb") as stream:
        ending = b"\n" if b"\n" in stream.read(_CHUNK) else b"\r"
        stream.seek(0)
        line, at = 1, 0
        for offset in offsets:
            while at < offset:
                piece = stream.read(min(_CHUNK, offset - at))
                line, at = line + piece.count(ending), at + len(piece)
            yield line


def _line_of(path: Path, offset: int) -> str:
    with open(path, "rb") as stream:
        stream.seek(offset)
        return stream.readline(_CHUNK).rstrip(b"\r\n").decode("utf-8", errors="backslashreplace")
