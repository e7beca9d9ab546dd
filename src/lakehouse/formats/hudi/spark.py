"""Hudi tables in Spark: a session has to register them in Spark's session catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakehouse.core.names import TableName
from lakehouse.core.quoting import spark_text
from lakehouse.core.tables import SchemaCopy
from lakehouse.formats.hudi.locations import Locations
from lakehouse.formats.hudi.metadata import read_metadata

#: Hudi's tables are in Spark's own session catalog; `lake` is Iceberg's.
SPARK_CATALOG = "spark_catalog"

SETTINGS = {
    # By default Hudi deletes the files of all but the last 10 commits and archives its timeline while it writes. Time
    # travel further back then fails or, worse, reads the wrong files.
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    # The timeline server opens a port on every interface.
    "hoodie.embed.timeline.server": "false",
    # Each write commits to Hudi's metadata table too, and often compacts it: one row took 2.5 s of processor time instead
    # of 1.0. Hudi 1.2 does not close its files either: each write leaks a dozen connections, until S3A has none left and
    # every statement waits forever.
    "hoodie.metadata.enable": "false",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.datasource.overwrite.mode": "STATIC",
    # The default is two hundred tasks, even for three rows.
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.insert.shuffle.parallelism": "2",
    "hoodie.bulkinsert.shuffle.parallelism": "2",
    "hoodie.delete.shuffle.parallelism": "2",
}
METASTORE_SETTINGS = {
    # After it updates the metastore, Hudi refreshes the table by a two-part name, which would mean Iceberg's catalog.
    "spark.sql.defaultCatalog": SPARK_CATALOG,
}


class HudiSpark:
    """Implements `SparkTables`."""

    settings: Mapping[str, str] = SETTINGS

    def __init__(self, locations: Locations) -> None:
        self._locations = locations
        self.write_settings: Mapping[str, str] = METASTORE_SETTINGS if locations.registered else {}

    def name(self, table: TableName) -> str:
        return f"{SPARK_CATALOG}.`{table.namespace}`.`{table.table}`"

    def rows(self, table: TableName, snapshot: str = "") -> str:
        # Without Hudi's own five columns, so that a table has the same columns in every engine.
        names = ", ".join(f"`{column.name}`" for column in read_metadata(self._locations, table).columns(snapshot))
        at = f" TIMESTAMP AS OF '{snapshot}'" if snapshot else ""
        return f"(SELECT {names} FROM {self.name(table)}{at})"

    def current_snapshot(self, table: TableName) -> str:
        return ""

    def setup(self, table: TableName) -> Sequence[str]:
        name, location = self.name(table), self._locations.find(table)
        if self._locations.registered:
            # The session has the table from the metastore, but maybe an old schema of it.
            return (f"REFRESH TABLE {name}",) if location else ()
        folder = spark_text(self._locations.folder(table.namespace))
        database = f"CREATE DATABASE IF NOT EXISTS {SPARK_CATALOG}.`{table.namespace}` LOCATION {folder}"
        if location is None:
            # The session may still know a table that was dropped; it has no files that the statement could delete.
            return (database, f"DROP TABLE IF EXISTS {name}")
        create = f"CREATE TABLE IF NOT EXISTS {name} USING hudi LOCATION {spark_text(location)}"
        return (database, create, f"REFRESH TABLE {name}")

    def setup_version(self, table: TableName) -> str:
        return self._locations.version(table)

    def schema_copy(self, table: TableName) -> SchemaCopy | None:
        if self._locations.registered or self._locations.find(table) is None:
            return None  # Hudi itself updates the metastore
        metadata = read_metadata(self._locations, table)
        if not metadata.instants:
            return None  # a table without commits has the schema that it was created with
        return SchemaCopy(table, "hudi", metadata.location, metadata.columns(), metadata.partitioning)

    def rollback_sql(self, table: TableName, snapshot: str) -> str:
        """Insert the old rows in a new commit. Hudi's own restore would delete the commits in between."""
        metadata = read_metadata(self._locations, table)
        then = {column.name for column in metadata.columns(snapshot)}
        selected = ", ".join(
            f"`{column.name}`" if column.name in then else f"CAST(NULL AS {column.type}) AS `{column.name}`"
            for column in metadata.columns()
        )
        return f"INSERT OVERWRITE TABLE {table} SELECT {selected} FROM {table} VERSION AS OF '{snapshot}'"

    def new_location(self, table: TableName) -> str:
        return self._locations.new_location(table)
