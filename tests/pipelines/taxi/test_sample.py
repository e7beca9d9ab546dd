"""Generated months: the same for the same seed, in the schema of their year, with the dirt that is promised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from lakehouse.pipelines.taxi.sample import file_name, write_month


def one(file: Path, question: str) -> Any:
    answer = duckdb.sql(f"SELECT {question} FROM '{file}'").fetchone()
    assert answer is not None
    return answer[0]


def types(file: Path) -> dict[str, str]:
    return {row[0]: row[1] for row in duckdb.sql(f"DESCRIBE FROM '{file}'").fetchall()}


def test_the_same_seed_makes_the_same_rows_and_another_makes_others(tmp_path: Path) -> None:
    first, again, other = (
        duckdb.sql(f"FROM '{write_month(tmp_path / name, '2026-01', 500, seed)}'").fetchall()
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("month", "passengers", "vendor", "airport_fee", "cbd"),
    [
        ("2022-06", "DOUBLE", "BIGINT", "airport_fee", False),
        ("2023-02", "BIGINT", "INTEGER", "Airport_fee", False),
        ("2025-01", "BIGINT", "INTEGER", "Airport_fee", True),
    ],
)
def test_a_month_has_the_schema_of_its_year(
    tmp_path: Path, month: str, passengers: str, vendor: str, airport_fee: str, cbd: bool
) -> None:
    columns = types(write_month(tmp_path, month, 10))
    assert (columns["passenger_count"], columns["RatecodeID"], columns["VendorID"]) == (passengers, passengers, vendor)
    assert airport_fee in columns
    assert ("cbd_congestion_fee" in columns) == cbd
    assert len(columns) == 19 + cbd
    assert columns["tpep_pickup_datetime"] == "TIMESTAMP"


def test_before_2019_there_is_no_congestion_surcharge(tmp_path: Path) -> None:
    assert one(write_month(tmp_path, "2018-06", 100), "count(congestion_surcharge)") == 0


def test_a_month_has_all_its_dirt(tmp_path: Path) -> None:
    file = write_month(tmp_path, "2026-02", 20_000, seed=3)
    assert file.name == file_name("2026-02")
    assert one(file, "count(*) FILTER (fare_amount < 0)") > 100
    assert one(file, "count(*) FILTER (trip_distance = 0)") > 100
    assert one(file, "count(*) FILTER (trip_distance > 1000)") > 3
    assert one(file, "count(*) FILTER (strftime(tpep_pickup_datetime, '%Y-%m') <> '2026-02')") > 5
    assert one(file, "count(*) FILTER (tpep_dropoff_datetime < tpep_pickup_datetime)") > 3
    assert one(file, "count(*) FILTER (passenger_count IS NULL)") > 500
    assert (
        duckdb.sql(
            f"SELECT count(*) - (SELECT count(*) FROM (SELECT DISTINCT * FROM '{file}')) FROM '{file}'"
        ).fetchall()[0][0]
        > 50
    )


def test_most_of_a_month_is_plausible(tmp_path: Path) -> None:
    file = write_month(tmp_path, "2026-02", 20_000)
    assert 2 < one(file, "avg(trip_distance) FILTER (trip_distance < 200)") < 4
    assert one(file, "count(DISTINCT day(tpep_pickup_datetime))") >= 28
    assert one(file, "count(DISTINCT hour(tpep_pickup_datetime))") == 24
    assert abs(one(file, "corr(day(tpep_pickup_datetime), hour(tpep_pickup_datetime))")) < 0.05
