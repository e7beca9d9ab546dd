"""Typed requests: the CLI, Python and HTTP build the same objects and get the same errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BadSettingError, UnknownChoiceError
from lakehouse.core.names import TableName

MODES = ("append", "upsert", "replace")
CONTRACTS = ("evolve", "freeze", "quarantine")
FORMATS = ("iceberg", "hudi")

#: Words that mean NULL in a CSV file. `NaN` is none: in a numeric column it is a number, elsewhere it may be a name.
#: JSON and Parquet have nulls of their own, so no word counts there.
NULL_WORDS = ("", "NA", "N/A", "n/a", "#N/A", "null", "NULL", "Null", "None", "\\N")


@dataclass(frozen=True)
class WriteTarget:
    """Where a format's own writer puts the rows of a query.

    SQL's INSERT keeps the schema of a table; a writer commits rows and a new schema together.
    """

    format: str
    location: str
    options: Mapping[str, str] = field(default_factory=dict)
    comments: Mapping[str, str] = field(default_factory=dict)
    """Column comments by column name."""


@dataclass(frozen=True)
class QueryRequest:
    """One SQL statement and how to run it."""

    sql: str
    as_of: str = ""
    """Read every table as of this WHEN, unless the statement has its own AS OF."""
    limit: int | None = None
    """Maximum number of rows (default: all)."""
    explain: bool = False
    dialect: str = ""
    """`duckdb` for DuckDB's own SQL, whose answers may differ from Spark's (default: the dialect of the engine)."""
    arrow: bool = True
    """Return Arrow; False returns Python rows, which saves loading Arrow."""
    branch: str = ""
    """The branch of all tables (default: main)."""
    parameters: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)
    """Values of the markers `:name` in the statement. They are bound by the engine, never written into the text."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Parquet files or folders that the statement reads, by name."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Spark settings for this statement only."""
    write: WriteTarget | None = None
    """Write the rows of the query there instead of returning them."""
    ingest_into: str = ""
    """The table into which an ingest writes with this statement, or empty. The table's lock is held while the statement runs,
    because the client may die before, and the statement may choose the location of the table."""
    maintains: str = ""
    """The Hudi table that maintenance changes with this statement, which must be a call of one of Hudi's procedures for it."""
    mark: str = ""
    """Identifies the commit of the statement; an engine that marks commits notes it in the snapshot."""
    stream: bool = False
    """Return the rows of a read while they are computed, where the engine can; such a result is read once."""


@dataclass(frozen=True)
class DiffRequest:
    """Compare a table at two WHENs."""

    table: TableName
    start: str
    end: str = ""
    """The later WHEN (default: now)."""
    key: Sequence[str] = ()
    """Columns that identify a row (default: the table's key)."""
    limit: int = 1000
    """Maximum number of rows to return; all are counted."""


#: The options of `ReadOptions` that a service takes.
SERVED_READ_OPTIONS = (
    "null_words",
    "delimiter",
    "encoding",
    "header",
    "decimal",
    "thousands",
    "sheet",
    "skip_rows",
    "flatten",
)


@dataclass(frozen=True)
class ReadOptions:
    """How to read source files; None means detect."""

    null_words: tuple[str, ...] = NULL_WORDS
    delimiter: str | None = None
    quote: str | None = None
    """Quote character; the empty string means that nothing is quoted."""
    escape: str | None = None
    encoding: str | None = None
    """Any encoding that Python knows."""
    header: bool | None = None
    all_text: bool = False
    """Read every column of a CSV or JSON file as a string, unchanged."""
    decimal: str = "."
    """The decimal separator of numbers in a CSV: `.` or `,`."""
    thousands: str = ""
    """What separates groups of three digits in a CSV, such as `.`, `,` or a space; the empty string means nothing."""
    sheet: str = ""
    """The sheet of a workbook to read (default: the first one)."""
    skip_rows: int = 0
    """How many lines of a CSV, or rows of a sheet as its program numbers them, are above the header: a title, a summary."""
    flatten: bool = False
    """Unpack structs: a field b of a struct a becomes the column a_b. Lists and maps stay."""

    def __post_init__(self) -> None:
        if self.skip_rows < 0:
            raise BadSettingError(f"skip_rows={self.skip_rows} is less than 0.", "Count the lines above the header.")
        if self.decimal not in (".", ","):
            raise UnknownChoiceError("decimal", self.decimal, [".", ","])
        if (
            len(self.thousands) > 1
            or self.thousands == self.decimal
            or self.thousands.isalnum()
            or self.thousands == "-"
        ):
            raise BadSettingError(
                f"thousands={self.thousands!r} cannot separate thousands beside the decimal separator {self.decimal!r}.",
                'Use one other character, such as "." beside --decimal ",".',
            )


