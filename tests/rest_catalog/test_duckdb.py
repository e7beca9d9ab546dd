"""DuckDB attaches the catalog, reads and writes, offline: its extensions come from wheels."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from tests.support.servers.rest_catalog import Serve, Served


def connected() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"})
    for name in ("avro", "httpfs", "iceberg"):
        package = importlib.util.find_spec(f"duckdb_extension_{name}")
        assert package is not None and package.submodule_search_locations
        folder = package.submodule_search_locations[0]
        connection.execute(f"LOAD '{folder}/extensions/v{duckdb.__version__}/{name}.duckdb_extension'")
    return connection


@pytest.fixture
def duck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[duckdb.DuckDBPyConnection]:
    monkeypatch.chdir(tmp_path)  # DuckDB's CREATE TABLE AS leaves an empty folder `data` in the working folder
    with connected() as connection:
        yield connection


def attach(duck: duckdb.DuckDBPyConnection, served: Served, warehouse: str = "lake", name: str = "lake") -> None:
    duck.execute(f"ATTACH '{warehouse}' AS {name} (TYPE ICEBERG, ENDPOINT '{served.url}', TOKEN '{served.token}')")


def test_duckdb_makes_fills_changes_and_drops_tables(duck: duckdb.DuckDBPyConnection, serve: Serve) -> None:
    served = serve()
    attach(duck, served)
    duck.execute("CREATE SCHEMA lake.crm")
    duck.execute("CREATE TABLE lake.crm.leads (id BIGINT, note VARCHAR)")
    duck.execute("INSERT INTO lake.crm.leads VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    duck.execute("UPDATE lake.crm.leads SET note = 'z' WHERE id = 1")
    duck.execute("DELETE FROM lake.crm.leads WHERE id = 2")
    duck.execute("ALTER TABLE lake.crm.leads ADD COLUMN score INTEGER")
    duck.execute("CREATE TABLE lake.crm.numbers AS SELECT range AS n FROM range(10)")
    assert duck.execute("SELECT * FROM lake.crm.leads ORDER BY id").fetchall() == [(1, "z", None), (3, "c", None)]
    beside = served.pyiceberg()
    assert sorted(beside.load_table("crm.leads").scan().to_arrow()["note"].to_pylist()) == ["c", "z"]
    assert beside.load_table("crm.numbers").scan().to_arrow().num_rows == 10
    duck.execute("DROP TABLE lake.crm.numbers")
    assert beside.list_tables("crm") == [("crm", "leads")]


def test_two_tables_in_one_transaction_of_duckdb_are_one_in_the_catalog(
    duck: duckdb.DuckDBPyConnection, serve: Serve
) -> None:
    served = serve()
    attach(duck, served)
    duck.execute("CREATE SCHEMA lake.crm")
    for name in "ab":
        duck.execute(f"CREATE TABLE lake.crm.{name} (id BIGINT)")
        duck.execute(f"INSERT INTO lake.crm.{name} VALUES (1)")

    def transaction() -> None:
        duck.execute("BEGIN")
        for name in "ab":
            duck.execute(f"INSERT INTO lake.crm.{name} VALUES (2)")

    beside = served.pyiceberg()

    def counted() -> list[int]:
        return [beside.load_table(f"crm.{name}").scan().to_arrow().num_rows for name in "ab"]

    transaction()
    assert counted() == [1, 1]
    duck.execute("COMMIT")
    assert counted() == [2, 2]
    transaction()
    import pyarrow

    beside.load_table("crm.b").append(pyarrow.table({"id": pyarrow.array([9], pyarrow.int64())}))
    with pytest.raises(duckdb.Error, match="Requirement failed"):
        duck.execute("COMMIT")
    assert counted() == [2, 3]


def test_a_branch_is_attached_by_the_name_of_the_warehouse(duck: duckdb.DuckDBPyConnection, serve: Serve) -> None:
    served = serve()
    attach(duck, served)
    duck.execute("CREATE SCHEMA lake.crm")
    duck.execute("CREATE TABLE lake.crm.leads (id BIGINT)")
    duck.execute("INSERT INTO lake.crm.leads VALUES (1)")
    served.catalog.create_branch("audit")
    attach(duck, served, "lake@audit", "audit")
    duck.execute("INSERT INTO audit.crm.leads VALUES (2)")
    counted = [duck.execute(f"SELECT count(*) FROM {name}.crm.leads").fetchall() for name in ("lake", "audit")]
    assert counted == [[(1,)], [(2,)]]


def test_a_token_is_needed_where_one_is_set(duck: duckdb.DuckDBPyConnection, serve: Serve) -> None:
    served = serve(tokens=["open-sesame"])
    served.pyiceberg().create_namespace("crm")
    with pytest.raises(duckdb.Error, match="[Uu]nauthorized|401"):
        duck.execute(f"ATTACH 'lake' AS lake (TYPE ICEBERG, ENDPOINT '{served.url}', AUTHORIZATION_TYPE 'none')")
        duck.execute("SHOW ALL TABLES")
    duck.execute(f"ATTACH 'lake' AS known (TYPE ICEBERG, ENDPOINT '{served.url}', TOKEN 'open-sesame')")
    duck.execute("CREATE TABLE known.crm.leads AS SELECT 1 AS id")
    assert duck.execute("SELECT * FROM known.crm.leads").fetchall() == [(1,)]
