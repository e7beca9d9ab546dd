"""The same suite for Hudi's tables, in folders and in a metastore; and the document that both suites make."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.engines import Engine, settings_of
from tests.contract.hudi import HUDI, OurLake, SparkOnFolders, SparkOnHive, TrinoOnHive
from tests.contract.matrix import CHANGES, FILE, ICEBERG, Desk, document
from tests.support.repetitions import repetitions
from tests.support.servers.stack import Stack

from lakehouse.core.errors import EngineError, NotSupportedError, QueryRejectedError, UnknownChoiceError
from lakehouse.core.names import TableName
from lakehouse.lake.assemble import assemble
from lakehouse.lake.backend import open_backend

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.stretch("hive")]


# ---- tables in folders ------------------------------------------------------------------------------------------

without_metastore = pytest.mark.stretch("sql")


@pytest.fixture(scope="module")
def folders(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """In the stack's home, so that these tests run where the document is made."""
    lake = stack.lake("embedded")
    engines: dict[str, Engine] = {
        "spark": SparkOnFolders(replace(stack.settings, profile="embedded")),
        "lake": OurLake(lake, tmp_path_factory.mktemp("files")),
    }
    yield Desk(HUDI, "folder", engines, lambda table: int(lake.history(table)[-1].id))
    engines["spark"].close()


#: Who creates and drops a table; both write and read it.
WRITERS = repetitions(smoke=["lake"], full=["spark", "lake"])


@without_metastore
@pytest.mark.faults
@pytest.mark.parametrize("writer", WRITERS)
def test_what_is_done_to_a_folder_all_others_see(folders: Desk, writer: str) -> None:
    folders.try_all_of(writer)


@without_metastore
def test_a_folder_that_hudis_writer_made_by_its_own_settings_is_read_and_not_written_to(folders: Desk) -> None:
    """Its timeline is in another time zone, and Hudi refuses to mix them."""
    spark, lake, table = folders.engines["spark"], folders.engines["lake"], "contract.own_settings"
    assert isinstance(spark, SparkOnFolders)
    spark.write(table, "select 1L as id, 'a' as name", settings="")
    folders.all_read(table, [(1, "a")])
    with pytest.raises(EngineError, match="Config conflict"):
        lake.insert(table, (2, "b"))
    spark.drop(table)


@without_metastore
def test_a_folder_is_not_renamed(folders: Desk) -> None:
    spark, lake, table = folders.engines["spark"], folders.engines["lake"], "contract.kept"
    assert isinstance(spark, SparkOnFolders)
    lake.create(table)
    with pytest.raises(NotSupportedError, match="its name is its folder"):
        lake.rename(table, f"{table}_now")
    spark.run(f"alter table {spark.named(table)} rename to default.kept_now")  # a name of the session alone
    folders.all_read(table, [])
    lake.drop(table)


@without_metastore
@pytest.mark.parametrize("kind", ["sql", "rest", "nessie"])
def test_any_catalog_with_a_local_warehouse_has_the_folders(folders: Desk, stack: Stack, kind: str) -> None:
    folders.engines["lake"].create(f"contract.beside_{kind}")
    beside = replace(stack.settings.catalog, kind=kind, uri="" if kind == "sql" else "http://127.0.0.1:9")
    parts = open_backend(replace(stack.settings, profile="embedded", catalog=beside))
    assert TableName("contract", f"beside_{kind}") in parts.formats["hudi"].tables()
    folders.engines["lake"].drop(f"contract.beside_{kind}")


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("postgres", marks=without_metastore),
        pytest.param("rest", marks=without_metastore),
        pytest.param("nessie", marks=pytest.mark.stretch("nessie")),
    ],
)
def test_a_bucket_without_a_metastore_has_no_place_for_them(stack: Stack, kind: str, tmp_path: Path) -> None:
    settings = settings_of(kind, stack, tmp_path)
    # A Spark of this process, which is never started: the table is refused before.
    in_process = replace(settings, spark=replace(settings.spark, master="local[1]"))
    with (
        assemble(in_process) as lake,
        pytest.raises(UnknownChoiceError, match="Invalid value for USING: 'hudi'") as refused,
    ):
        OurLake(lake, tmp_path).create("contract.nowhere")
    assert "iceberg" in refused.value.hint


# ---- tables in a metastore --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def metastore(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("metastore")
    settings = settings_of("hive", stack, folder)
    open_backend(settings).catalog.ensure_namespace("contract")
    lake = stack.lake("hive")
    engines: dict[str, Engine] = {
        "spark": SparkOnHive(settings),
        "lake": OurLake(lake, folder),
        "trino": TrinoOnHive(settings),
    }
    yield Desk(HUDI, "hive", engines, lambda table: int(lake.history(table)[-1].id))
    for engine in engines.values():
        engine.close()


@pytest.mark.faults
@pytest.mark.parametrize("writer", WRITERS)
def test_what_is_done_in_a_metastore_all_others_see(metastore: Desk, writer: str) -> None:
    metastore.try_all_of(writer)


def test_what_trino_and_the_lake_cannot_do_there_they_refuse(metastore: Desk) -> None:
    lake, trino, table = metastore.engines["lake"], metastore.engines["trino"], "contract.refused"
    lake.create(table)
    lake.insert(table, (1, "a"))
    with pytest.raises(NotSupportedError, match="Hudi"):
        lake.rename(table, f"{table}_now")
    assert isinstance(trino, TrinoOnHive)
    trino.prefix = "hudi."  # where a new table would be Hudi's; in the others it would be Iceberg's or Hive's
    asks = {
        "creates": lambda: trino.create("contract.new"),
        "writes": lambda: trino.run(f"insert into hudi.{table} (id, name) values (2, 'b')"),
        "adds a column": lambda: trino.add_column(table),
        "renames": lambda: trino.rename(table, f"{table}_now"),
        "drops": lambda: trino.drop(table),
        "travels": lambda: trino.read_at(table, metastore.newest(table)),
    }
    assert set(asks) == {*CHANGES, "travels"}
    for ask in asks.values():
        with pytest.raises(QueryRejectedError, match="does not support"):
            ask()
    metastore.all_read(table, [(1, "a")])
    lake.drop(table)


# ---- the document -----------------------------------------------------------------------------------------------


def test_the_tables_in_the_docs_are_what_was_seen(stack: Stack) -> None:
    """Last, since it is about the tests before it, in their lane. WRITE_MATRIX=1 writes the document anew."""
    sections = (ICEBERG, HUDI)
    if missing := [pair for section in sections for pair in section.not_begun()]:
        pytest.skip(f"only a part of test_engines.py and test_hudi.py was run: {len(missing)} not, as {missing[0]}")
    text = document(sections)
    assert "?" not in text, "something was not asked for, or failed"
    if os.environ.get("WRITE_MATRIX"):
        FILE.write_text(text)
    assert FILE.read_text() == text
