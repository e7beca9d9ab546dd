"""A lake whose tables PyIceberg wrote, and a function that runs commands on it in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyiceberg.catalog.sql import SqlCatalog as PyIceberg

from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.cli.app import run
from lakehouse.storage.local import LocalHome

ORDERS = pyarrow.table(
    {
        "id": pyarrow.array([1, 2, 3], pyarrow.int32()),
        "item": ["tea", 'a "quoted", one', None],
        "price": [Decimal("2.50"), Decimal("12345678901234567890.12"), None],
        "weight": [1.5, float("nan"), None],
        "day": [date(2026, 1, 31), None, None],
        "at": pyarrow.array([datetime(2026, 1, 31, 12, 30, tzinfo=UTC), None, None], pyarrow.timestamp("us", "UTC")),
        "paid": [True, False, None],
        "raw": [b"\x00\xff", None, None],
        "tags": [["a", "b"], [], None],
    }
)


@dataclass(frozen=True)
class Done:
    """The exit code and output of a command."""

    code: int
    out: str
    err: str

    def rows(self) -> list[dict[str, Any]]:
        return list(json.loads(self.out))


Call = Callable[..., Done]


def create_shop(home: Path) -> Path:
    ready = LocalHome(home).ready()
    catalog = SqlCatalog(open_database(ready.catalog_file), f"file://{ready.warehouse}")
    catalog.tables()
    pyiceberg = PyIceberg("lake", **catalog.pyiceberg_properties())
    pyiceberg.create_namespace("shop")
    table = pyiceberg.create_table("shop.orders", schema=ORDERS.schema)
    table.append(ORDERS.slice(0, 1))
    table.append(ORDERS.slice(1))
    pyiceberg.create_table("shop.empty", schema=ORDERS.schema)
    pyiceberg.close()
    return home


@pytest.fixture(scope="session")
def shop_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with shop.orders (3 rows in 2 snapshots) and shop.empty; tests only read it."""
    return create_shop(tmp_path_factory.mktemp("shop") / "lake")


@pytest.fixture
def call(shop_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Return a function that runs a command on the shop in this process, as the entry point does."""
    monkeypatch.setenv("LAKE_HOME", str(shop_home))

    def run_command(*arguments: str) -> Done:
        capsys.readouterr()
        code = run(list(arguments))
        printed = capsys.readouterr()
        return Done(code, printed.out, printed.err)

    return run_command
