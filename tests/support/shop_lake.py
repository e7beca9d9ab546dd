"""A small lake whose tables PyIceberg made, so that no test here needs the JVM."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow
import pytest
from pyiceberg.catalog.sql import SqlCatalog as PyIceberg

from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.config.load import load_settings
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble
from lakehouse.storage.local import LocalHome

ORDERS = pyarrow.table(
    {
        "id": pyarrow.array([1, 2, 3, 4, None], pyarrow.int32()),
        "item": ["tea", "Mate", None, "it's", "tea"],
        "customer": pyarrow.array([10, 20, 10, None, 30], pyarrow.int64()),
        "price": pyarrow.array([Decimal("2.50"), Decimal("3.20"), Decimal("-1.00"), None, Decimal("0.00")]),
        "weight": [1.5, None, float("nan"), 0.0, -2.25],
        "day": [date(2026, 1, 31), date(2026, 2, 1), None, date(2025, 12, 31), date(2026, 1, 31)],
        "at": pyarrow.array(
            [datetime(2026, 1, 31, 23, 30, tzinfo=UTC), None, datetime(2026, 6, 1, tzinfo=UTC)] * 1 + [None, None],
            pyarrow.timestamp("us", "UTC"),
        ),
        "paid": [True, False, None, True, False],
    }
)
CUSTOMERS = pyarrow.table({"id": pyarrow.array([10, 20, 40], pyarrow.int64()), "name": ["Ada", "Bob", None]})

Open = Callable[[], Lake]


@pytest.fixture(scope="session")
def shop_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with shop.orders, shop.customers and shop.refunds that tests only read."""
    home = LocalHome(tmp_path_factory.mktemp("shop") / "lake").ready()
    theirs = pyiceberg_on(home)
    theirs.create_namespace("shop")
    theirs.create_table("shop.orders", schema=ORDERS.schema).append(ORDERS)
    theirs.create_table("shop.customers", schema=CUSTOMERS.schema).append(CUSTOMERS)
    theirs.create_table("shop.refunds", schema=ORDERS.schema).append(ORDERS.slice(0, 1))
    theirs.create_namespace("default")
    theirs.create_table("default.loose", schema=CUSTOMERS.schema).append(CUSTOMERS)
    theirs.close()
    return home.folder


@pytest.fixture(scope="session")
def shop(shop_home: Path) -> Iterator[Lake]:
    """The lake of `shop_home`, opened."""
    with assemble(load_settings({"home": shop_home}, environ={})) as lake:
        yield lake


@pytest.fixture(scope="session")
def own_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lake, LocalHome]]:
    """One lake that tests change. It is shared because DuckDB takes longer to load than a test to run."""
    home = LocalHome(tmp_path_factory.mktemp("own") / "lake").ready()
    with assemble(load_settings({"home": home.folder}, environ={})) as lake:
        yield lake, home


@pytest.fixture
def emptied(own_lake: tuple[Lake, LocalHome]) -> tuple[Lake, LocalHome]:
    """The lake without a table or a namespace in its catalog, whatever the test before left there."""
    lake, home = own_lake
    lake.dropped()  # makes the catalog on first use
    db = sqlite3.connect(home.catalog_file)
    for table in ("iceberg_tables", "iceberg_namespace_properties", "lake_dropped"):
        db.execute(f"DELETE FROM {table}")
    db.commit()
    db.close()
    return own_lake


@pytest.fixture
def open_lake(emptied: tuple[Lake, LocalHome]) -> Open:
    """Gives the lake; it is empty at first."""
    return lambda: emptied[0]


@pytest.fixture
def pyiceberg(emptied: tuple[Lake, LocalHome]) -> Iterator[PyIceberg]:
    """PyIceberg on the same lake, with a namespace shop."""
    theirs = pyiceberg_on(emptied[1])
    theirs.create_namespace("shop")
    yield theirs
    theirs.close()


def pyiceberg_on(home: LocalHome) -> PyIceberg:
    catalog = SqlCatalog(open_database(home.catalog_file), f"file://{home.warehouse}")
    catalog.tables()
    return PyIceberg("lake", **catalog.pyiceberg_properties())
