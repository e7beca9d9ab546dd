"""Every way in which the city's files differ from each other ends in the same schema."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.pipelines.taxi.source.conftest import FILE, NOW, Contexts
from tests.support.taxi_trips import read_month

from lakehouse.core.errors import SourceError
from lakehouse.pipelines.taxi import source as taxi
from lakehouse.pipelines.taxi.sample import write_month
from lakehouse.pipelines.taxi.source.published import TRIPS

NAMES = [column.name for column in TRIPS]
PICKUP, DROPOFF = datetime(2026, 1, 14, 8, 30, 15), datetime(2026, 1, 14, 8, 45, 16, 123456)

pytestmark = pytest.mark.spark


def one_trip(**other: pa.Array | None) -> dict[str, pa.Array]:
    """A row of the newest files, with some columns stored otherwise, or (None) not at all."""
    moment = pa.timestamp("us")
    columns = {
        "VendorID": pa.array([2], pa.int32()),
        "tpep_pickup_datetime": pa.array([PICKUP], moment),
        "tpep_dropoff_datetime": pa.array([DROPOFF], moment),
        "passenger_count": pa.array([1], pa.int64()),
        "trip_distance": pa.array([3.2]),
        "RatecodeID": pa.array([1], pa.int64()),
        "store_and_fwd_flag": pa.array(["N"], pa.large_string()),
        "PULocationID": pa.array([138], pa.int32()),
        "DOLocationID": pa.array([265], pa.int32()),
        "payment_type": pa.array([1], pa.int64()),
        **{name: pa.array([float(place)]) for place, name in enumerate(NAMES[10:])},
    } | other
    return {name: values for name, values in columns.items() if values is not None}


def published(spark: SparkSession, folder: Path, **other: pa.Array | None) -> dict[str, Any]:
    """What becomes of such a row."""
    file = folder / FILE
    pq.write_table(pa.table(one_trip(**other)), file)
    rows, _ = read_month(spark, file)
    assert [(field.name, field.dataType.simpleString()) for field in rows.schema] == [(c.name, c.type) for c in TRIPS]
    (row,) = rows.collect()
    return dict(row.asDict())


def test_the_newest_files_are_read_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    assert published(spark, tmp_path) == {
        "VendorID": 2,
        "tpep_pickup_datetime": PICKUP,
        "tpep_dropoff_datetime": DROPOFF,
        "passenger_count": 1,
        "trip_distance": 3.2,
        "RatecodeID": 1,
        "store_and_fwd_flag": "N",
        "PULocationID": 138,
        "DOLocationID": 265,
        "payment_type": 1,
        **{name: float(place) for place, name in enumerate(NAMES[10:])},
    }


@pytest.mark.parametrize("stored", [pa.int32(), pa.int64(), pa.float64(), pa.float32(), pa.int8(), pa.uint8()], ids=str)
def test_whole_numbers_are_the_same_however_they_are_stored(
    spark: SparkSession, tmp_path: Path, stored: pa.DataType
) -> None:
    whole = [column.name for column in TRIPS if column.type == "bigint"]
    row = published(spark, tmp_path, **{column: pa.array([6]).cast(stored) for column in whole})
    assert [row[column] for column in whole] == [6] * len(whole)


def test_what_is_no_whole_number_is_null_and_not_another_number(spark: SparkSession, tmp_path: Path) -> None:
    odd = {"VendorID": float("nan"), "passenger_count": float("inf"), "RatecodeID": 1.5, "payment_type": None}
    row = published(spark, tmp_path, **{name: pa.array([value], pa.float64()) for name, value in odd.items()})
    assert [row[name] for name in odd] == [None] * len(odd)


@pytest.mark.parametrize("stored", [pa.int64(), pa.int32(), pa.float32()], ids=str)
def test_amounts_may_be_stored_as_other_numbers(spark: SparkSession, tmp_path: Path, stored: pa.DataType) -> None:
    assert published(spark, tmp_path, fare_amount=pa.array([12]).cast(stored))["fare_amount"] == 12.0


@pytest.mark.parametrize(
    "stored",
    [pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("ms"), pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC")],
    ids=str,
)
def test_times_are_the_digits_that_are_stored_whatever_the_zone_of_the_session(
    spark: SparkSession, tmp_path: Path, stored: pa.DataType
) -> None:
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        row = published(spark, tmp_path, tpep_pickup_datetime=pa.array([PICKUP], pa.timestamp("us")).cast(stored))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert row["tpep_pickup_datetime"] == PICKUP


def test_times_as_old_writers_stored_them_are_read_too(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / FILE
    pq.write_table(pa.table(one_trip()), file, use_deprecated_int96_timestamps=True)
    rows, _ = read_month(spark, file)
    assert rows.first()["tpep_dropoff_datetime"] == DROPOFF  # type: ignore[index]


def test_nanoseconds_of_a_whole_month_keep_every_second(spark: SparkSession, tmp_path: Path) -> None:
    month = write_month(tmp_path, "2026-01", rows=500)
    nanos = tmp_path / "yellow_tripdata_2026-02.parquet"
    duckdb.sql(
        f"COPY (SELECT * REPLACE (tpep_pickup_datetime::TIMESTAMP_NS AS tpep_pickup_datetime) FROM '{month}') TO '{nanos}'"
    )
    given, _ = read_month(spark, month)
    also, _ = read_month(spark, nanos)
    assert also.exceptAll(given).count() == 0


@pytest.mark.parametrize("spelt", ["Airport_fee", "AIRPORT_FEE"])
def test_airport_fee_may_be_spelt_in_any_case(spark: SparkSession, tmp_path: Path, spelt: str) -> None:
    assert published(spark, tmp_path, airport_fee=None, **{spelt: pa.array([1.75])})["airport_fee"] == 1.75


def test_columns_that_came_later_are_null_before(spark: SparkSession, tmp_path: Path) -> None:
    late = ["congestion_surcharge", "airport_fee", "cbd_congestion_fee"]
    row = published(spark, tmp_path, **dict.fromkeys(late))
    assert [row[name] for name in late] == [None, None, None]


def test_columns_without_a_type_are_null(spark: SparkSession, tmp_path: Path) -> None:
    empty = ["airport_fee", "congestion_surcharge", "store_and_fwd_flag", "passenger_count", "tpep_dropoff_datetime"]
    row = published(spark, tmp_path, **{name: pa.nulls(1) for name in empty})
    assert [row[name] for name in empty] == [None] * len(empty)


@pytest.mark.parametrize("column", [column.name for column in TRIPS if column.every_year])
def test_a_file_without_a_column_of_every_year_is_refused(spark: SparkSession, tmp_path: Path, column: str) -> None:
    with pytest.raises(SourceError, match=f"has no column {column}, which"):
        published(spark, tmp_path, **{column: None})


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("fare_amount", pa.array(["12.50"])),
        ("tpep_pickup_datetime", pa.array(["2026-01-14 08:30:15"])),
        ("tpep_pickup_datetime", pa.array([1768379415], pa.int64())),
        ("VendorID", pa.array([PICKUP], pa.timestamp("us"))),
        ("store_and_fwd_flag", pa.array([True])),
    ],
    ids=["text for money", "text for a time", "a number for a time", "a time for a number", "a boolean for text"],
)
def test_a_column_that_is_something_else_altogether_is_refused(
    spark: SparkSession, tmp_path: Path, column: str, values: pa.Array
) -> None:
    with pytest.raises(SourceError, match=f"stores the column {column} as"):
        published(spark, tmp_path, **{column: values})


def test_a_folder_with_the_letters_of_a_pattern_means_itself(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "trips [x] {a,b} 100% #1"
    folder.mkdir()
    assert published(spark, folder)["VendorID"] == 2


@pytest.mark.parametrize("month", ["2018-06", "2023-01", "2023-02", "2026-01"])
def test_a_month_of_every_era_has_one_schema_and_its_lineage(
    spark: SparkSession, tmp_path: Path, month: str, context: Contexts
) -> None:
    file = write_month(tmp_path, month, rows=50)
    read = taxi.read(context(month, spark, path=str(tmp_path)))
    assert read.rows.columns == [*NAMES, "month", "source_file", "ingested_at"]
    first = read.rows.first()
    assert first is not None
    assert (first["month"], first["source_file"]) == (month, file.name)
    assert first["ingested_at"].astimezone(NOW.tzinfo) == NOW
    assert set(read.notes) == {"source", "bytes", "sha256"}
    assert read.rows.count() == pq.read_metadata(file).num_rows


def test_a_column_that_is_not_known_is_left_out_and_named(
    spark: SparkSession, tmp_path: Path, context: Contexts
) -> None:
    pq.write_table(pa.table(one_trip(moon_fee=pa.array([0.5]))), tmp_path / FILE)
    read = taxi.read(context(spark=spark, path=str(tmp_path)))
    assert "moon_fee" not in read.rows.columns
    assert read.notes["left_out"] == "moon_fee"
    assert context.messages == [f"{FILE} has an unknown column moon_fee, which is left out"]
