"""The declaration of a pipeline: its tables, their inputs, transformations, rules and checks.

A table names its inputs and one pure function from their rows to its own. The run (a transaction over all tables of
the pipeline), the Dagster assets and checks, the lineage and the docs all follow from the declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BadDeclarationError
from lakehouse.core.files import RemoteFiles
from lakehouse.core.names import TableName
from lakehouse.quality.model import Check, Rule
from lakehouse.storage.raw import RawArea

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakehouse.pipelines.partitions import Partitions


@dataclass(frozen=True)
class SourceContext:
    """What a source gets to read from.

    >>> def read_day(context: SourceContext):
    ...     file = Path(context.settings["path"]) / f"{context.partition}.csv"
    ...     return context.spark.read.schema("id bigint, cents bigint, date date").csv(str(file))
    >>> Source("tills", read_day, settings={"path": "folder of the files"}).name
    'tills'
    """

    open_spark: Callable[[], SparkSession]
    settings: Mapping[str, str]
    """`[sources.PIPELINE]` of lake.toml."""
    partition: str
    """The requested day or month, such as 2026-01-14 or 2026-01; empty if the pipeline has no partitions."""
    now: datetime
    raw: RawArea
    """Where the lake stores source files as published and extracts of databases."""
    store: RemoteFiles | None = None
    """The object store that the pipeline's settings (endpoint, keys, …) describe."""
    cursor: str = ""
    """The cursor of the last batch."""
    progress: Callable[[str], None] = lambda text: None
    """Reports progress to the user."""

    @property
    def spark(self) -> SparkSession:
        """The session of the run; the first use starts Spark, so list partitions and compare fingerprints without it."""
        return self.open_spark()


@dataclass(frozen=True)
class Batch:
    """Rows of a source with their cursor, the present keys and notes.

    >>> def read_new(context: SourceContext) -> Batch:
    ...     leads = context.spark.table("crm.leads").where(f"id > {context.cursor or 0}")
    ...     return Batch(leads, cursor="3")
    >>> source = Source("leads", read_new)
    >>> copied = Pipeline("copied", [Table("crm.copied", lambda leads: leads, inputs=[source], key=["id"])])
    >>> [lake.run(copied).rows for _ in range(2)]
    [3, 0]
    """

    rows: DataFrame
    cursor: str = ""
    """How far this batch read; it is stored in the snapshot of the batch and passed to the next `SourceContext`."""
    present: DataFrame | None = None
    """The keys that the source has now: rows of the table with any other key are deleted."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Properties of the snapshot: source, bytes, sha256, …"""
    fingerprint: str = ""
    """The source's fingerprint when the batch was read, stored like the cursor."""
    row_count: int | None = None
    """The source's own count of `rows`: the run fails before it writes if Spark finds another number."""
    present_count: int | None = None
    """The source's own count of `present`, likewise."""


@dataclass(frozen=True)
class Source:
    """An origin of rows outside the lake.

    >>> def published(context: SourceContext) -> dict[str, str]:
    ...     files = Path(context.settings["path"]).glob("*.csv")
    ...     return {file.stem: f"{file.stat().st_size} {file.stat().st_mtime}" for file in files}
    >>> def read_day(context: SourceContext):
    ...     file = Path(context.settings["path"]) / f"{context.partition}.csv"
    ...     return context.spark.read.schema("id bigint, cents bigint, date date").csv(str(file))
    >>> tills = Source("tills", read_day, published, settings={"path": "folder of the files"})
    >>> Pipeline("shop", [Table("bronze.sales", lambda raw: raw, inputs=[tills])], Days()).known_settings
    {'path': 'folder of the files'}
    """

    name: str
    """Its name in the lineage, such as raw.yellow_trips."""
    read: Callable[[SourceContext], DataFrame | Batch]
    """Reads one partition, or everything if the pipeline has none."""
    available: Callable[[SourceContext], Mapping[str, str]] | None = None
    """Lists the partitions of the source, each with a fingerprint that changes with its content."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """The settings of the source, each with its help text."""
    fingerprint: Callable[[SourceContext], str] | None = None
    """For a source without partitions: changes with its content. A source with the fingerprint of the last batch is not read."""
    read_many: Callable[[SourceContext, Sequence[str]], DataFrame | Batch] | None = None
    """Reads several partitions with one plan (default: a union of one plan each, which Spark analyzes and compiles one by one)."""
    deletes: bool = False
    """Partitions that `available` no longer lists are removed from the table (default: they stay, as sources are often cleaned up)."""


@dataclass(frozen=True)
class LightContext:
    """What a table gets to build itself without Spark.

    >>> def build(context: LightContext) -> int:
    ...     leads = context.catalog.load_table("crm.leads").scan().to_arrow()
    ...     return context.validate(leads).num_rows
    >>> table = Table("crm.leads", lambda rows: rows, rules=[not_null("id")], light=build)
    >>> lake.run(Pipeline("counted", [table]), light=True).tables[0].table
    'crm.leads'
    """

    catalog: Any
    """The PyIceberg catalog of the run's branch."""
    settings: Mapping[str, str]
    """`[sources.PIPELINE]` of lake.toml."""
    validate: Callable[[Any], Any]
    """Applies the table's rules to an Arrow table: returns the valid rows and quarantines the others."""
    notes: Mapping[str, str]
    """Properties for the snapshots: run, author, …"""
    duckdb: Any = None
    """The lake's DuckDB (`engines.duckdb.DuckDB`), which writes data files."""


