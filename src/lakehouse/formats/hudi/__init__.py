"""Hudi tables: found by their folders or in a metastore, read with hudi-rs, changed by Spark. Copy-on-write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from lakehouse.core.errors import NoSuchTableError, NotSupportedError
from lakehouse.core.format import FormatCan
from lakehouse.core.names import TableName
from lakehouse.core.quoting import spark_text
from lakehouse.core.tables import Column, Scan, SchemaCopy, Snapshot, TableInfo
from lakehouse.core.when import Version, resolve
from lakehouse.formats.hudi import timeline
from lakehouse.formats.hudi.places import Places
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
#: More of them, for tables that stand in a metastore and lie in an object store.
REGISTERED_SETTINGS = {
    # Having told the metastore, Hudi refreshes the table by two parts of its name, which mean Iceberg's catalog here.
    "spark.sql.defaultCatalog": SPARK_CATALOG,
    # Hudi 1.2 leaves files of this index of files open, a dozen connections with each write: soon S3A has none left, and
    # every statement waits for ever.
    "hoodie.metadata.enable": "false",
}


class HudiTables:
    """The Hudi tables of a lake, each in a folder of its own with a `.hoodie` folder in it."""

    name = "hudi"

    def __init__(self, places: Places) -> None:
        self._places = places
        self.can = FormatCan(
            branch=False, upsert=True, time_travel=True, partition_evolution=False, sync=places.registered
        )
        self.write_settings: Mapping[str, str] = REGISTERED_SETTINGS if places.registered else {}

    def on(self, branch: str) -> HudiTables:
        return self

    def frozen(self, tables: Sequence[TableName]) -> HudiTables:
        return self  # each Hudi table commits on its own

    def tables(self) -> Sequence[TableName]:
        return self._places.tables()

    def has(self, table: TableName) -> bool:
        return self._places.find(table) is not None

    def describe(self, table: TableName) -> TableInfo:
        instants, properties = self._instants(table), self._properties(table)
        told = timeline.snapshots(instants)
        return TableInfo(
            name=table,
            format=self.name,
            location=self._place(table),
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

        place = self._place(table)
        opened = timeline.open_table(place, self._places.access)
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
            files=tuple(self._places.file(place, part.base_file_relative_path()) for part in slices),
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
        name, place = self.spark_name(table), self._places.find(table)
        if self._places.registered:
            # The metastore has told the session of it already, but maybe of what it was.
            return (f"REFRESH TABLE {name}",) if place else ()
        folder = spark_text(self._places.folder(table.namespace))
        database = f"CREATE DATABASE IF NOT EXISTS {SPARK_CATALOG}.`{table.namespace}` LOCATION {folder}"
        if place is None:
            # The session may remember a table that has been dropped since; there are no files left to lose.
            return (database, f"DROP TABLE IF EXISTS {name}")
        known = f"CREATE TABLE IF NOT EXISTS {name} USING hudi LOCATION {spark_text(place)}"
        return (database, known, f"REFRESH TABLE {name}")

    def spark_copy(self, table: TableName) -> SchemaCopy | None:
        instants = self._instants(table) if not self._places.registered and self.has(table) else []
        if not instants:
            return None  # nobody can have changed the schema that it was made with, or Hudi told the metastore
        fields = _listed(self._properties(table).get("hoodie.table.partition.fields", ""))
        return SchemaCopy(table, self.name, self._place(table), timeline.columns(instants[-1]), fields)

    def version(self, table: TableName) -> str:
        """Changes whenever the table does; cheap."""
        return self._places.version(table)

    def rollback_sql(self, table: TableName, snapshot: str) -> str:
        """A new commit that holds the old rows. Hudi's own restore would delete the commits in between for good."""
        now = self.describe(table).columns
        then = {column.name for column in self._columns(table, snapshot)}
        picked = ", ".join(
            f"`{column.name}`" if column.name in then else f"CAST(NULL AS {column.type}) AS `{column.name}`"
            for column in now
        )
        return f"INSERT OVERWRITE TABLE {table} SELECT {picked} FROM {table} VERSION AS OF '{snapshot}'"

    def place_for_new(self, table: TableName) -> str:
        return self._places.place_for_new(table)

    def drop(self, table: TableName) -> None:
        if not self._places.drop(table):
            raise NoSuchTableError(str(table))

    def undrop(self, table: TableName) -> bool:
        return self._places.undrop(table)

    def dropped(self) -> Sequence[TableName]:
        return self._places.dropped()

    def _place(self, table: TableName) -> str:
        """The URI of the table's folder."""
        place = self._places.find(table)
        if place is None:
            raise NoSuchTableError(str(table))
        return place

    def _columns(self, table: TableName, snapshot: str) -> tuple[Column, ...]:
        """The schema now or at a snapshot, without looking for the files that hold the rows."""
        instants = [instant for instant in self._instants(table) if not snapshot or instant.id <= snapshot]
        return timeline.columns(instants[-1]) if instants else _columns_at_creation(self._properties(table))

    def _instants(self, table: TableName) -> list[Instant]:
        return timeline.instants(timeline.open_table(self._place(table), self._places.access))

    def _properties(self, table: TableName) -> dict[str, str]:
        lines = self._places.read(f"{self._place(table)}/.hoodie/hoodie.properties").decode().splitlines()
        pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
        return {key: value.replace("\\:", ":") for key, value in pairs}


def _columns_at_creation(properties: dict[str, str]) -> tuple[Column, ...]:
    """The schema of a table that nothing has been written to yet."""
    return timeline.columns_of(properties.get("hoodie.table.create.schema") or '{"fields": []}')


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip().split(":")[0] for part in text.split(",") if part.strip())
