"""Generate sample months of yellow taxi trips, in the schema of their year and with the invalid values of real ones.

Distances, fares and hours are random but plausible; the same seed gives the same rows.
"""

from __future__ import annotations

import hashlib
import os
from datetime import date
from pathlib import Path

from lakehouse.core.dataclass import dataclass

#: One in this many rows has each kind of invalid value that the city publishes every month.
_ONE_IN = {
    "refund": 60,  # the same trip once more, all amounts negative
    "duplicate": 200,  # the same row twice
    "zero_distance": 70,
    "absurd_distance": 2_000,
    "other_month": 1_000,
    "backwards": 1_500,  # dropoff before pickup
    "unreported": 20,  # no passengers, rate code and flag
}


@dataclass(frozen=True)
class _Shape:
    """The column types of a period of published files."""

    whole: str
    """Vendor and locations."""
    counted: str
    """Passengers and rate codes, which are doubles in the years in which they can be null."""
    airport_fee: str
    congestion: bool
    cbd_fee: bool


def file_name(month: str) -> str:
    """The city's name of a month's file."""
    return f"yellow_tripdata_{month}.parquet"


def write_month(folder: Path, month: str, rows: int = 100_000, seed: int = 0) -> Path:
    """Write a month (2026-01) with about this many rows to a folder; the same seed gives the same rows."""
    import duckdb

    folder.mkdir(parents=True, exist_ok=True)
    file = folder / file_name(month)
    unfinished = file.with_suffix(".writing")
    target = str(unfinished).replace("'", "''")
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({_published(month, rows, seed)}) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
    os.replace(unfinished, file)
    return file


def _shape(month: str) -> _Shape:
    early = month < "2023-02"
    return _Shape(
        whole="BIGINT" if early else "INTEGER",
        counted="DOUBLE" if early else "BIGINT",
        airport_fee="airport_fee" if early else "Airport_fee",
        congestion=month >= "2019-02",
        cbd_fee=month >= "2025-01",
    )


def _number(seed: str, what: str) -> str:
    """A pseudo-random number by row, seed and purpose. (Hashes of several columns are not independent.)"""
    start = int.from_bytes(hashlib.sha256(f"{seed} {what}".encode()).digest()[:7])
    return f"hash(trip + {start})"


def _draw(seed: str, what: str) -> str:
    """A pseudo-random fraction in [0, 1)."""
    return f"(({_number(seed, what)} >> 11)::DOUBLE / 9007199254740992.0)"


def _one_in(seed: str, what: str) -> str:
    return f"({_number(seed, 'dirt ' + what)} % {_ONE_IN[what]} = 0)"


