"""How a pipeline is written: it declares its tables and nothing else.

A table names its inputs and one pure function from their rows to its own. From the declaration come the run (a
transaction over all of the pipeline's tables), the Dagster assets and checks, the lineage and the docs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.core.errors import BadDeclarationError
from lakehouse.core.names import TableName
from lakehouse.core.source import RemoteFiles
from lakehouse.quality.model import Check, Rule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakehouse.pipelines.partitions import Partitions


@dataclass(frozen=True)
class Reading:
    """All that a source may know while it is read."""

    spark: SparkSession
    settings: Mapping[str, str]
    """`[sources.NAME]` of lake.toml, where NAME is the pipeline's."""
    partition: str
    """The day or month that is wanted, such as 2026-01-14 or 2026-01; nothing if the pipeline has no partitions."""
    now: datetime
    raw: Path
    """Where the lake keeps files as they were published."""
    store: RemoteFiles | None = None
    """The object store of the pipeline's settings (endpoint, keys, …), where they are not those of the lake."""
    cursor: str = ""
    """What the last batch said it had read up to."""
    say: Callable[[str], None] = lambda text: None
    """Tell the person who waits."""


@dataclass(frozen=True)
class Batch:
    """What a source gives when rows alone do not say it all."""

    rows: DataFrame
    cursor: str = ""
    """How far this batch read; it is kept in the snapshot that the batch makes, and given back by the next `Reading`."""
    present: DataFrame | None = None
    """The keys that the source holds now: rows of the table with any other key are deleted."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """More to keep with the snapshot: source, bytes, sha256, …"""


@dataclass(frozen=True)
class Source:
    """Where rows come from outside the lake."""

    name: str
    """How the lineage calls it, such as raw.yellow_trips."""
    read: Callable[[Reading], DataFrame | Batch]
    available: Callable[[Reading], Mapping[str, str]] | None = None
    """The partitions that are there to be read, each with a fingerprint that changes when what is published does."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """The settings it knows, each with a word of help."""


@dataclass(frozen=True)
class Table:
    """One table of a pipeline: what it is made from, how, and what must hold."""

    name: str
    make: Callable[..., DataFrame]
    """A pure function: one DataFrame per input, in their order, in; the table's rows out."""
    inputs: Sequence[Source | str] = ()
    """Sources, and names of tables: the pipeline's own or any other of the lake."""
    key: Sequence[str] = ()
    """One row per key: of several, the one that comes last by `newest`. Without partitions, rows are merged by it."""
    newest: Sequence[str] = ()
    partition_by: str = ""
    """How the files are laid out, in Iceberg's words: `date`, `days(at), bucket(16, id)`."""
    slice: str = ""
    """The column that holds the pipeline's partition, carried along from the inputs and never made up anew (else a row
    could leave the partition that it is replaced with); the pipeline's own unless the table calls it otherwise."""
    merge: bool = False
    """Rows are merged by key into the whole table, whatever partition they belong to, instead of replacing partitions."""
    one_snapshot_each: bool = False
    """Each partition is a snapshot of its own, even if one run makes many."""
    lookback: int = 0
    """How many earlier partitions of its inputs a row may depend on, as a gap since yesterday does."""
    rules: Sequence[Rule] = ()
    """What must hold for each row."""
    checks: Sequence[Check] = ()
    """What must hold for the table."""
    light: Callable[[Any, Mapping[str, str]], int] | None = None
    """The same without Spark, for small tables: given PyIceberg's catalog and the settings, it says how many rows changed."""

    @property
    def title(self) -> TableName:
        return TableName.parse(self.name)

    @property
    def description(self) -> str:
        return (self.make.__doc__ or "").strip()

    @property
    def sources(self) -> list[Source]:
        return [each for each in self.inputs if isinstance(each, Source)]

    @property
    def upstream(self) -> list[str]:
        """The tables that it reads."""
        return [each for each in self.inputs if isinstance(each, str)]


@dataclass(frozen=True)
class FilesTable:
    """A table that is a watched folder's files, merged by key, each file once: `lake ingest` as a pipeline's table."""

    name: str
    folder: str
    """The setting of the pipeline that names the folder (or pattern, or s3:// address)."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Those of `Lake.ingest`: key, mode, format, contract, …"""
    description: str = ""
    checks: Sequence[Check] = ()

    @property
    def title(self) -> TableName:
        return TableName.parse(self.name)


@dataclass(frozen=True)
class Pipeline:
    """Tables that are made together, in this order, by runs that publish all of them or none."""

    name: str
    tables: Sequence[Table | FilesTable]
    partitions: Partitions | None = None
    description: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings under `[sources.NAME]` beside those that its sources know."""

    def __post_init__(self) -> None:
        names = [table.name for table in self.tables]
        if len(set(names)) != len(names):
            raise BadDeclarationError(f"The pipeline {self.name} declares a table twice.", "Give each its own name.")
        for place, table in enumerate(self.tables):
            later = set(names[place:])
            asked = [each for each in table.upstream if each in later] if isinstance(table, Table) else []
            if asked:
                raise BadDeclarationError(
                    f"{table.name} of the pipeline {self.name} reads {asked[0]}, which is made after it.",
                    "Declare tables in the order in which they are made.",
                )

    @property
    def known_settings(self) -> dict[str, str]:
        """Every setting under `[sources.NAME]`, with its help."""
        found = dict(self.settings)
        for table in self.tables:
            for source in table.sources if isinstance(table, Table) else ():
                found |= source.settings
        return found

    def table(self, name: str) -> Table | FilesTable:
        return next(table for table in self.tables if table.name == name)

    def chosen(self, names: Sequence[str]) -> list[Table | FilesTable]:
        """The tables that a run makes: those named, in the declared order, or all if none is."""
        return [table for table in self.tables if not names or table.name in names]

    def slice_of(self, table: Table) -> str:
        """The column of a table that holds the partition; nothing if the pipeline has none."""
        return (table.slice or self.partitions.column) if self.partitions else ""
