"""Completion: the right names in the right places, from metadata that is fetched in the background, without lag."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from tests.cli.conftest import create_shop

import lakehouse.cli.shell.run  # noqa: F401 - registers the commands
from lakehouse.cli.shell.completer import LakeCompleter
from lakehouse.cli.shell.metadata import Metadata
from lakehouse.config.load import load_settings
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble


@pytest.fixture(scope="module")
def lake(shop_home: Path) -> Iterator[Lake]:
    with assemble(load_settings({"home": shop_home}, environ={}), arrow=False) as lake:
        yield lake


@pytest.fixture(scope="module")
def metadata(lake: Lake) -> Metadata:
    names = Metadata(lake)
    assert names.wait(10)
    return names


def offered(metadata: Metadata, text: str) -> list[str]:
    """What Tab offers at the end of a text, once the metadata that it needs is there."""
    completer = LakeCompleter(metadata)
    before, _, after = text.partition("|")
    document = Document(before + after, len(before))
    list(completer.get_completions(document, CompleteEvent()))
    assert metadata.wait(10)
    return [completion.text for completion in completer.get_completions(document, CompleteEvent())]


def test_tables_follow_from_and_join(metadata: Metadata) -> None:
    assert offered(metadata, "select * from ") == ["shop.empty", "shop.orders"]
    assert offered(metadata, "select * from shop.o") == ["shop.orders"]
    assert offered(metadata, "select * from ord") == ["shop.orders"], "found by its last part"
    assert offered(metadata, "insert into shop.e") == ["shop.empty"]


def test_columns_of_the_tables_of_a_statement(metadata: Metadata) -> None:
    assert offered(metadata, "select * from shop.orders where pri")[0] == "price"
    assert offered(metadata, "select o.we| from shop.orders o") == ["weight"]
    assert "price" in offered(metadata, "select pri| from shop.orders")
    assert "price" not in offered(metadata, "select pri")


def test_join_conditions_and_columns_at_the_first_popup(lake: Lake) -> None:
    completer = LakeCompleter(Metadata(lake), patience_s=10)

    def first_popup(text: str) -> list[str]:
        return [offer.text for offer in completer.get_completions(Document(text), CompleteEvent())]

    assert first_popup("select * from shop.orders o join shop.empty on ")[:2] == [
        "o.id = empty.id",
        "o.item = empty.item",
    ]
    completer = LakeCompleter(Metadata(lake), patience_s=10)
    assert first_popup("select * from shop.orders where ")[:2] == ["id", "item"]
    completer = LakeCompleter(Metadata(lake), patience_s=10)
    assert first_popup("select * from shop.orders where pri")[0] == "price"


def test_a_reference_is_the_first_condition_of_a_join(tmp_path: Path) -> None:
    home = create_shop(tmp_path / "shop")
    with assemble(load_settings({"home": home}, environ={}), arrow=False) as lake:
        lake.ingest_rows([{"id": 1, "order_id": 1}], "shop.payments")
        completer = LakeCompleter(Metadata(lake), patience_s=10)
        text = "select * from shop.orders o left join shop.payments p on "
        offers = [offer.text for offer in completer.get_completions(Document(text), CompleteEvent())]
    assert offers[:2] == ["o.id = p.order_id", "o.id = p.id"]


def test_keywords_and_functions_in_the_case_that_is_typed(metadata: Metadata) -> None:
    assert "coalesce" in offered(metadata, "select coal")
    assert "WHERE" in offered(metadata, "select 1 from shop.orders WH")


def test_statements_before_do_not_matter(metadata: Metadata) -> None:
    assert offered(metadata, "select 1 from shop.orders; select pri") == offered(metadata, "select pri")


def test_commands_and_their_arguments(metadata: Metadata, lake: Lake, tmp_path: Path) -> None:
    assert "tables" in offered(metadata, "ta")
    assert "\\timing" in offered(metadata, "\\ti")
    assert offered(metadata, "history shop.") == ["shop.empty", "shop.orders"]
    assert offered(metadata, "use m") == ["main"]
    assert "merge" in offered(metadata, "branch m")
    assert "market" in offered(metadata, "run mark")
    assert offered(metadata, "\\engine d") == ["duckdb"]
    newest = lake.history("shop.orders")[-1].id
    assert offered(metadata, "travel shop.orders ")[0] == newest
    (tmp_path / "leads.csv").write_text("id\n1\n")
    assert offered(metadata, f"insert {tmp_path}/le") == ["ads.csv"]
    assert offered(metadata, "insert a.csv into shop.o") == ["shop.orders"]
    assert offered(metadata, "insert a.csv into shop.orders key pr") == ["price"]


def test_a_lake_that_cannot_be_read_offers_nothing_and_raises_nothing(tmp_path: Path) -> None:
    with assemble(load_settings({"home": tmp_path / "lake"}, environ={})) as lake:
        (tmp_path / "lake" / "catalog.db").write_bytes(b"this is no database" * 100)
        metadata = Metadata(lake)
        assert metadata.wait(10)
        assert offered(metadata, "select * from ") == []


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A lake of 5,000 tables: the entries of the catalog are copies of one."""
    home = create_shop(tmp_path_factory.mktemp("large") / "lake")
    with closing(sqlite3.connect(home / "catalog.db")) as db, db:
        columns = [row[1] for row in db.execute("PRAGMA table_info(iceberg_tables)")]
        copied = ["?" if name in ("table_namespace", "table_name") else name for name in columns]
        names = [(f"ns{number % 50}", f"table_{number:04}") for number in range(5_000)]
        for place in range(2):
            assert columns[1 + place] == ("table_namespace", "table_name")[place]
        db.executemany(
            f"INSERT INTO iceberg_tables ({', '.join(columns)}) SELECT {', '.join(copied)} FROM iceberg_tables"
            " WHERE table_name = 'orders'",
            names,
        )
    with assemble(load_settings({"home": home}, environ={}), arrow=False) as lake:
        yield lake


def test_five_thousand_tables_do_not_slow_down_typing(large: Lake) -> None:
    metadata = Metadata(large)
    completer = LakeCompleter(metadata)
    statement = "select o.price from ns7.table_0007 o join table_1"
    # From the first key on, while the names are still being fetched.
    times = []
    for repetition in range(3):
        for length in range(1, len(statement) + 1):
            started = time.perf_counter()
            completions = list(completer.get_completions(Document(statement[:length]), CompleteEvent()))
            times.append(time.perf_counter() - started)
            assert len(completions) <= 400
        assert metadata.wait(20), repetition
    assert len(metadata.tables.sorted) == 5_002
    assert offered(metadata, "select o.pri| from ns7.table_0007 o") == ["price"]
    assert sorted(times)[len(times) * 9 // 10] < 0.05, (
        f"a tenth of the keys took over {sorted(times)[len(times) * 9 // 10]:.3f} s"
    )
