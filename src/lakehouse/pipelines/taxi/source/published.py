"""The columns that the city publishes, all years taken together, and how a file of any year becomes them.

The files disagree: whole numbers that are doubles in some years, times in micro- and nanoseconds, `Airport_fee` beside
`airport_fee`, columns that came later, columns that hold nothing and so have no type. Spark alone refuses nanoseconds and
columns without a type; given the physical types of the file's own footer, it reads them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.core.errors import SourceError
from lakehouse.core.uris import file_uri

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@dataclass(frozen=True)
class Published:
    """One column: its name in the newest files, its type in ours, and whether every year has it."""

    name: str
    type: str
    every_year: bool = True


#: One schema for all years. Whole numbers are as wide as any year has them; times are New York wall time, without a zone.
TRIPS = (
    Published("VendorID", "bigint"),
    Published("tpep_pickup_datetime", "timestamp_ntz"),
    Published("tpep_dropoff_datetime", "timestamp_ntz"),
    Published("passenger_count", "bigint"),
    Published("trip_distance", "double"),
    Published("RatecodeID", "bigint"),
    Published("store_and_fwd_flag", "string"),
    Published("PULocationID", "bigint"),
    Published("DOLocationID", "bigint"),
    Published("payment_type", "bigint"),
    Published("fare_amount", "double"),
    Published("extra", "double"),
    Published("mta_tax", "double"),
    Published("tip_amount", "double"),
    Published("tolls_amount", "double"),
    Published("improvement_surcharge", "double"),
    Published("total_amount", "double"),
    Published("congestion_surcharge", "double", every_year=False),
    Published("airport_fee", "double", every_year=False),
    Published("cbd_congestion_fee", "double", every_year=False),
)

_EPOCH = "1970-01-01 00:00:00"
_PER_SECOND = {"milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
_NUMBERS = {"INT32": "int", "INT64": "bigint", "FLOAT": "float", "DOUBLE": "double"}


@dataclass(frozen=True)
class Stored:
    """One column as a file stores it."""

    name: str
    type: str
    """What Spark is told to read: the physical type, in its words; nothing if the column has no type of its own."""
    ticks_per_second: int = 0
    """Of a time: what the whole number that it is stored as counts."""


def read_published(spark: SparkSession, file: Path) -> tuple[DataFrame, list[str]]:
    """A file's rows in the one schema, and the names of columns that it has and we do not know.

    Raises:
        SourceError: the file lacks a column that every year has, or stores one as something else altogether.
    """
    stored = stored_columns(file)
    columns = [_column(wanted, stored.get(wanted.name.lower()), file) for wanted in TRIPS]
    known = {wanted.name.lower() for wanted in TRIPS}
    unknown = sorted(column.name for key, column in stored.items() if key not in known)
    rows = spark.read.schema(_schema(list(stored.values()), known)).parquet(_literally(file_uri(file)))
    return rows.select(*columns), unknown


def with_lineage(rows: DataFrame, month: str, source_file: str, now: datetime) -> DataFrame:
    """The rows with the month of their file, its name, and when they came into the lake."""
    from pyspark.sql import functions as F

    return rows.select(
        "*",
        F.lit(month).alias("month"),
        F.lit(source_file).alias("source_file"),
        F.lit(now).alias("ingested_at"),
    )


def stored_columns(file: Path) -> dict[str, Stored]:
    """The columns of a file's footer by their names in lower case."""
    from pyarrow import parquet

    with parquet.ParquetFile(file) as opened:
        schema = opened.schema
        columns = [_stored(schema.column(place)) for place in range(len(schema))]
    return {column.name.lower(): column for column in columns}


def _stored(column: Any) -> Stored:
    logical, physical = column.logical_type.type, column.physical_type
    if logical in ("NULL", "UNKNOWN"):  # what Parquet calls a column of nothing, in two of its wordings
        return Stored(column.name, "")
    if logical == "TIMESTAMP":
        told = str(column.logical_type)
        unit = next(unit for unit in _PER_SECOND if unit in told)
        if unit == "microseconds" and "isAdjustedToUTC=false" in told:
            return Stored(column.name, "timestamp_ntz")  # which is what Spark itself makes of these, and much faster
        return Stored(column.name, "bigint", _PER_SECOND[unit])
    if physical == "INT96":
        return Stored(column.name, "timestamp", _PER_SECOND["microseconds"])
    if logical == "STRING":
        return Stored(column.name, "string")
    if logical in ("NONE", "INT") and physical in _NUMBERS:
        return Stored(column.name, _NUMBERS[physical])
    return Stored(column.name, f"{physical} ({logical})")


def _schema(stored: list[Stored], known: set[str]) -> str:
    read = [column for column in stored if column.type and column.name.lower() in known]
    return ", ".join(f"`{column.name}` {column.type}" for column in read)


def _column(wanted: Published, stored: Stored | None, file: Path) -> Column:
    from pyspark.sql import functions as F

    if stored is None and wanted.every_year:
        raise SourceError(
            f"{file.name} has no column {wanted.name}, which the files of every year have.",
            "It is not a month of yellow trips, or the city has changed the format.",
        )
    if stored is None or not stored.type:
        return F.lit(None).cast(wanted.type).alias(wanted.name)
    return _as_wanted(wanted, stored, file).alias(wanted.name)


def _as_wanted(wanted: Published, stored: Stored, file: Path) -> Column:
    from pyspark.sql import functions as F

    value = F.col(f"`{stored.name}`")
    if wanted.type == "timestamp_ntz" and stored.ticks_per_second:
        ticks = F.unix_micros(value) if stored.type == "timestamp" else value
        return _wall_time(ticks, stored.ticks_per_second)
    numbers = set(_NUMBERS.values())
    fits: dict[str, set[str]] = {
        "bigint": numbers,
        "double": numbers,
        "string": {"string"},
        "timestamp_ntz": {"timestamp_ntz"},
    }
    if stored.type not in fits[wanted.type] or stored.ticks_per_second:
        raise SourceError(
            f"{file.name} stores the column {stored.name} as {stored.type}, which is no {wanted.type}.",
            "It is not a month of yellow trips, or the city has changed the format.",
        )
    if wanted.type == "bigint" and stored.type in ("float", "double"):
        # A cast alone would make 0 of NaN and 1 of 1.5.
        return F.when(value == F.floor(value), value.cast("bigint"))
    return value.cast(wanted.type)


def _wall_time(ticks: Column, per_second: int) -> Column:
    """The digits that are stored, as a time without a zone: whatever zone the session, or the file, thinks it is in."""
    from pyspark.sql import functions as F

    zero = F.lit(0)
    # In decimals: a double does not hold the nanoseconds of our days.
    seconds = (ticks.cast("decimal(20,0)") / F.lit(per_second).cast("decimal(10,0)")).cast("decimal(18,6)")
    return F.lit(_EPOCH).cast("timestamp_ntz") + F.make_dt_interval(zero, zero, zero, seconds)


def _literally(path: str) -> str:
    """Spark takes a path for a pattern; this one means itself."""
    return "".join(f"\\{letter}" if letter in "[]{}*?\\" else letter for letter in path)
