"""Rows into a table of a run's branch: made if it is missing, brought to the rows' schema, and changed in one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from lakehouse.core.format import TableFormat, spark_tables
from lakehouse.core.names import TableName
from lakehouse.core.quoting import spark_text
from lakehouse.runs.lineage import PARTITIONS_TOLD

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameWriterV2, SparkSession
    from pyspark.sql.types import StructType

_PROPERTIES = {
    # How the next table knows what changed, without reading anything.
    "write.summary.partition-limit": str(PARTITIONS_TOLD),
    # Every task keeps a file open for each partition it meets, which spares sorting the rows by partition.
    "write.spark.fanout.enabled": "true",
    # Half the time of zstd's default for a tenth more bytes; bench/pipelines.py.
    "write.parquet.compression-level": "1",
    # Work is given out in pieces of that size, each of which is a few seconds of it: few and large ones leave cores idle.
    "read.split.target-size": str(16 * 2**20),
}
_DELETED = "_lake_deleted"


@dataclass(frozen=True)
class Layout:
    """What a table that is not there yet will be like."""

    partition_by: str = ""
    key: Sequence[str] = ()
    comment: str = ""


@dataclass(frozen=True)
class Writer:
    """Changes tables on a branch with a session that knows it."""

    spark: SparkSession
    tables: TableFormat
    """The Iceberg tables as the branch has them."""

    def prepare(self, table: TableName, schema: StructType, layout: Layout) -> None:
        """Make the table, or give it the columns that it lacks; types widen where Iceberg can."""
        name = spark_tables(self.tables).name(table)
        if not self.tables.has(table):
            self.spark.sql(_create(name, schema, layout))
            return
        held = {column.name: column.type for column in self.tables.describe(table).columns}
        new = [f"`{each.name}` {each.dataType.simpleString()}" for each in schema if each.name.lower() not in held]
        if new:
            self.spark.sql(f"ALTER TABLE {name} ADD COLUMNS ({', '.join(new)})")
        for each in schema:
            kind = each.dataType.simpleString()
            if held.get(each.name.lower(), kind) != kind:
                self.spark.sql(f"ALTER TABLE {name} ALTER COLUMN `{each.name}` TYPE {kind}")

    def replace(self, table: TableName, rows: DataFrame, where: Column | None, notes: Mapping[str, str]) -> None:
        """Exchange the rows that a condition picks, or all of them, for these. One snapshot."""
        from pyspark.sql import functions as F

        picked = self._as_the_table(table, rows)
        writer = self._noting(table, picked, notes).option("distribution-mode", "none")
        writer.overwrite(F.lit(True) if where is None else where)

    def merge(self, table: TableName, rows: DataFrame, key: Sequence[str], present: DataFrame | None) -> bool:
        """Update, insert and, if the present keys are told, delete: one snapshot, or none if nothing differs."""
        from pyspark.sql import functions as F

        changes = self._different(table, rows).withColumn(_DELETED, F.lit(False))
        if present is not None:
            gone = self.spark.table(spark_tables(self.tables).name(table)).join(present, on=list(key), how="left_anti")
            changes = changes.unionByName(gone.withColumn(_DELETED, F.lit(True)))
        if changes.isEmpty():
            return False
        view = f"lake_changes_{table.namespace}_{table.table}"  # several tables may be merged at once
        changes.createOrReplaceTempView(view)
        columns = [each for each in changes.columns if each != _DELETED]
        same = " AND ".join(f"t.`{each}` <=> s.`{each}`" for each in key)
        updates = ", ".join(f"t.`{each}` = s.`{each}`" for each in columns)
        self.spark.sql(
            f"MERGE INTO {spark_tables(self.tables).name(table)} t USING `{view}` s ON {same}"
            f" WHEN MATCHED AND s.{_DELETED} THEN DELETE WHEN MATCHED THEN UPDATE SET {updates}"
            f" WHEN NOT MATCHED AND NOT s.{_DELETED} THEN INSERT ({', '.join(f'`{each}`' for each in columns)})"
            f" VALUES ({', '.join(f's.`{each}`' for each in columns)})"
        )
        return True

    def _different(self, table: TableName, rows: DataFrame) -> DataFrame:
        """The rows that the table does not hold as they are: MERGE rewrites the files of all rows that it meets."""
        incoming = self._as_the_table(table, rows).alias("s")
        held = self.spark.table(spark_tables(self.tables).name(table)).alias("t")
        same = [incoming[name].eqNullSafe(held[name]) for name in incoming.columns]
        return incoming.join(held, on=reduce(and_, same), how="left_anti")

    def append(self, table: TableName, rows: DataFrame, notes: Mapping[str, str]) -> None:
        """Add rows. One snapshot."""
        self._noting(table, self._as_the_table(table, rows), notes).append()

    def _noting(self, table: TableName, rows: DataFrame, notes: Mapping[str, str]) -> DataFrameWriterV2:
        """A writer whose snapshot will carry notes."""
        writer = rows.writeTo(spark_tables(self.tables).name(table))
        for key, value in notes.items():
            writer = writer.option(f"snapshot-property.lake.{key}", value)
        return writer

    def _as_the_table(self, table: TableName, rows: DataFrame) -> DataFrame:
        """The table's columns in its order and with its types; what the rows lack is null."""
        from pyspark.sql import functions as F

        there = {name.lower(): name for name in rows.columns}
        return rows.select(
            *(
                (F.col(there[column.name]) if column.name in there else F.lit(None))
                .cast(column.type)
                .alias(column.name)
                for column in self.tables.describe(table).columns
            )
        )


def _create(name: str, schema: StructType, layout: Layout) -> str:
    columns = ", ".join(f"`{each.name.lower()}` {each.dataType.simpleString()}" for each in schema)
    parts = f" PARTITIONED BY ({layout.partition_by})" if layout.partition_by else ""
    comment = f" COMMENT {spark_text(layout.comment)}" if layout.comment else ""
    kept = {**_PROPERTIES, **({"lake.key": ",".join(layout.key)} if layout.key else {})}
    properties = ", ".join(f"{spark_text(key)} = {spark_text(value)}" for key, value in kept.items())
    return f"CREATE TABLE {name} ({columns}) USING iceberg{parts}{comment} TBLPROPERTIES ({properties})"
