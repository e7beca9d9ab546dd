"""The Python API and SQL on a real lake: results, layouts, views, many writers."""

from __future__ import annotations

import subprocess
import sys
import threading
from decimal import Decimal
from pathlib import Path

import pyarrow
import pytest
from tests.conftest import stop_spark

from lakehouse import LakeError, open_lake
from lakehouse.config.settings import Settings
from lakehouse.core.errors import NotSupportedError, QueryRejectedError, UnknownChoiceError
from lakehouse.lake import Lake

pytestmark = pytest.mark.spark


@pytest.fixture
def orders(shared_lake: Lake, namespace: str) -> str:
    table = f"{namespace}.orders"
    shared_lake.sql(f"CREATE TABLE {table} (id INT, price DECIMAL(10,2), at TIMESTAMP) PARTITIONED BY (days(at))")
    shared_lake.sql(
        f"INSERT INTO {table} VALUES (1, 2.50, TIMESTAMP '2026-01-14 09:00:00'),"
        " (2, 3.20, TIMESTAMP '2026-01-15 23:30:00'), (3, NULL, NULL)"
    )
    return table


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_results_are_arrow_pandas_and_polars_with_the_same_types(shared_lake: Lake, orders: str, engine: str) -> None:
    result = shared_lake.sql(f"SELECT id, price, at FROM {orders} ORDER BY id", engine=engine)
    table = result.to_arrow()
    assert table.schema.field("id").type == pyarrow.int32()
    assert table.schema.field("price").type == pyarrow.decimal128(10, 2)
    assert str(table.schema.field("at").type) in {"timestamp[us, tz=UTC]", "timestamp[us, tz=Etc/UTC]"}
    assert result.rows()[0][1] == Decimal("2.50")
    assert result.to_pandas().shape == (3, 3)
    assert result.to_polars().height == 3
    assert "<table>" in result._repr_html_()


def test_the_same_query_gives_the_same_rows_on_both_engines(shared_lake: Lake, orders: str) -> None:
    for query in [
        f"SELECT date_trunc('day', at) AS day, sum(price) AS s FROM {orders} GROUP BY 1 ORDER BY 1",
        f"SELECT id, price * 2 AS twice FROM {orders} ORDER BY price DESC",
        f"SELECT count(DISTINCT to_date(at)) AS days FROM {orders}",
        f"SELECT CASE WHEN id % 2 = 0 THEN 'even' ELSE 'odd' END AS k, count(*) AS c FROM {orders} GROUP BY 1 ORDER BY 1",
        f"SELECT id / 2 AS half FROM {orders} ORDER BY id",
        f"SELECT datediff(TIMESTAMP '2026-01-20 00:00:00', at) AS age FROM {orders} ORDER BY id",
        f"SELECT concat_ws('-', id, year(at), month(at)) AS k FROM {orders} ORDER BY id",
        f"WITH big AS (SELECT * FROM {orders} WHERE price > 3) SELECT count(*) AS c FROM big",
    ]:
        fast, sure = (shared_lake.sql(query, engine=engine) for engine in ("duckdb", "spark"))
        assert fast.names == sure.names, query
        assert [tuple(map(str, row)) for row in fast.rows()] == [tuple(map(str, row)) for row in sure.rows()], query


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("max(2147483647 + id) < 0", True, id="an-integer-that-wraps-around"),
        pytest.param("upper('stra\N{LATIN SMALL LETTER SHARP S}e')", "STRASSE", id="a-letter-that-becomes-two"),
        pytest.param("count_min_sketch(id, 0.5d, 0.5d, 1) is null", False, id="a-function-without-a-rule"),
    ],
)
def test_spark_answers_what_duckdb_does_not(shared_lake: Lake, orders: str, expression: str, expected: object) -> None:
    result = shared_lake.sql(f"SELECT {expression} AS answer FROM {orders} LIMIT 1")
    assert result.rows() == [(expected,)]
    assert result.engine == "spark"
    assert "DuckDB" in result.explain.reason


