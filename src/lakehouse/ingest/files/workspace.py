"""A workspace to scan files: a scratch folder, a DuckDB connection, and workarounds for its CSV reader."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lakehouse.core import quoting
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import DamagedFileError
from lakehouse.core.requests import ReadOptions
from lakehouse.ingest.files import duckdb_scan
from lakehouse.ingest.files.arrow_file import write_parquet
from lakehouse.ingest.files.casts import MISMATCH
from lakehouse.ingest.files.column_stats import number_sql
from lakehouse.ingest.files.encoding import Utf8File, ensure_utf8
from lakehouse.ingest.files.model import FilePlan, Reject, StageOptions
from lakehouse.ingest.files.records import Record, count_lines, repair
from lakehouse.ingest.files.rejects import has_rejects
from lakehouse.ingest.files.workbook import write_sheet

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")

#: Memory that DuckDB reserves per column while it copies: several batches of 2,048 values.
_COLUMN_BYTES = 200_000


@dataclass(frozen=True)
class ScannableFile:
    """A text file that DuckDB can scan, and how to scan it.

    The first scan is parallel and fails on any invalid row. A `sequential` scan collects invalid rows. A parallel scan
    that collects them is not safe: threads start in the middle of the file, and DuckDB checks that their parts fit
    together only if invalid rows are errors. Otherwise it may lose parts, or read lines of a long quoted value as rows,
    without an error. For the same reason the rows are counted after every scan.
    """

    path: Path
    has_quote: bool
    lines: int
    encoding: str
    line_size: int = duckdb_scan.LINE_SIZES[0]
    sequential: bool = False
    repaired: bool = False
    records: int = 0
    """Number of records that a sequential scan must find, with the header, without rejects of the repair."""
    rejects: tuple[Reject, ...] = ()


@dataclass(frozen=True)
class RowQuery:
    """A query for the rows of a file, and SQL for the raw value and the string of each column."""

    query: str
    raw: Callable[[int], str]
    text: Callable[[int], str]
    good: str = "true"
    """SQL that is false for invalid rows; `reason` is SQL for why."""
    reason: str = "''"


@dataclass
class Workspace:
    """A DuckDB connection and a scratch folder for a set of files."""

    options: StageOptions
    settings: ReadOptions
    folder: Path
    _prepared: dict[str, ScannableFile] = field(default_factory=dict)
    _connection: Any = None

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            self._connection = duckdb_scan.connect(
                self.options.memory_limit, self.options.threads, self.folder / "spill"
            )
        return self._connection  # type: ignore[no-any-return]  # Any, because duckdb is imported on first use

    def fraction_done(self) -> float:
        """How much of the running statement is done, from 0 to 1; less than 0 if that is not known."""
        return -1.0 if self._connection is None else float(self._connection.query_progress()) / 100

    def prepare(self, plan: FilePlan) -> ScannableFile:
        """Decompress a file and convert it to UTF-8, once, so that DuckDB can scan it."""
        if plan.file.path not in self._prepared:
            into = self.folder / f"{len(self._prepared)}.txt"
            plain = self._sheet(plan, into) if plan.layout == "workbook" else ensure_utf8(plan, self.settings, into)
            if plan.layout in ("array", "values"):
                plain = self._json_lines(plan, plain, into.with_suffix(".jsonl"))
            path = Path(duckdb_scan.literal_path(str(plain.path), self.folder))
            self._prepared[plan.file.path] = ScannableFile(path, plain.has_quote, plain.lines, plain.encoding)
        return self._prepared[plan.file.path]

    def over_several_lines(self, plan: FilePlan, run: Callable[[RowQuery], T]) -> tuple[FilePlan, T] | None:
        """Scan a JSON file whose objects may go over several lines; None if they do not, either."""
        import duckdb

        lines, values = self._prepared.pop(plan.file.path), replace(plan, layout="values")
        try:
            return values, self.scan(values, run)
        except duckdb.Error:
            self._prepared[plan.file.path] = lines
            return None

    def parquet_path(self, plan: FilePlan) -> str:
        """The path of a Parquet file for DuckDB; of an Arrow file, that of a copy."""
        path = plan.file.path
        if plan.kind == "parquet":
            return duckdb_scan.literal_path(path, self.folder)
        copy = self.folder / f"{hashlib.sha256(path.encode()).hexdigest()[:16]}.parquet"
        if not copy.exists():
            write_parquet(plan.file, copy)
        return str(copy)

    def _sheet(self, plan: FilePlan, into: Path) -> Utf8File:
        """The rows of a workbook as lines of JSON."""
        count = write_sheet(plan.file, self.settings, into)
        return Utf8File(into, has_quote=False, lines=count, encoding="")

    def _json_lines(self, plan: FilePlan, file: Utf8File, into: Path) -> Utf8File:
        """A copy with one JSON value per line."""
        layout = {"array": "array", "values": "unstructured"}[plan.layout]
        path = quoting.text(duckdb_scan.literal_path(str(file.path), self.folder))
        options = (
            f"format = '{layout}', compression = 'uncompressed', maximum_object_size = {duckdb_scan.LINE_SIZES[-1]}"
        )
        values, count = self.connection.execute(f"SELECT json(json) FROM read_json_objects({path}, {options})"), 0
        with into.open("w", encoding="utf-8") as out:
            while batch := values.fetchmany(10_000):
                out.writelines(f"{value}\n" for (value,) in batch)
                count += len(batch)
        return replace(file, path=into, lines=count)

    def count_lines(self, plan: FilePlan) -> int:
        """The lines of a text file, or the elements of a JSON array."""
        return self.prepare(plan).lines

    def scan(self, plan: FilePlan, run: Callable[[RowQuery], T]) -> T:
        """Run a query on the rows of a file, again with other settings if DuckDB's reader fails."""
        import duckdb

        self._raise_memory_limit(len(plan.fields))
        while True:
            file = self.prepare(plan)
            self.connection.execute("DROP TABLE IF EXISTS reject_errors; DROP TABLE IF EXISTS reject_scans")
            try:
                result = run(rows_of(plan, file, self))
            except (duckdb.InvalidInputException, duckdb.NotImplementedException) as exc:
                if MISMATCH in str(exc) or not self._adjust_scan(plan, file, str(exc)):
                    raise
                continue
            if file.sequential and self._has_long_rows() and self._adjust_scan(plan, file, "line size"):
                continue
            return result

    def verify_row_count(self, plan: FilePlan, rows: int) -> bool:
        """Whether a scan found all rows; if not, the next scan of the file is sequential."""
        file = self.prepare(plan)
        records = rows + plan.dialect.header
        if file.sequential:
            if records != file.records:
                raise _unsplittable_file(plan)
            return True
        # With quotes a value may span several lines, so lines do not count rows; DuckDB's own check must do.
        if file.has_quote or records == file.lines or records == count_lines(file.path):
            return True
        self._scan_sequentially(plan, file)
        return False

    def encoding(self, plan: FilePlan) -> str:
        """The encoding of a file that was scanned as text; empty for other files."""
        file = self._prepared.get(plan.file.path)
        return file.encoding if file else ""

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _raise_memory_limit(self, width: int) -> None:
        """Allow memory for one batch of rows of a very wide file; DuckDB reserves it, but uses little of it."""
        if width * _COLUMN_BYTES > self.options.memory_limit:
            self.connection.execute(f"SET memory_limit = '{width * _COLUMN_BYTES}B'; SET threads = 1")

    def _adjust_scan(self, plan: FilePlan, file: ScannableFile, error: str) -> bool:
        """Choose settings with which the next scan of a file may succeed; False if none are left."""
        larger_sizes = [size for size in duckdb_scan.LINE_SIZES if size > file.line_size]
        if "line size" in error.lower() and larger_sizes:
            self._prepared[plan.file.path] = replace(file, line_size=larger_sizes[0])
        elif not file.sequential or ("state machine" in error and not file.repaired):
            self._scan_sequentially(plan, file, mixed="state machine" in error)
        else:
            return False
        return True

    def _scan_sequentially(self, plan: FilePlan, file: ScannableFile, mixed: bool = False) -> None:
        if not (file.has_quote or mixed):
            sequential = replace(file, sequential=True, records=count_lines(file.path))
        else:
            # DuckDB drops rows after a quote that is not closed, and does not read mixed line ends.
            into, rejects = self.folder / f"{file.path.name}.repaired", []

            def reject(record: Record) -> None:
                reason = "a quote is not closed, or text follows it"
                rejects.append(Reject(plan.file.name, record.line, reason, record.text))

            count = repair(file.path, plan.dialect, into, reject)
            sequential = replace(file, path=into, sequential=True, repaired=True, records=count, rejects=tuple(rejects))
        self._prepared[plan.file.path] = sequential

    def _has_long_rows(self) -> bool:
        query = "SELECT 1 FROM reject_errors WHERE error_type = 'LINE SIZE OVER MAXIMUM' LIMIT 1"
        return has_rejects(self.connection) and self.connection.execute(query).fetchone() is not None


