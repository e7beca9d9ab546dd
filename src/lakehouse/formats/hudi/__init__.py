"""Hudi tables: found by their folders (no metastore), read with hudi-rs, changed by Spark. Copy-on-write."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from lakehouse.core.errors import NoSuchTableError, NotSupportedError, TableExistsError
from lakehouse.core.names import TableName
from lakehouse.core.ports import Column, FormatCan, Scan, SchemaCopy, Snapshot, TableInfo
from lakehouse.core.quoting import spark_text
from lakehouse.core.uris import file_uri
from lakehouse.core.when import Version, resolve
from lakehouse.formats.hudi import timeline
from lakehouse.formats.hudi.timeline import Instant

#: Hudi's tables live in Spark's own session catalog; `lake` is Iceberg's.
SPARK_CATALOG = "spark_catalog"

#: Session settings of every Spark that writes Hudi here.
SPARK_SETTINGS = {
    # Left alone, Hudi deletes the files of all but the last 10 commits and archives its timeline while writing, and
    # travelling further back then fails or, worse, answers from the wrong files. Clean-up is a decision of its own.
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    # The timeline server opens a port on every interface.
    "hoodie.embed.timeline.server": "false",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.datasource.overwrite.mode": "STATIC",
    # Two hundred tasks for three rows would be two hundred files' worth of work.
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.insert.shuffle.parallelism": "2",
    "hoodie.bulkinsert.shuffle.parallelism": "2",
    "hoodie.delete.shuffle.parallelism": "2",
}


class HudiTables:
    """The Hudi tables under one warehouse folder, each in `namespace/table` with a `.hoodie` folder in it."""

    name = "hudi"
    can = FormatCan(branch=False, upsert=True, time_travel=True, partition_evolution=False)

    def __init__(self, warehouse: Path, trash: Path) -> None:
        self._warehouse, self._trash = warehouse, trash

    def on(self, branch: str) -> HudiTables:
        return self

    def frozen(self, tables: Sequence[TableName]) -> HudiTables:
        return self  # each Hudi table commits on its own

    def tables(self) -> Sequence[TableName]:
        found = sorted(path.parents[1] for path in self._warehouse.glob("*/*/.hoodie/hoodie.properties"))
        return [TableName(folder.parent.name, folder.name) for folder in found]

    def has(self, table: TableName) -> bool:
        return (self.folder(table) / ".hoodie" / "hoodie.properties").is_file()

    def folder(self, table: TableName) -> Path:
        """Where the table's files are."""
        return self._warehouse / table.namespace / table.table

    def describe(self, table: TableName) -> TableInfo:
        instants, properties = self._instants(table), self._properties(table)
        told = timeline.snapshots(instants)
        return TableInfo(
            name=table,
            format=self.name,
            location=file_uri(self.folder(table)),
            columns=timeline.columns(instants[-1]) if instants else _columns_at_creation(properties),
            partitioning=_listed(properties.get("hoodie.table.partition.fields", "")),
            key=_listed(properties.get("hoodie.table.recordkey.fields", "")),
            properties=properties,
            current=told[-1] if told else None,
        )

    def history(self, table: TableName) -> Sequence[Snapshot]:
        return timeline.snapshots(self._instants(table))

    def resolve(self, table: TableName, when: str, now: datetime) -> str:
        versions = [Version(instant.id, timeline.moment(instant.id)) for instant in self._instants(table)]
        return resolve(when, versions, {}, now, str(table))

    def scan(self, table: TableName, snapshot: str = "") -> Scan:
        from hudi import HudiReadOptions

        self._check(table)
        opened = timeline.open_table(self.folder(table))
        instants = [instant for instant in timeline.instants(opened) if not snapshot or instant.id <= snapshot]
        if not instants:
            return Scan(columns=self.describe(table).columns, total_rows=0, total_files=0, total_bytes=0)
        slices = opened.get_file_slices(HudiReadOptions().with_as_of_timestamp(instants[-1].id))
        if any(part.has_log_files() for part in slices):
            raise NotSupportedError(
                f"{table} is a merge-on-read table with unmerged changes, which only Spark reads right.",
                "Ask Spark: lake sql --engine spark",
            )
        # Parquet files of a copy-on-write table are the table: DuckDB reads them with all its pruning.
        return Scan(
            columns=timeline.columns(instants[-1]),
            snapshot_id=snapshot,
            files=tuple(str(self.folder(table) / part.base_file_relative_path()) for part in slices),
            total_rows=timeline.snapshots(instants)[-1].rows_total,
            total_files=len(slices),
            total_bytes=sum(part.base_file_size for part in slices),
        )

    def spark_name(self, table: TableName, snapshot: str = "") -> str:
        at = f" TIMESTAMP AS OF '{snapshot}'" if snapshot else ""
        return f"{SPARK_CATALOG}.`{table.namespace}`.`{table.table}`{at}"

    def spark_rows(self, table: TableName, snapshot: str = "") -> str:
        # Spark would show Hudi's own five columns; a table looks the same in every engine.
        names = ", ".join(f"`{column.name}`" for column in self._columns(table, snapshot))
        return f"(SELECT {names} FROM {self.spark_name(table, snapshot)})"

    def present(self, table: TableName) -> str:
        return ""

    def spark_setup(self, table: TableName) -> Sequence[str]:
        """What a session must run to know the table as it is now, or to be ready for a new one of that name."""
        name = self.spark_name(table)
        place = spark_text(file_uri(self._warehouse / table.namespace))
        database = f"CREATE DATABASE IF NOT EXISTS {SPARK_CATALOG}.`{table.namespace}` LOCATION {place}"
        if not self.has(table):
            # The session may remember a table that has been dropped since; there are no files left to lose.
            return (database, f"DROP TABLE IF EXISTS {name}")
        known = f"CREATE TABLE IF NOT EXISTS {name} USING hudi LOCATION {spark_text(file_uri(self.folder(table)))}"
        return (database, known, f"REFRESH TABLE {name}")

    def spark_copy(self, table: TableName) -> SchemaCopy | None:
        instants = self._instants(table) if self.has(table) else []
        if not instants:
            return None  # nobody can have changed the schema that it was made with
        fields = _listed(self._properties(table).get("hoodie.table.partition.fields", ""))
        place = file_uri(self.folder(table))
        return SchemaCopy(table, self.name, place, timeline.columns(instants[-1]), fields)

    def version(self, table: TableName) -> str:
        """Changes whenever the table does; cheap."""
        folder = self.folder(table) / ".hoodie" / "timeline"
        return max((entry.name for entry in folder.glob("*_*.*")), default="") if folder.is_dir() else ""

    def rollback_sql(self, table: TableName, snapshot: str) -> str:
        """A new commit that holds the old rows. Hudi's own restore would delete the commits in between for good."""
        now = self.describe(table).columns
        then = {column.name for column in self._columns(table, snapshot)}
        picked = ", ".join(
            f"`{column.name}`" if column.name in then else f"CAST(NULL AS {column.type}) AS `{column.name}`"
            for column in now
        )
        return f"INSERT OVERWRITE TABLE {table} SELECT {picked} FROM {table} VERSION AS OF '{snapshot}'"

    def drop(self, table: TableName) -> None:
        self._check(table)
        place = self._trash / table.namespace
        place.mkdir(parents=True, exist_ok=True)
        # Numbered, so that dropping two tables of one name one after the other keeps both.
        number = 1 + max((int(entry.suffix[1:]) for entry in place.glob(f"{table.table}.*")), default=0)
        self.folder(table).rename(place / f"{table.table}.{number}")

    def undrop(self, table: TableName) -> bool:
        kept = sorted(self._trash.glob(f"{table.namespace}/{table.table}.*"), key=lambda entry: int(entry.suffix[1:]))
        if not kept:
            return False
        if self.folder(table).exists():
            raise TableExistsError(
                f"There is something at {self.folder(table)} again, so the dropped {table} cannot come back.",
                f"Drop the new one first: lake drop {table}",
            )
        self.folder(table).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(kept[-1], self.folder(table))
        return True

    def dropped(self) -> Sequence[TableName]:
        names = {(entry.parent.name, entry.stem) for entry in self._trash.glob("*/*.*")}
        return [TableName(*name) for name in sorted(names)]

    def _check(self, table: TableName) -> None:
        if not self.has(table):
            raise NoSuchTableError(str(table))

    def _columns(self, table: TableName, snapshot: str) -> tuple[Column, ...]:
        """The schema now or at a snapshot, without looking for the files that hold the rows."""
        instants = [instant for instant in self._instants(table) if not snapshot or instant.id <= snapshot]
        return timeline.columns(instants[-1]) if instants else _columns_at_creation(self._properties(table))

    def _instants(self, table: TableName) -> list[Instant]:
        self._check(table)
        return timeline.instants(timeline.open_table(self.folder(table)))

    def _properties(self, table: TableName) -> dict[str, str]:
        lines = (self.folder(table) / ".hoodie" / "hoodie.properties").read_text().splitlines()
        pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
        return {key: value.replace("\\:", ":") for key, value in pairs}


def _columns_at_creation(properties: dict[str, str]) -> tuple[Column, ...]:
    """The schema of a table that nothing has been written to yet."""
    return timeline.columns_of(properties.get("hoodie.table.create.schema") or '{"fields": []}')


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip().split(":")[0] for part in text.split(",") if part.strip())
