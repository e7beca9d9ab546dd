"""The texts of TPC-H and TPC-DS are allowed, and those of TPC-H answer through the lake as DuckDB alone answers."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from tests.support.tpc import texts, with_namespace, written_to

from lakehouse.config.load import load_settings
from lakehouse.core.errors import NotSupportedError
from lakehouse.engines.duckdb.connection import load_extension
from lakehouse.lake.assemble import assemble
from lakehouse.query.sql.parser import parse

SCALE = 0.01


@pytest.fixture(scope="module")
def plain() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name in ("tpch", "tpcds"):
        load_extension(connection, name)
    return connection


@pytest.mark.parametrize("dialect", ["spark", "trino"])
@pytest.mark.parametrize(("suite", "count"), [("tpch", 22), ("tpcds", 99)])
def test_every_text_is_allowed(plain: duckdb.DuckDBPyConnection, suite: str, count: int, dialect: str) -> None:
    queries = texts(plain, suite)
    assert len(queries) == count
    assert {parse(text, dialect=dialect).kind for text in queries} == {"read"}


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "generator", "at_least"), [("tpch", "dbgen", 22), ("tpcds", "dsdgen", 95)])
def test_duckdb_runs_the_texts_and_answers_as_it_does_alone(
    plain: duckdb.DuckDBPyConnection, tmp_path: Path, suite: str, generator: str, at_least: int
) -> None:
    plain.execute(f"CREATE OR REPLACE SCHEMA {suite}; USE {suite}; CALL {generator}(sf = {SCALE}, schema = '{suite}')")
    tables = [name for (name,) in plain.execute("show tables").fetchall()]
    answered = 0
    with assemble(load_settings({"home": tmp_path / "lake"}, environ={})) as lake:
        written_to(lake, plain, "main")
        for text in texts(plain, suite):
            try:
                rows = lake.sql(with_namespace(text, tables), engine="duckdb").rows()
            except NotSupportedError:
                continue
            answered += 1
            assert _plain_values(rows) == _plain_values(plain.execute(text).fetchall()), text
    assert answered >= at_least


def _plain_values(rows: list[tuple[object, ...]]) -> list[tuple[str, ...]]:
    """Rows as text, with numbers rounded: DuckDB's decimals have other scales after a translation."""
    return [tuple(_plain_value(value) for value in row) for row in rows]


def _plain_value(value: object) -> str:
    try:
        return f"{float(value):.2f}"  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return str(value)