def _unsplittable_file(plan: FilePlan) -> DamagedFileError:
    return DamagedFileError(
        f"{plan.file.name} cannot be split into rows reliably, so it is not read: rows could be lost.",
        "Set its delimiter, and check its quotes.",
        file=plan.file.name,
    )


@contextmanager
def workspace(options: StageOptions, settings: ReadOptions, beside: Path | None = None) -> Iterator[Workspace]:
    """Open a workspace and remove its files afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=".lake-stage-", dir=options.scratch or beside))
    space = Workspace(options, settings, folder)
    try:
        yield space
    finally:
        space.close()
        shutil.rmtree(folder, ignore_errors=True)


def rows_of(plan: FilePlan, file: ScannableFile, space: Workspace) -> RowQuery:
    """The query that scans a text file."""
    # Powers of two: with other sizes, DuckDB's threads lose the rows between two buffers.
    buffer = 32 << 20
    while buffer > 4 << 20 and buffer > space.options.memory_limit // 16:
        buffer //= 2
    limits = {
        "max_line_size": file.line_size,
        "buffer_size": max(buffer, 2 * file.line_size),
        "parallel": not file.sequential,
        "store_rejects": file.sequential,
    }
    if plan.kind == "json":
        return _json_rows(plan, duckdb_scan.lines_scan(file.path, **limits))
    query = duckdb_scan.csv_scan(file.path, plan.dialect, len(plan.fields), space.settings.null_words, **limits)
    return RowQuery(query, lambda index: number_sql(duckdb_scan.field(index), space.settings), duckdb_scan.field)


def _json_rows(plan: FilePlan, lines: str) -> RowQuery:
    pointers = ("".join("/" + key.replace("~", "~0").replace("/", "~1") for key in path) for path in plan.paths)
    paths = "[" + ", ".join(quoting.text(pointer) for pointer in pointers) + "]::VARCHAR[]"
    query = f"""SELECT f0, CAST(json_extract(j, {paths}) AS VARCHAR[]) AS r, json_extract_string(j, {paths}) AS t, ok
      FROM (SELECT f0, j, coalesce(json_type(j) = 'OBJECT', false) AS ok
            FROM (SELECT f0, TRY_CAST(f0 AS JSON) AS j FROM ({lines})))"""
    return RowQuery(
        query,
        # Without this, a JSON null would become the string "null".
        lambda index: f"CASE WHEN t[{index + 1}] IS NULL THEN NULL ELSE r[{index + 1}] END",
        lambda index: f"t[{index + 1}]",
        good="ok",
        reason="'is not a JSON object'",
    )