@dataclass(frozen=True)
class IngestRequest:
    """Ingest files into a table."""

    sources: tuple[str, ...]
    table: TableName
    mode: str = ""
    """append, upsert or replace (default: upsert with a key, else append)."""
    key: tuple[str, ...] = ()
    order_by: str = ""
    """Of several rows with one key, the highest value of this column wins (default: the last row)."""
    format: str = ""
    """Format of a new table (default: iceberg)."""
    contract: str = "evolve"
    partition_by: str = ""
    sort_by: str = ""
    force: bool = False
    """Ingest files again that were ingested before."""
    read: ReadOptions = field(default_factory=ReadOptions)
    dry_run: bool = False
    """Report what would be done; write nothing."""
    branch: str = ""
    """The branch of the table (default: main)."""
    names: Mapping[str, str] = field(default_factory=dict)
    """What reports and the log call a source instead of its path, by path."""
    light: bool = False
    """Write without Spark; what only Spark can do is refused, with nothing written."""
    identity: str = ""
    """What identifies the content of the one source, instead of its hash: two equal events are two. Ingested once."""

    def __post_init__(self) -> None:
        for name, given, known in (
            ("mode", self.mode, ("", *MODES)),
            ("contract", self.contract, CONTRACTS),
            ("format", self.format, ("", *FORMATS)),
        ):
            if given not in known:
                raise UnknownChoiceError(name, given, [choice for choice in known if choice])


@dataclass(frozen=True)
class RunRequest:
    """Run a pipeline, or part of it."""

    partitions: tuple[str, ...] = ()
    """Rebuild these partitions (default: those whose source is new or has changed)."""
    tables: tuple[str, ...] = ()
    """Build only these tables of the pipeline (default: all)."""
    publish: bool = True
    light: bool = False
    """Build without Spark, for tables that can be built so."""
    id: str = ""
    """Makes the request idempotent: a run that was published under this id is not done again."""
    author: str = ""
    message: str = ""
    """Commit message."""
    resume: bool = False
    """Continue on the branch that a failed run of that id left."""
    isolated: bool = False
    """Start a Spark of its own, although a warm one stands by."""
    accept_code: bool = False
    """Tables whose code has changed count as built with it: the change needs no rebuild."""


#: The steps of maintenance, in the order in which they are done.
MAINTENANCE_STEPS = ("compact", "rewrite_manifests", "statistics", "expire", "remove_files")


@dataclass(frozen=True)
class MaintainRequest:
    """Which tables to maintain, and how."""

    tables: tuple[TableName, ...] = ()
    """Default: all that their policies enable."""
    dry_run: bool = False
    only: tuple[str, ...] = ()
    """Only these steps of `MAINTENANCE_STEPS` (default: all)."""
    keep_days: float | None = None
    """Instead of the policy's."""
    keep_snapshots: int | None = None
    sort: str = ""
    forced: bool = False
    """Also do what would gain little."""

    def __post_init__(self) -> None:
        for step in self.only:
            if step not in MAINTENANCE_STEPS:
                raise UnknownChoiceError("step", step, MAINTENANCE_STEPS)

    def does(self, step: str) -> bool:
        """Return whether a step is requested."""
        return not self.only or step in self.only
