"""A lake for the command line whose tables PyIceberg made, and commands run in this process where that is enough."""

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
    """A command that has run."""

    code: int
    out: str
    err: str

    def rows(self) -> list[dict[str, Any]]:
        return list(json.loads(self.out))


Call = Callable[..., Done]


def make_shop(home: Path) -> Path:
    ready = LocalHome(home).ready()
    catalog = SqlCatalog(open_database(ready.catalog_file), f"file://{ready.warehouse}")
    catalog.tables()
    theirs = PyIceberg("lake", **catalog.pyiceberg_properties())
    theirs.create_namespace("shop")
    table = theirs.create_table("shop.orders", schema=ORDERS.schema)
    table.append(ORDERS.slice(0, 1))
    table.append(ORDERS.slice(1))
    theirs.create_table("shop.empty", schema=ORDERS.schema)
    theirs.close()
    return home


@pytest.fixture(scope="session")
def shop_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with shop.orders (3 rows in 2 snapshots) and shop.empty, only to be read."""
    return make_shop(tmp_path_factory.mktemp("shop") / "lake")


@pytest.fixture
def call(shop_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs a command against the shop in this process, as the entry point does after it has looked for help."""
    monkeypatch.setenv("LAKE_HOME", str(shop_home))

    def calling(*arguments: str) -> Done:
        capsys.readouterr()
        code = run(list(arguments))
        told = capsys.readouterr()
        return Done(code, told.out, told.err)

    return calling