def test_hidden_partitions_prune_and_explain_tells(shared_lake: Lake, orders: str) -> None:
    query = f"SELECT id FROM {orders} WHERE at >= TIMESTAMP '2026-01-15 00:00:00'"
    result = shared_lake.sql(query, explain=True)
    assert result.rows() == [(2,)]
    assert result.engine == "duckdb"
    assert (result.explain.files_read, result.explain.files_total) == (1, 3)
    assert 0 < (result.explain.bytes_read or 0) <= (result.explain.bytes_total or 0)


def test_explain_on_spark_shows_the_pushed_filter(shared_lake: Lake, orders: str) -> None:
    result = shared_lake.sql(f"SELECT id FROM {orders} WHERE id > 1", engine="spark", explain=True)
    assert "id > 1" in result.explain.plan


def test_partitioning_evolves_and_both_layouts_are_read(shared_lake: Lake, orders: str) -> None:
    shared_lake.sql(f"ALTER TABLE {orders} ADD PARTITION FIELD bucket(4, id)")
    shared_lake.sql(f"INSERT INTO {orders} VALUES (4, 1.00, TIMESTAMP '2026-01-16 00:00:00')")
    assert shared_lake.describe(orders).partitioning == ("days(at)", "bucket(4, id)")
    for engine in ("duckdb", "spark"):
        assert shared_lake.sql(f"SELECT sum(id) AS s FROM {orders}", engine=engine).rows() == [(10,)]


def test_a_view_is_read_through_spark(shared_lake: Lake, orders: str, namespace: str) -> None:
    shared_lake.sql(f"CREATE VIEW {namespace}.dear AS SELECT id FROM {orders} WHERE price > 3")
    result = shared_lake.sql(f"SELECT * FROM {namespace}.dear")
    assert (result.engine, result.rows()) == ("spark", [(2,)])
    assert f"{namespace}.dear" in shared_lake.views() and orders not in shared_lake.views()


def test_metadata_tables_and_procedures_work(shared_lake: Lake, orders: str) -> None:
    assert shared_lake.sql(f"SELECT count(*) FROM {orders}.snapshots").rows() == [(1,)]
    shared_lake.sql(f"INSERT INTO {orders} VALUES (5, 1.00, TIMESTAMP '2026-01-14 12:00:00')")
    done = shared_lake.sql(
        f"CALL lake.system.rewrite_data_files(table => '{orders}', options => map('min-input-files', '2'))"
    )
    assert done.dicts()[0]["rewritten_data_files_count"] >= 2


def test_a_table_is_renamed(shared_lake: Lake, orders: str, namespace: str) -> None:
    shared_lake.sql(f"ALTER TABLE {orders} RENAME TO {namespace}.sales")
    assert shared_lake.sql(f"SELECT count(*) FROM {namespace}.sales").rows() == [(3,)]