def _trips(month: str, rows: int, seed: str) -> str:
    """The trips: time, distance, fare, and which invalid values each one has."""
    first = date.fromisoformat(f"{month}-01")
    days = (date(first.year + first.month // 12, first.month % 12 + 1, 1) - first).days
    evening = f"greatest({_draw(seed, 'hour')}, {_draw(seed, 'hour again')})"
    flags = ", ".join(f"{_one_in(seed, what)} AS is_{what}" for what in _ONE_IN)
    return f"""
    SELECT *,
        round(3.0 + 2.8 * miles + 0.25 * seconds / 60, 1) AS fare,
        CASE WHEN payment = 1 THEN round(tip_rate * (3.0 + 2.8 * miles), 2) ELSE 0 END AS tip
    FROM (
        SELECT trip, {flags},
            TIMESTAMP '{first} 00:00:00'
                + to_days(CAST(floor({_draw(seed, "day")} * {days}) AS INTEGER))
                + to_seconds(CAST(floor({evening} * 86400) AS BIGINT)) AS picked_up,
            round(0.3 - 2.6 * ln(1 - 0.9999 * {_draw(seed, "miles")}), 2) AS miles,
            60 + CAST(floor((0.3 - 2.6 * ln(1 - 0.9999 * {_draw(seed, "miles")}))
                * (150 + 250 * {_draw(seed, "traffic")})) AS BIGINT) AS seconds,
            [1, 1, 1, 1, 1, 1, 1, 2, 2, 0, 3, 4][1 + CAST(floor({_draw(seed, "payment")} * 12) AS INTEGER)] AS payment,
            0.1 + 0.2 * {_draw(seed, "tip")} AS tip_rate,
            1 + CAST(floor({_draw(seed, "vendor")} * 2) AS INTEGER) AS vendor,
            1 + CAST(floor({_draw(seed, "passengers")} * {_draw(seed, "company")} * 6) AS INTEGER) AS passengers,
            CASE WHEN {_draw(seed, "rate")} < 0.95 THEN 1 ELSE 2 END AS rate,
            1 + CAST(floor({_draw(seed, "from")} * 263) AS INTEGER) AS pickup_zone,
            1 + CAST(floor({_draw(seed, "to")} * 263) AS INTEGER) AS dropoff_zone
        FROM range({rows}) AS numbers(trip)
    )"""


def _published(month: str, rows: int, seed: int) -> str:
    """The trips in the published schema of that month."""
    shape = _shape(month)
    congestion = "CAST(sign * 2.5 AS DOUBLE)" if shape.congestion else "CAST(NULL AS DOUBLE)"
    cbd_fee = (
        ', CAST(sign * CASE WHEN pickup_zone < 100 THEN 0.75 ELSE 0 END AS DOUBLE) AS "cbd_congestion_fee"'
        if shape.cbd_fee
        else ""
    )
    surcharges = 1.5 + (2.5 if shape.congestion else 0)
    return f"""
    WITH trips AS ({_trips(month, rows, f"{month} {seed}")}),
    copies AS (
        SELECT *, 1.0 AS sign, 0 AS copy FROM trips
        UNION ALL SELECT *, 1.0, 1 FROM trips WHERE is_duplicate
        UNION ALL SELECT *, -1.0, 2 FROM trips WHERE is_refund
    ),
    dirty AS (
        SELECT * REPLACE (
            CASE WHEN is_zero_distance THEN 0.0 WHEN is_absurd_distance THEN miles + 90000 ELSE miles END AS miles,
            CASE WHEN is_other_month THEN picked_up - INTERVAL 400 DAY ELSE picked_up END AS picked_up,
            CASE WHEN is_backwards THEN -seconds ELSE seconds END AS seconds
        ) FROM copies
    )
    SELECT
        CAST(vendor AS {shape.whole}) AS "VendorID",
        picked_up AS "tpep_pickup_datetime",
        picked_up + to_seconds(seconds) AS "tpep_dropoff_datetime",
        CAST(CASE WHEN NOT is_unreported THEN passengers END AS {shape.counted}) AS "passenger_count",
        CAST(miles AS DOUBLE) AS "trip_distance",
        CAST(CASE WHEN NOT is_unreported THEN rate END AS {shape.counted}) AS "RatecodeID",
        CASE WHEN NOT is_unreported THEN CASE WHEN trip % 150 = 0 THEN 'Y' ELSE 'N' END END AS "store_and_fwd_flag",
        CAST(pickup_zone AS {shape.whole}) AS "PULocationID",
        CAST(dropoff_zone AS {shape.whole}) AS "DOLocationID",
        CAST(payment AS BIGINT) AS "payment_type",
        CAST(sign * fare AS DOUBLE) AS "fare_amount",
        CAST(sign * 0.0 AS DOUBLE) AS "extra",
        CAST(sign * 0.5 AS DOUBLE) AS "mta_tax",
        CAST(sign * tip AS DOUBLE) AS "tip_amount",
        CAST(0.0 AS DOUBLE) AS "tolls_amount",
        CAST(sign * 1.0 AS DOUBLE) AS "improvement_surcharge",
        CAST(sign * round(fare + tip + {surcharges}, 2) AS DOUBLE) AS "total_amount",
        {congestion} AS "congestion_surcharge",
        CAST(NULL AS DOUBLE) AS "{shape.airport_fee}"{cbd_fee}
    FROM dirty ORDER BY trip, copy"""
