"""The plain facts that pass between looking at files, planning how to read them, and staging them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from lakehouse.core.requests import ReadOptions
from lakehouse.ingest.files.discover import SourceFile

Kind = Literal["csv", "json", "parquet"]
Compression = Literal["", "gzip", "zstd", "bzip2"]
OnBad = Literal["reject", "fail"]


#: Added to staged files on request: the number of the row, counted from 1, among the rows that could be read.
LINE_COLUMN = "_lake_line"


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written."""

    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    encoding: str = "utf-8"
    header: bool = True
    row_bytes: int = 100
    """About how long a row is, for choosing the size of row groups."""


@dataclass(frozen=True)
class RecordedColumn:
    """A column as it was recorded with the table: the name, the header it came from, and the type in Spark's words."""

    name: str
    type: str
    header: str = ""
    format: str = ""


@dataclass(frozen=True)
class PlannedColumn:
    """A column that will be staged."""

    name: str
    header: str
    type: str
    format: str = ""
    """How dates are written where they are not ISO, for strptime."""
    cut: bool = False
    """Some times are finer than a microsecond; what is finer is cut off."""
    recorded: str = ""
    """The type recorded with the table; empty if the table does not have the column yet."""
    new: bool = False
    missing: bool = False
    """The table has it, but no file does: it is staged as null."""
    settled: bool = True
    """False while the type is a guess from the first rows."""
    open: bool = False
    """The first rows say nothing (no value, or dates of unclear order): it is text until all rows were seen."""
    fixed: bool = False
    """The type is not to change: a value that does not fit makes a rejected row."""


@dataclass(frozen=True)
class FilePlan:
    """How one file is read: `fields` are its columns in the file's own order, `names` what they are called."""

    file: SourceFile
    kind: Kind
    compression: Compression
    dialect: Dialect
    fields: tuple[str, ...]
    names: tuple[str, ...]
    types: tuple[str, ...] = ()
    """Of a Parquet file, which knows them."""


@dataclass(frozen=True)
class ReadPlan:
    """What was decided about a set of files."""

    columns: tuple[PlannedColumn, ...]
    files: tuple[FilePlan, ...]
    settings: ReadOptions = field(default_factory=ReadOptions)
    notes: tuple[str, ...] = ()

    @property
    def settled(self) -> bool:
        """Whether every type was checked against all the data."""
        return all(column.settled for column in self.columns)

    def column(self, name: str) -> PlannedColumn:
        return next(column for column in self.columns if column.name == name)

    def same_types(self, other: ReadPlan) -> bool:
        """Whether files staged by the one are as if staged by the other."""
        return all((a.type, a.format) == (b.type, b.format) for a, b in zip(self.columns, other.columns, strict=True))


@dataclass(frozen=True)
class StageOptions:
    """How files are staged."""

    memory_limit: int = 1 << 30
    threads: int = 0
    """0: as many as the machine has."""
    on_bad: OnBad = "reject"
    with_line: bool = False
    """Adds `_lake_line`. It costs about half the speed: a reader that knows its row's number in the Parquet file
    (Spark's `_metadata.row_index`, DuckDB's `file_row_number`) has the same number, less one, for nothing."""
    scratch: Path | None = None
    """Where decompressed copies and spills go for a while; next to the staged files if not said."""


@dataclass(frozen=True)
class Reject:
    """A row that could not be read: where it stands (line counted from 1), why, and its text."""

    file: str
    line: int
    reason: str
    raw: str


@dataclass(frozen=True)
class Staged:
    """One file as typed Parquet; the rejected rows, if there are any, lie in a Parquet file of their own."""

    file: SourceFile
    path: Path
    rows: int
    rejected: int = 0
    rejects_path: Path | None = None


@dataclass(frozen=True)
class StagedFiles:
    """All files of a plan, and the plan as it finally was: every type holds for all the data."""

    plan: ReadPlan
    files: tuple[Staged, ...]

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def rejected(self) -> int:
        return sum(file.rejected for file in self.files)