def test_renaming_a_hudi_table_is_refused_with_a_way_round(shared_lake: Lake, namespace: str) -> None:
    table = f"{namespace}.people"
    shared_lake.sql(f"CREATE TABLE {table} (id INT, n INT) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    with pytest.raises(NotSupportedError, match="name is its folder"):
        shared_lake.sql(f"ALTER TABLE {table} RENAME TO {table}2")


def test_an_unknown_format_lists_the_known_ones(shared_lake: Lake, namespace: str) -> None:
    with pytest.raises(UnknownChoiceError) as caught:
        shared_lake.sql(f"CREATE TABLE {namespace}.t (id INT) USING delta")
    assert "hudi, iceberg" in caught.value.hint


def test_a_tag_is_a_when(shared_lake: Lake, orders: str) -> None:
    shared_lake.sql(f"ALTER TABLE {orders} CREATE TAG opening")
    shared_lake.sql(f"DELETE FROM {orders} WHERE id = 1")
    for engine in ("duckdb", "spark"):
        answer = shared_lake.sql(f"SELECT count(*) AS c FROM {orders} VERSION AS OF 'opening'", engine=engine)
        assert answer.rows() == [(3,)]
    assert "opening" in shared_lake.history(orders)[0].refs


def test_history_shows_itself_in_a_notebook(shared_lake: Lake, orders: str) -> None:
    assert shared_lake.history(orders)[0].id in shared_lake.history(orders)._repr_html_()
    assert "<table>" in shared_lake.table(orders)._repr_html_()


def test_a_wrong_statement_is_rejected_before_spark(shared_lake: Lake) -> None:
    with pytest.raises(QueryRejectedError, match="Only one statement"):
        shared_lake.sql("SELECT 1; SELECT 2")


def test_spark_errors_speak_our_words(shared_lake: Lake, orders: str) -> None:
    with pytest.raises(LakeError) as caught:
        shared_lake.sql(f"INSERT INTO {orders} VALUES (1)")
    assert "Py4J" not in caught.value.message and "\n" not in caught.value.message


def test_eight_writers_at_once_lose_nothing(shared_lake: Lake, shared_settings: Settings, namespace: str) -> None:
    """Six statements in the warm Spark and two PyIceberg processes append to one table, five times each."""
    table = f"{namespace}.busy"
    shared_lake.sql(f"CREATE TABLE {table} (writer INT, n INT)")
    failures: list[BaseException] = []

    def write(writer: int) -> None:
        try:
            for number in range(5):
                shared_lake.sql(f"INSERT INTO {table} VALUES ({writer}, {number})")
        except LakeError as exc:
            failures.append(exc)

    from lakehouse.engine_config import snippet

    code = (
        snippet("pyiceberg", shared_settings)
        + f"""
import sys, pyarrow
rows = pyarrow.schema([("writer", pyarrow.int32()), ("n", pyarrow.int32())])
from pyiceberg.exceptions import CommitFailedException
for number in range(5):
    batch = pyarrow.table({{"writer": [int(sys.argv[1])], "n": [number]}}, schema=rows)
    while True:
        try:
            catalog.load_table("{table}").append(batch)
            break
        except CommitFailedException:
            continue
"""
    )
    processes = [subprocess.Popen([sys.executable, "-c", code, str(writer)]) for writer in (6, 7)]
    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [process.wait(timeout=60) for process in processes] == [0, 0]
    rows = shared_lake.sql(f"SELECT writer, n FROM {table} ORDER BY writer, n").rows()
    assert rows == [(writer, number) for writer in range(8) for number in range(5)]


def test_a_session_of_this_process_sees_the_same_tables(tmp_path: Path) -> None:
    """`lake.spark` and spark.master=local[*]: in a process of its own, since a JVM is for ever in a Python."""
    code = f"""
from lakehouse import open_lake
from lakehouse.config.load import load_settings
settings = load_settings({{"home": {str(tmp_path / "lake")!r}, "spark.master": "local[2]"}})
with open_lake(settings=settings) as lake:
    lake.sql("CREATE TABLE a.t AS SELECT 1 AS id")
    assert lake.sql("SELECT id FROM a.t", engine="spark").to_arrow().to_pylist() == [{{"id": 1}}]
    frame = lake.spark.createDataFrame([(2,)], "id int")
    frame.writeTo("lake.a.t").append()
    assert sorted(lake.sql("SELECT id FROM a.t").rows()) == [(1,), (2,)]
# And once more: a second Spark in the same Python.
with open_lake(settings=settings) as lake:
    assert lake.sql("SELECT count(*) FROM a.t", engine="spark").rows() == [(2,)]
print("fine")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=180)
    assert done.stdout == "fine\n", done.stderr


def test_open_lake_takes_a_home(tmp_path: Path) -> None:
    with open_lake(home=tmp_path / "mine") as lake:
        assert lake.tables() == []
    assert (tmp_path / "mine" / "lake.version").is_file()
    stop_spark(tmp_path / "mine")
