"""Write rows to Iceberg tables with Spark: staged files by statements, or DataFrames in a session of the branch.

Each change is one snapshot. Both write through the same MERGE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import reduce
from operator import and_, or_
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.core.dataclass import dataclass
from lakehouse.core.format import TableFormat, spark_tables
from lakehouse.core.names import TableName
from lakehouse.core.quoting import spark_text, spark_type
from lakehouse.core.tables import Column as TableColumn
from lakehouse.tables.write import PartitionKeys, StagedRows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameWriterV2, SparkSession
    from pyspark.sql.types import StructType

_PROPERTIES = {
    # From the summary, the next table knows which partitions changed, without reading data.
    "write.summary.partition-limit": "1000",
    # Half the time of zstd's default level for a tenth more bytes (bench/pipelines.py).
    "write.parquet.compression-level": "1",
    # Small splits keep all cores busy until the end of a stage.
    "read.split.target-size": str(16 * 2**20),
}
_DELETED = "_lake_deleted"
#: The view of staged rows.
STAGED = "lake_staged"
#: Up to this many partitions each task keeps a file open for each, so the rows need no sort. Every open file buffers
#: a row group: with thousands of them the JVM runs out of memory, and rows are sorted by partition instead.
_MAX_OPEN_PARTITIONS = 256
#: With at most this many ranges, contiguous days are selected by ranges instead of a list: Spark plans a few comparisons
#: faster than a list of thousands.
_MAX_RANGES = 50


@dataclass(frozen=True)
class StatementWriter:
    """Writes staged rows to one table by statements.

    Args:
        run: runs a statement on Spark, in which `STAGED` is a view of the files in a folder.
    """

    table: TableName
    run: Callable[[str, Path], None]

    def append(self, rows: StagedRows, columns: Sequence[TableColumn]) -> None:
        self.run(f"INSERT INTO {self.table.spark} {select_staged(rows, columns)}", rows.folder)

    def merge(self, rows: StagedRows, columns: Sequence[TableColumn], key: Sequence[str]) -> None:
        names = [column.name for column in columns]
        marked = [*columns, TableColumn(rows.deleted, "boolean")] if rows.deleted else columns
        self.run(_merge(self.table.spark, f"({select_staged(rows, marked)})", names, key, rows.deleted), rows.folder)

    def overwrite(self, rows: StagedRows, columns: Sequence[TableColumn]) -> None:
        self.run(f"INSERT OVERWRITE TABLE {self.table.spark} {select_staged(rows, columns)}", rows.folder)


def select_staged(rows: StagedRows, columns: Sequence[TableColumn]) -> str:
    """SELECT the staged rows in the types of the table."""
    values = (
        f"CAST({rows.expression(column, f'`{column.name}`')} AS {spark_type(column.type)}) AS `{column.name}`"
        for column in columns
    )
    return f"SELECT {', '.join(values)} FROM {STAGED}"


def _merge(table: str, source: str, columns: Sequence[str], key: Sequence[str], deleted: str = "") -> str:
    """MERGE the rows of a source by key; those for which the column `deleted` is true are deleted."""
    same = " AND ".join(f"t.`{column}` <=> s.`{column}`" for column in key)
    updates = ", ".join(f"t.`{column}` = s.`{column}`" for column in columns)
    deletes, inserts = (f" WHEN MATCHED AND s.{deleted} THEN DELETE", f" AND NOT s.{deleted}") if deleted else ("", "")
    return (
        f"MERGE INTO {table} t USING {source} s ON {same}{deletes} WHEN MATCHED THEN UPDATE SET {updates}"
        f" WHEN NOT MATCHED{inserts} THEN INSERT ({', '.join(f'`{column}`' for column in columns)})"
        f" VALUES ({', '.join(f's.`{column}`' for column in columns)})"
    )


@dataclass(frozen=True)
class Layout:
    """The layout of a new table."""

    partition_by: str = ""
    key: Sequence[str] = ()
    comment: str = ""


@dataclass(frozen=True)
class FrameWriter:
    """Writes DataFrames to tables of a branch, in a session that uses the branch's catalog."""

    spark: SparkSession
    tables: TableFormat
    """The Iceberg tables of the branch."""

    def prepare(self, table: TableName, schema: StructType, layout: Layout) -> None:
        """Create the table, or add the columns that it lacks and widen types where Iceberg can."""
        name = spark_tables(self.tables).name(table)
        if not self.tables.has(table):
            self.spark.sql(_create(name, schema, layout))
            return
        existing = {column.name: column.type for column in self.tables.describe(table).columns}
        new = [
            f"`{field.name}` {field.dataType.simpleString()}" for field in schema if field.name.lower() not in existing
        ]
        if new:
            self.spark.sql(f"ALTER TABLE {name} ADD COLUMNS ({', '.join(new)})")
        for field in schema:
            kind = field.dataType.simpleString()
            if existing.get(field.name.lower(), kind) != kind:
                self.spark.sql(f"ALTER TABLE {name} ALTER COLUMN `{field.name}` TYPE {kind}")

    def replace(
        self, table: TableName, rows: DataFrame, partitions: PartitionKeys | None, notes: Mapping[str, str]
    ) -> None:
        """Replace the rows of some partitions, or all rows. One snapshot."""
        from pyspark.sql import functions as F

        few = partitions is None or len(partitions.keys) <= _MAX_OPEN_PARTITIONS
        writer = self._writer(table, self._conform(table, rows), notes)
        writer = writer.option("distribution-mode", "none" if few else "hash").option(
            "fanout-enabled", str(few).lower()
        )
        writer.overwrite(F.lit(True) if partitions is None else in_partitions(partitions))

    def merge(self, table: TableName, rows: DataFrame, key: Sequence[str], present: DataFrame | None) -> bool:
        """Insert and update rows, and delete those whose key is not in `present`: one snapshot, or none if nothing differs."""
        from pyspark.sql import functions as F

        current = self.tables.describe(table).current
        if current is None or not current.rows_total:
            self._writer(table, self._conform(table, rows), {}).append()
            return True
        changes = self._differing(table, rows).withColumn(_DELETED, F.lit(False))
        if present is not None:
            gone = self.spark.table(spark_tables(self.tables).name(table)).join(present, on=list(key), how="left_anti")
            changes = changes.unionByName(gone.withColumn(_DELETED, F.lit(True)))
        changes.persist()  # computed once, for the question and for the answer
        try:
            if changes.isEmpty():
                return False
            self._apply(table, changes, key)
        finally:
            changes.unpersist()
        return True

    def _apply(self, table: TableName, changes: DataFrame, key: Sequence[str]) -> None:
        """Insert, update and delete the rows of `changes`. One snapshot."""
        view = f"lake_changes_{table.namespace}_{table.table}"  # tables are merged concurrently
        changes.createOrReplaceTempView(view)
        columns = [column for column in changes.columns if column != _DELETED]
        self.spark.sql(_merge(spark_tables(self.tables).name(table), f"`{view}`", columns, key, _DELETED))

    def _differing(self, table: TableName, rows: DataFrame) -> DataFrame:
        """The rows that differ from the table's: MERGE rewrites the files of every row that it matches."""
        incoming = self._conform(table, rows).alias("s")
        existing = self.spark.table(spark_tables(self.tables).name(table)).alias("t")
        same = [incoming[name].eqNullSafe(existing[name]) for name in incoming.columns]
        return incoming.join(existing, on=reduce(and_, same), how="left_anti")

    def append(self, table: TableName, rows: DataFrame, notes: Mapping[str, str]) -> None:
        """Append rows. One snapshot."""
        self._writer(table, self._conform(table, rows), notes).append()

    def _writer(self, table: TableName, rows: DataFrame, notes: Mapping[str, str]) -> DataFrameWriterV2:
        """A writer that adds notes to its snapshot."""
        writer = rows.writeTo(spark_tables(self.tables).name(table))
        for key, value in notes.items():
            writer = writer.option(f"snapshot-property.lake.{key}", value)
        return writer

    def _conform(self, table: TableName, rows: DataFrame) -> DataFrame:
        """The rows in the table's columns and types; missing columns are null."""
        from pyspark.sql import functions as F

        by_lower = {name.lower(): name for name in rows.columns}
        return rows.select(
            *(
                (F.col(by_lower[column.name]) if column.name in by_lower else F.lit(None))
                .cast(column.type)
                .alias(column.name)
                for column in self.tables.describe(table).columns
            )
        )


