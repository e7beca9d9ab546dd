"""A catalog is filled once, and never over other tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.core.errors import TableExistsError
from lakehouse.core.names import TableName
from lakehouse.core.state import CatalogState, TableEntry
from lakehouse.tables.fill import fill, has_main

ORDERS = TableEntry(TableName("shop", "orders"), "file:///w/orders/1.metadata.json")
ITEMS = TableEntry(TableName("shop", "items"), "file:///w/items/1.metadata.json")
VIEW = TableEntry(TableName("shop", "recent"), "file:///w/recent/1.metadata.json", is_view=True)
ONE = CatalogState(main=(ORDERS,))


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    return SqlCatalog(open_database(tmp_path / "catalog.db"), f"file://{tmp_path}")


def test_the_second_call_finds_what_the_first_one_filled(catalog: SqlCatalog) -> None:
    state = CatalogState(main=(ORDERS, VIEW))
    for _ in range(2):
        assert fill(catalog, state) == []
        assert set(catalog.dump_state().main) == {ORDERS, VIEW}


@pytest.mark.parametrize("wanted", [CatalogState(), ONE, CatalogState(main=(VIEW,))], ids=["none", "a table", "a view"])
def test_a_catalog_with_other_tables_is_not_taken_for_filled(catalog: SqlCatalog, wanted: CatalogState) -> None:
    catalog.load_state(CatalogState(main=(*wanted.main, ITEMS)))
    with pytest.raises(TableExistsError, match="not empty"):
        fill(catalog, wanted)
    assert ITEMS in catalog.dump_state().main


def test_a_shared_catalog_may_have_tables_of_others() -> None:
    others = CatalogState(main=(ORDERS, ITEMS))
    assert has_main(others, CatalogState(main=(ORDERS, VIEW)), shared=True)
    assert not has_main(others, CatalogState(main=(replace(ORDERS, pointer="file:///w/2"),)), shared=True)
    assert not has_main(CatalogState(main=(ITEMS,)), ONE, shared=True)
