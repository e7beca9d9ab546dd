"""Lakes to ask about, written without a JVM: the tables of the demo in small, a shop with another schema, and one of many tables."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakehouse.lake import Lake

_MONEY = pa.decimal128(12, 2)
_PRICE = pa.decimal128(18, 6)
_TICKERS = ("AAPL", "AMD", "MSFT", "TSLA")


def fill_demo(lake: Lake) -> None:
    """The tables of `lake demo` that questions are about, with the same columns."""
    _add(lake, "silver.stg_yellow_trips", _trips(800), _TRIPS)
    _add(lake, "bronze.yellow_trips", [{"trip_id": n} for n in range(30)], {"trip_id": pa.int64()})
    bars = _bars()
    _add(lake, "gold.daily_bars", bars, _BARS)
    movements = [
        {"ticker": bar["ticker"], "date": bar["date"], "realised_volatility": 0.01 + n / 1000, "gap": n / 500 - 0.01}
        for n, bar in enumerate(bars)
    ]
    _add(lake, "gold.volatility", movements, _VOLATILITY)
    _add(lake, "silver.minute_aggs", _minutes(), _MINUTES)
    _add(lake, "crm.leads", _LEAD_ROWS, _LEADS, key=["id"])
    _add(lake, "demo.leads", _LEAD_ROWS, _LEADS, key=["id"])
    _add(lake, "demo.customers", _CUSTOMER_ROWS, _CUSTOMERS, key=["id"])
    _add(lake, "demo.orders", _ORDER_ROWS, _ORDERS)


def _add(
    lake: Lake, table: str, rows: list[dict[str, Any]], types: dict[str, pa.DataType], key: list[str] | None = None
) -> None:
    lake.ingest_rows(pa.Table.from_pylist(rows, pa.schema(list(types.items()))), table, key=key or ())


_TRIPS = {
    "vendor_id": pa.int32(),
    "pickup_at": pa.timestamp("us"),
    "dropoff_at": pa.timestamp("us"),
    "pickup_date": pa.date32(),
    "pickup_hour": pa.int32(),
    "duration_minutes": _MONEY,
    "passenger_count": pa.int32(),
    "trip_distance": _MONEY,
    "speed_mph": _MONEY,
    "rate_code": pa.string(),
    "store_and_forward": pa.bool_(),
    "pickup_location_id": pa.int32(),
    "dropoff_location_id": pa.int32(),
    "payment_type_id": pa.int32(),
    "payment_type": pa.string(),
    "fare_amount": _MONEY,
    "tip_amount": _MONEY,
    "tolls_amount": _MONEY,
    "total_amount": _MONEY,
    "month": pa.string(),
}


def _trips(count: int) -> list[dict[str, Any]]:
    chance, rows = random.Random(7), []
    payments = ("credit card", "cash", "dispute", "flex fare", "no charge")
    for _ in range(count):
        at = datetime(2025, 12, 1) + timedelta(minutes=chance.randrange(62 * 24 * 60))
        minutes, miles = Decimal(chance.randrange(200, 6000)) / 100, Decimal(chance.randrange(30, 2500)) / 100
        fare, tip = Decimal(chance.randrange(300, 7000)) / 100, Decimal(chance.randrange(0, 900)) / 100
        payment = chance.choices(range(5), (55, 20, 9, 8, 8))[0]
        rows.append(
            {
                "vendor_id": chance.choice((1, 2)),
                "pickup_at": at,
                "dropoff_at": at + timedelta(minutes=float(minutes)),
                "pickup_date": at.date(),
                "pickup_hour": at.hour,
                "duration_minutes": minutes,
                "passenger_count": chance.choice((1, 1, 1, 2, 3, 4, 5, None)),
                "trip_distance": miles,
                "speed_mph": Decimal(chance.randrange(500, 4000)) / 100,
                "rate_code": chance.choice(("standard", "standard", "JFK", None)),
                "store_and_forward": chance.random() < 0.1,
                "pickup_location_id": chance.randrange(1, 20),
                "dropoff_location_id": chance.randrange(1, 20),
                "payment_type_id": payment,
                "payment_type": payments[payment],
                "fare_amount": fare,
                "tip_amount": tip,
                "tolls_amount": Decimal(0),
                "total_amount": fare + tip,
                "month": f"{at:%Y-%m}",
            }
        )
    return rows


_BARS = {
    "ticker": pa.string(),
    "date": pa.date32(),
    "open": _PRICE,
    "high": _PRICE,
    "low": _PRICE,
    "close": _PRICE,
    "volume": pa.int64(),
    "vwap": _PRICE,
    "trades": pa.int64(),
}
_VOLATILITY = {"ticker": pa.string(), "date": pa.date32(), "realised_volatility": pa.float64(), "gap": pa.float64()}
_MINUTES = {
    "ticker": pa.string(),
    "bar_at": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
    "session": pa.string(),
    "volume": pa.int64(),
}


def _bars() -> list[dict[str, Any]]:
    chance, rows = random.Random(8), []
    for ticker in _TICKERS:
        for day in (14, 15, 16):
            price = Decimal(chance.randrange(20_000_000, 90_000_000)) / 1_000_000
            prices = {"open": price, "high": price + 2, "low": price - 2, "close": price + 1, "vwap": price}
            volume = chance.randrange(400_000, 900_000)
            rows.append(
                {"ticker": ticker, "date": date(2026, 1, day), **prices, "volume": volume, "trades": volume // 60}
            )
    return rows


def _minutes() -> list[dict[str, Any]]:
    chance, rows = random.Random(9), []
    for ticker in _TICKERS:
        for hour, session in ((9, "pre"), (15, "regular"), (16, "regular"), (22, "post")):
            at = datetime(2026, 1, 14, hour, tzinfo=UTC)
            rows.append(
                {"ticker": ticker, "bar_at": at, "date": at.date(), "session": session, "volume": chance.randrange(999)}
            )
    return rows


_LEADS = {
    "id": pa.int64(),
    "full_name": pa.string(),
    "e_mail": pa.string(),
    "score": pa.int64(),
    "city": pa.string(),
}
_LEAD_ROWS: list[dict[str, Any]] = [
    {"id": 1, "full_name": "Ada Lovelace", "e_mail": "ada@example.org", "score": 10, "city": None},
    {"id": 2, "full_name": "Edsger", "e_mail": "edsger@example.org", "score": 9, "city": "Austin"},
    {"id": 3, "full_name": "Grace", "e_mail": "grace@example.org", "score": 8, "city": "New York"},
]
_CUSTOMERS = {"id": pa.int64(), "name": pa.string(), "city": pa.string()}
_CUSTOMER_ROWS: list[dict[str, Any]] = [
    {"id": 10, "name": "Ada", "city": "London"},
    {"id": 11, "name": "Edsger", "city": "Austin"},
    {"id": 12, "name": "Grace", "city": "New York"},
]
_ORDERS = {
    "id": pa.int64(),
    "customer": pa.int64(),
    "item": pa.string(),
    "price": pa.decimal128(10, 2),
    "at": pa.timestamp("us", "UTC"),
}
_ORDER_ROWS: list[dict[str, Any]] = [
    {"id": n, "customer": customer, "item": item, "price": Decimal(price), "at": datetime(2026, 1, day, 9, tzinfo=UTC)}
    for n, customer, item, price, day in (
        (1, 10, "tea", "2.80", 14),
        (2, 11, "mate", "3.20", 14),
        (3, 10, "coffee", "2.90", 15),
        (4, 12, "cocoa", "3.50", 16),
    )
]


def fill_fleet(lake: Lake) -> None:
    """Vessels, their voyages and the incidents on them: a schema that no layer describes."""
    chance = random.Random(3)
    flags, ports, cargo = (
        ("Malta", "Panama", "Liberia"),
        ("Genoa", "Oslo", "Lagos", "Santos", "Busan"),
        ("grain", "oil", "cars"),
    )
    vessels = [
        {
            "id": n,
            "name": f"Vessel {n}",
            "flag": flags[n % 3],
            "built_year": 1990 + n * 3,
            "capacity_tons": 9000.5 * n,
            "is_active": n % 4 > 0,
        }
        for n in range(1, 12)
    ]
    voyages = []
    for n in range(1, 61):
        start = datetime(2025, 11, 20, tzinfo=UTC) + timedelta(hours=21 * n)
        origin, destination = chance.sample(ports, 2)
        voyages.append(
            {
                "id": n,
                "vessel_id": chance.randrange(1, 12),
                "origin": origin,
                "destination": destination,
                "departed_at": start,
                "arrived_at": start + timedelta(days=chance.randrange(2, 9)),
                "distance_nm": chance.randrange(300, 5000) / 2,
                "fuel_tons": chance.randrange(100, 900) / 4,
                "cargo_type": chance.choice(cargo),
            }
        )
    incidents = [
        {
            "id": n,
            "voyage_id": chance.randrange(1, 61),
            "kind": chance.choice(("fire", "collision", "delay")),
            "severity": chance.randrange(1, 6),
            "reported_on": date(2025, 12, 1) + timedelta(days=chance.randrange(45)),
            "cost": Decimal(chance.randrange(10_000, 900_000)) / 100,
        }
        for n in range(1, 41)
    ]
    _add(lake, "fleet.vessels", vessels, _inferred(vessels), key=["id"])
    _add(lake, "fleet.voyages", voyages, _inferred(voyages), key=["id"])
    _add(lake, "fleet.incidents", incidents, _inferred(incidents), key=["id"])


def _inferred(rows: list[dict[str, Any]]) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in pa.Table.from_pylist(rows).schema}