@dataclass(frozen=True)
class Table:
    """One table of a pipeline: its inputs, transformation, rules and checks.

    >>> def best(leads):
    ...     'Leads with a high score.'
    ...     return leads.where("score >= 70")
    >>> table = Table("crm.best", best, inputs=["crm.leads"], rules=[not_null("name")], checks=[unique("id")])
    >>> table.upstream, table.description
    (['crm.leads'], 'Leads with a high score.')
    """

    name: str
    transform: Callable[..., DataFrame]
    """A pure function from one DataFrame per input, in their order, to the table's rows."""
    inputs: Sequence[Source | str] = ()
    """Sources, and names of tables of this pipeline or any other of the lake."""
    key: Sequence[str] = ()
    """Unique key: of several rows, the last by `newest` wins. Without partitions, rows are merged by it."""
    newest: Sequence[str] = ()
    partition_by: str = ""
    """Iceberg's partition transforms: `date`, `days(at), bucket(16, id)`."""
    partition_column: str = ""
    """The column with the pipeline's partition key (default: that of `Pipeline.partitions`). Copy it from the inputs:
    a row must stay in the partition that it is replaced with."""
    merge: bool = False
    """Merge rows by key into the whole table instead of replacing partitions."""
    snapshot_per_partition: bool = False
    """Write each partition in a snapshot of its own."""
    lookback: int = 0
    """The number of earlier partitions of its inputs that a row may depend on."""
    rules: Sequence[Rule] = ()
    """Conditions on each row."""
    checks: Sequence[Check] = ()
    """Conditions on the table."""
    light: Callable[[LightContext], int] | None = None
    """Builds the table without Spark (`lake run --light`); returns the number of changed rows."""

    @property
    def table_name(self) -> TableName:
        """The parsed name."""
        return TableName.parse(self.name)

    @property
    def description(self) -> str:
        """The docstring of `transform`."""
        from inspect import cleandoc

        return cleandoc(self.transform.__doc__ or "")

    @property
    def sources(self) -> list[Source]:
        """The inputs from outside the lake."""
        return [source for source in self.inputs if isinstance(source, Source)]

    @property
    def upstream(self) -> list[str]:
        """The input tables."""
        return [name for name in self.inputs if isinstance(name, str)]


@dataclass(frozen=True)
class FilesTable:
    """A table of the files in a watched folder, each ingested once: `lake ingest` as a table of a pipeline.

    >>> table = FilesTable("crm.leads", folder="path", options={"key": ["id"]}, checks=[unique("id")])
    >>> Pipeline("inbox", [table], settings={"path": "the folder to watch"}).known_settings
    {'path': 'the folder to watch'}
    """

    name: str
    folder: str
    """The pipeline setting that holds the folder (or pattern, or s3:// address)."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of `Lake.ingest`: key, mode, format, contract, …"""
    description: str = ""
    checks: Sequence[Check] = ()

    @property
    def table_name(self) -> TableName:
        """The parsed name."""
        return TableName.parse(self.name)


@dataclass(frozen=True)
class Pipeline:
    """Tables that a run builds in this order and publishes together.

    >>> def best(leads):
    ...     return leads.where("score >= 70")
    >>> def count(best):
    ...     return best.groupBy().count()
    >>> pipeline = Pipeline(
    ...     "leads",
    ...     [Table("crm.best", best, inputs=["crm.leads"]), Table("crm.best_count", count, inputs=["crm.best"])],
    ... )
    >>> [table.name for table in pipeline.select(["crm.best_count"])]
    ['crm.best_count']
    """

    name: str
    tables: Sequence[Table | FilesTable]
    partitions: Partitions | None = None
    description: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings under `[sources.NAME]` beyond those of its sources."""

    def __post_init__(self) -> None:
        names = [table.name for table in self.tables]
        if len(set(names)) != len(names):
            raise BadDeclarationError(f"The pipeline {self.name} declares a table twice.", "Give each its own name.")
        for position, table in enumerate(self.tables):
            later = set(names[position:])
            not_built = (
                [upstream for upstream in table.upstream if upstream in later] if isinstance(table, Table) else []
            )
            if not_built:
                raise BadDeclarationError(
                    f"{table.name} of the pipeline {self.name} reads {not_built[0]}, which is built after it.",
                    "Declare each table after its inputs.",
                )

    @property
    def known_settings(self) -> dict[str, str]:
        """Every setting under `[sources.NAME]`, with its help text."""
        settings = dict(self.settings)
        for table in self.tables:
            for source in table.sources if isinstance(table, Table) else ():
                settings |= source.settings
        return settings

    def table(self, name: str) -> Table | FilesTable:
        """The table with a name."""
        return next(table for table in self.tables if table.name == name)

    def select(self, names: Sequence[str]) -> list[Table | FilesTable]:
        """The named tables in their declared order; all tables if no name is given."""
        return [table for table in self.tables if not names or table.name in names]

    def partition_column(self, table: Table) -> str:
        """The column of a table that holds its partition key; empty if the pipeline has no partitions."""
        return (table.partition_column or self.partitions.column) if self.partitions else ""
