"""Data that inspection, planning and staging of files share."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Literal

from lakehouse.core.dataclass import dataclass
from lakehouse.core.requests import ReadOptions
from lakehouse.ingest.files.discover import SourceFile
from lakehouse.ingest.files.nested import TypeTree

FileKind = Literal["csv", "json", "parquet", "arrow", "workbook"]
Compression = Literal["", "gzip", "zstd", "bzip2"]
OnBad = Literal["reject", "fail"]
#: Where JSON values come from: one per line, the elements of one array, one after the other over several lines, the rows of
#: a workbook.
JsonLayout = Literal["lines", "array", "values", "workbook"]


#: Optional column of staged files: the number of the row, from 1, among the valid rows.
LINE_COLUMN = "_lake_line"


@dataclass(frozen=True)
class Dialect:
    """The format of a CSV file."""

    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    encoding: str = "utf-8"
    header: bool = True
    row_bytes: int = 100
    """Approximate size of a row, which decides the size of row groups."""
    lines_above: int = 0
    """Lines before the first row: skipped ones, of which only the ends are left, and blank ones."""


@dataclass(frozen=True)
class RecordedColumn:
    """A column as recorded with the table: name, header in the file, and Spark type."""

    name: str
    type: str
    header: str = ""
    format: str = ""


@dataclass(frozen=True)
class PlannedColumn:
    """A column to stage."""

    name: str
    header: str
    type: str
    format: str = ""
    """The strptime format of dates that are not ISO."""
    truncated: bool = False
    """Some times have nanoseconds; they are truncated to microseconds."""
    recorded: str = ""
    """The type recorded with the table; empty for a new column."""
    new: bool = False
    missing: bool = False
    """The table has the column, but no file does: it is staged as NULL."""
    confirmed: bool = True
    """False while the type is inferred from the first rows only."""
    undetermined: bool = False
    """The first rows do not determine a type (no value, or ambiguous dates): string until all rows are read."""
    fixed: bool = False
    """The type must not change: a row with a value of another type is rejected."""


@dataclass(frozen=True)
class FilePlan:
    """How to read one file: its headers (`fields`) in file order, and the column name of each (`names`)."""

    file: SourceFile
    kind: FileKind
    compression: Compression
    dialect: Dialect
    fields: tuple[str, ...]
    names: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...] = ()
    """Where the value of each field is: its key, or with `flatten` the keys that lead to it. Empty for CSV."""
    trees: tuple[TypeTree | None, ...] = ()
    """The type of each field as the file has it; None for a plain value of JSON, which is inferred. Empty for CSV."""
    layout: JsonLayout = "lines"

    @property
    def is_typed(self) -> bool:
        """Whether the file has a type for each of its columns."""
        return self.kind in ("parquet", "arrow")

    @property
    def types(self) -> tuple[str, ...]:
        """The Spark type of each field that has one in the file; empty where it is inferred."""
        return tuple(tree.spark if tree else "" for tree in self.trees) or ("",) * len(self.names)


@dataclass(frozen=True)
class ReadPlan:
    """How to read a set of files, and the columns they have in common."""

    columns: tuple[PlannedColumn, ...]
    files: tuple[FilePlan, ...]
    settings: ReadOptions = field(default_factory=ReadOptions)
    notes: tuple[str, ...] = ()

    @property
    def confirmed(self) -> bool:
        """Whether every type was checked against all rows."""
        return all(column.confirmed for column in self.columns)

    def column(self, name: str) -> PlannedColumn:
        return next(column for column in self.columns if column.name == name)

    def same_types(self, other: ReadPlan) -> bool:
        """Whether both plans stage files with the same types."""
        return all((a.type, a.format) == (b.type, b.format) for a, b in zip(self.columns, other.columns, strict=True))


@dataclass(frozen=True)
class StageOptions:
    """Options of staging."""

    memory_limit: int = 1 << 30
    threads: int = 0
    """0: one per core."""
    on_bad: OnBad = "reject"
    with_line: bool = False
    """Add the column `_lake_line`, at half the speed. Where the reader provides the row number of a Parquet file
    (Spark's `_metadata.row_index`, DuckDB's `file_row_number`), that is the same number less one, at no cost."""
    scratch: Path | None = None
    """Folder of decompressed copies and spilled data (default: beside the staged files)."""


@dataclass(frozen=True)
class Reject:
    """A row that could not be read: file, line (from 1), reason and text."""

    file: str
    line: int
    reason: str
    raw: str


@dataclass(frozen=True)
class StagedFile:
    """One file staged as typed Parquet; rejected rows are in a second Parquet file."""

    file: SourceFile
    path: Path
    rows: int
    rejected: int = 0
    rejects_path: Path | None = None


@dataclass(frozen=True)
class StagedFiles:
    """All staged files of a plan, and the plan with its confirmed types."""

    plan: ReadPlan
    files: tuple[StagedFile, ...]

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def rejected(self) -> int:
        return sum(file.rejected for file in self.files)
