"""Read the city's files of any year into one schema.

The files disagree: integers that are doubles in some years, times in micro- and nanoseconds, `Airport_fee` beside
`airport_fee`, columns that were added later, columns of nulls that have no type. By itself, Spark refuses nanoseconds
and columns without a type; with the physical types of the file's footer as its schema, it reads them all.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import SourceError
from lakehouse.pipelines import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@dataclass(frozen=True)
class PublishedColumn:
    """One column: its name in the newest files, its type in the lake, and whether every year has it."""

    name: str
    type: str
    every_year: bool = True


#: One schema for all years. Integers have the widest type of any year; times are New York wall time, without a zone.
TRIPS = (
    PublishedColumn("VendorID", "bigint"),
    PublishedColumn("tpep_pickup_datetime", "timestamp_ntz"),
    PublishedColumn("tpep_dropoff_datetime", "timestamp_ntz"),
    PublishedColumn("passenger_count", "bigint"),
    PublishedColumn("trip_distance", "double"),
    PublishedColumn("RatecodeID", "bigint"),
    PublishedColumn("store_and_fwd_flag", "string"),
    PublishedColumn("PULocationID", "bigint"),
    PublishedColumn("DOLocationID", "bigint"),
    PublishedColumn("payment_type", "bigint"),
    PublishedColumn("fare_amount", "double"),
    PublishedColumn("extra", "double"),
    PublishedColumn("mta_tax", "double"),
    PublishedColumn("tip_amount", "double"),
    PublishedColumn("tolls_amount", "double"),
    PublishedColumn("improvement_surcharge", "double"),
    PublishedColumn("total_amount", "double"),
    PublishedColumn("congestion_surcharge", "double", every_year=False),
    PublishedColumn("airport_fee", "double", every_year=False),
    PublishedColumn("cbd_congestion_fee", "double", every_year=False),
)

_EPOCH = "1970-01-01 00:00:00"
_PER_SECOND = {"milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
_NUMBERS = {"INT32": "int", "INT64": "bigint", "FLOAT": "float", "DOUBLE": "double"}


class ParquetFile(Protocol):
    """A file to read: its name in messages, its location for Spark, and its bytes for the footer."""

    @property
    def name(self) -> str: ...

    @property
    def uri(self) -> str: ...

    def open(self) -> BinaryIO: ...


@dataclass(frozen=True)
class StoredColumn:
    """One column as a file stores it."""

    name: str
    type: str
    """The physical type as Spark names it; empty if the column has no type."""
    ticks_per_second: int = 0
    """The unit of a time that is stored as an integer."""


def read_published(spark: SparkSession, file: ParquetFile) -> tuple[DataFrame, list[str]]:
    """A file's rows in the common schema, and the names of its unknown columns.

    Raises:
        SourceError: the file lacks a column that every year has, or stores one with an incompatible type.
    """
    stored = stored_columns(file)
    columns = [_column(target, stored.get(target.name.lower()), file) for target in TRIPS]
    known = {target.name.lower() for target in TRIPS}
    unknown = sorted(column.name for key, column in stored.items() if key not in known)
    rows = spark.read.schema(_schema(list(stored.values()), known)).parquet(_escaped(file.uri))
    return rows.select(*columns), unknown


def with_lineage(rows: DataFrame, month: str, source_file: str, now: datetime) -> DataFrame:
    """Add the month and name of the file, and the time of the ingest."""
    return rows.select(
        "*",
        F.lit(month).alias("month"),
        F.lit(source_file).alias("source_file"),
        F.lit(now).alias("ingested_at"),
    )


def stored_columns(file: ParquetFile) -> dict[str, StoredColumn]:
    """The columns of a file's footer by lower-case name."""
    from pyarrow import parquet

    with file.open() as content, parquet.ParquetFile(content) as opened:
        schema = opened.schema
        columns = [_stored(schema.column(position)) for position in range(len(schema))]
    return {column.name.lower(): column for column in columns}


def _stored(column: Any) -> StoredColumn:
    logical, physical = column.logical_type.type, column.physical_type
    if logical in ("NULL", "UNKNOWN"):  # a column of nulls, in old and new versions of Parquet
        return StoredColumn(column.name, "")
    if logical == "TIMESTAMP":
        description = str(column.logical_type)
        unit = next(unit for unit in _PER_SECOND if unit in description)
        if unit == "microseconds" and "isAdjustedToUTC=false" in description:
            return StoredColumn(column.name, "timestamp_ntz")  # read natively, which is much faster than arithmetic
        return StoredColumn(column.name, "bigint", _PER_SECOND[unit])
    if physical == "INT96":
        return StoredColumn(column.name, "timestamp", _PER_SECOND["microseconds"])
    if logical == "STRING":
        return StoredColumn(column.name, "string")
    if logical in ("NONE", "INT") and physical in _NUMBERS:
        return StoredColumn(column.name, _NUMBERS[physical])
    return StoredColumn(column.name, f"{physical} ({logical})")


def _schema(stored: list[StoredColumn], known: set[str]) -> str:
    read = [column for column in stored if column.type and column.name.lower() in known]
    return ", ".join(f"`{column.name}` {column.type}" for column in read)


def _column(target: PublishedColumn, stored: StoredColumn | None, file: ParquetFile) -> Column:
    if stored is None and target.every_year:
        raise SourceError(
            f"{file.name} has no column {target.name}, which the files of every year have.",
            "The file is not a month of yellow trips, or the city has changed its format.",
        )
    if stored is None or not stored.type:
        return F.lit(None).cast(target.type).alias(target.name)
    return _converted(target, stored, file).alias(target.name)


def _converted(target: PublishedColumn, stored: StoredColumn, file: ParquetFile) -> Column:
    value = F.col(f"`{stored.name}`")
    if target.type == "timestamp_ntz" and stored.ticks_per_second:
        ticks = F.unix_micros(value) if stored.type == "timestamp" else value
        return _wall_time(ticks, stored.ticks_per_second)
    numbers = set(_NUMBERS.values())
    fits: dict[str, set[str]] = {
        "bigint": numbers,
        "double": numbers,
        "string": {"string"},
        "timestamp_ntz": {"timestamp_ntz"},
    }
    if stored.type not in fits[target.type] or stored.ticks_per_second:
        raise SourceError(
            f"{file.name} stores the column {stored.name} as {stored.type}, not as {target.type}.",
            "The file is not a month of yellow trips, or the city has changed its format.",
        )
    if target.type == "bigint" and stored.type in ("float", "double"):
        # A plain cast would turn NaN into 0 and 1.5 into 1.
        return F.when(value == F.floor(value), value.cast("bigint"))
    return value.cast(target.type)


def _wall_time(ticks: Column, per_second: int) -> Column:
    """The stored wall time without a zone, whatever the zones of the session and the file are."""
    zero = F.lit(0)
    # Decimals: a double cannot hold today's time in nanoseconds.
    seconds = (ticks.cast("decimal(20,0)") / F.lit(per_second).cast("decimal(10,0)")).cast("decimal(18,6)")
    return F.lit(_EPOCH).cast("timestamp_ntz") + F.make_dt_interval(zero, zero, zero, seconds)


def _escaped(path: str) -> str:
    """Escape the pattern characters that Spark interprets in a path."""
    return "".join(f"\\{letter}" if letter in "[]{}*?\\" else letter for letter in path)