def _create(name: str, schema: StructType, layout: Layout) -> str:
    columns = ", ".join(f"`{field.name.lower()}` {field.dataType.simpleString()}" for field in schema)
    parts = f" PARTITIONED BY ({layout.partition_by})" if layout.partition_by else ""
    comment = f" COMMENT {spark_text(layout.comment)}" if layout.comment else ""
    table_properties = {**_PROPERTIES, **({"lake.key": ",".join(layout.key)} if layout.key else {})}
    properties = ", ".join(f"{spark_text(key)} = {spark_text(value)}" for key, value in table_properties.items())
    return f"CREATE TABLE {name} ({columns}) USING iceberg{parts}{comment} TBLPROPERTIES ({properties})"


def in_partitions(partitions: PartitionKeys) -> Column:
    """The condition that a row is in one of these partitions, and in no other."""
    from pyspark.sql import functions as F

    column, keys = partitions.column, partitions.keys
    # Typed literals: Iceberg's overwrite by condition does not understand casts.
    if partitions.type != "date":
        return F.expr(f"`{column}` IN ({', '.join(map(spark_text, keys)) or 'NULL'})")
    ranges = contiguous_days(keys)
    if 0 < len(ranges) <= min(_MAX_RANGES, len(keys) // 2):
        return reduce(or_, (F.col(column).between(F.lit(first), F.lit(last)) for first, last in ranges))
    # One expression: a literal of its own for each key takes Python's way to the JVM a millisecond each.
    return F.expr(f"`{column}` IN ({', '.join(f'DATE {spark_text(key)}' for key in keys) or 'NULL'})")


def contiguous_days(keys: Sequence[str]) -> list[tuple[date, date]]:
    """The ranges of days without a gap, first and last day included, that cover exactly these keys."""
    ranges: list[tuple[date, date]] = []
    for day in sorted(map(date.fromisoformat, keys)):
        if ranges and (day - ranges[-1][1]).days <= 1:
            ranges[-1] = (ranges[-1][0], day)
        else:
            ranges.append((day, day))
    return ranges
