"""One suite for every table format: what a table is, how it changes, how one travels in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from lakehouse.core.errors import NoSuchTableError, NotFoundError, QueryRejectedError, TableExistsError, WhenError
from lakehouse.lake import Lake

pytestmark = pytest.mark.spark

FORMATS = ["iceberg", "hudi"]
Make = Callable[[], str]


@pytest.fixture(scope="module", params=FORMATS)
def table_format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def create(lake: Lake, table: str, table_format: str) -> str:
    """Make a table of a format with two rows: (1, 'a', 10) and (2, 'b', 20)."""
    key = "TBLPROPERTIES (primaryKey = 'id', preCombineField = 'n')" if table_format == "hudi" else ""
    lake.sql(f"CREATE TABLE {table} (id INT, name STRING, n BIGINT) USING {table_format} {key}")
    lake.sql(f"INSERT INTO {table} VALUES (1, 'a', 10), (2, 'b', 20)")
    return table


@pytest.fixture(scope="module")
def things(shared_lake: Lake, table_format: str) -> str:
    """A table for tests that only read it."""
    return create(shared_lake, f"formats_{table_format}.things", table_format)


@pytest.fixture(scope="module")
def updated(shared_lake: Lake, table_format: str) -> str:
    """A table with a second snapshot, (2, 'bb', 21), for tests that only read it."""
    table = create(shared_lake, f"formats_{table_format}.updated", table_format)
    shared_lake.sql(f"UPDATE {table} SET name = 'bb', n = 21 WHERE id = 2")
    return table


@pytest.fixture
def make(shared_lake: Lake, namespace: str, table_format: str) -> Make:
    """Makes a table that the test may change."""
    return lambda: create(shared_lake, f"{namespace}.things", table_format)


@pytest.fixture(params=["duckdb", "spark", "polars"])
def engine(request: pytest.FixtureRequest) -> str:
    """Every engine that reads the lake in this process; Polars is from examples/plugin."""
    if request.param == "polars":
        request.getfixturevalue("plugin")
    return str(request.param)


def rows(lake: Lake, sql: str, engine: str = "duckdb") -> list[tuple[object, ...]]:
    return lake.sql(sql, engine=engine).rows()


def test_what_was_written_is_read_by_every_engine(shared_lake: Lake, things: str, engine: str) -> None:
    assert rows(shared_lake, f"SELECT * FROM {things} ORDER BY id", engine) == [(1, "a", 10), (2, "b", 20)]


def test_the_table_is_described_and_listed(shared_lake: Lake, things: str, table_format: str) -> None:
    info = shared_lake.describe(things)
    assert (info.format, [(column.name, column.type) for column in info.columns]) == (
        table_format,
        [("id", "int"), ("name", "string"), ("n", "bigint")],
    )
    assert info.current is not None and info.current.rows_total == 2
    assert things in [str(table.name) for table in shared_lake.tables()]


def test_history_tells_what_each_change_did(shared_lake: Lake, make: Make) -> None:
    table = make()
    shared_lake.sql(f"UPDATE {table} SET name = 'bb', n = 21 WHERE id = 2")
    shared_lake.sql(f"DELETE FROM {table} WHERE id = 1")
    history = shared_lake.history(table)
    assert [snapshot.rows_total for snapshot in history] == [2, 2, 1]
    assert history[0].rows_added == 2 and history[0].rows_removed == 0
    assert [snapshot.is_current for snapshot in history] == [False, False, True]
    assert history[0].at < history[1].at < history[2].at <= datetime.now(UTC)


def test_the_metadata_is_a_tree_down_to_the_files_of_each_snapshot(
    shared_lake: Lake, updated: str, table_format: str
) -> None:
    first, last = shared_lake.history(updated)
    tree = shared_lake.inspect(updated, layer="files")
    kind = {"iceberg": "snapshot", "hudi": "instant"}[table_format]
    assert [node.name for node in tree.children if node.kind == kind] == [last.id, first.id]
    for snapshot in (first, last):
        nodes = [shared_lake.inspect(updated, snapshot.id, "files")]
        while children := [child for node in nodes for child in node.children]:
            nodes = children
        assert {node.kind for node in nodes} == {{"iceberg": "data", "hudi": "file-slice"}[table_format]}
        live = [node for node in nodes if node.facts["status"] != "deleted"]
        assert len(live) == snapshot.files_total
        for node in live:
            assert json.loads(shared_lake.inspect_file(updated, node.path, snapshot.id).text)["rows"] > 0
    text = shared_lake.inspect_file(updated, tree.path).text
    assert {"iceberg": '"table-uuid"', "hudi": "hoodie.table.name"}[table_format] in text
    with pytest.raises(NotFoundError):
        shared_lake.inspect_file(updated, "/etc/passwd")


def test_one_travels_by_snapshot_and_by_time(shared_lake: Lake, updated: str, engine: str) -> None:
    first = shared_lake.history(updated)[0]
    then = [(1, "a", 10), (2, "b", 20)]
    query = f"SELECT * FROM {updated} ORDER BY id"
    assert shared_lake.sql(query, as_of=first.id, engine=engine).rows() == then
    assert shared_lake.sql(query, as_of=first.at.isoformat(), engine=engine).rows() == then
    assert shared_lake.sql(query, as_of="now", engine=engine).rows() == [(1, "a", 10), (2, "bb", 21)]


def test_sql_itself_travels_and_joins_then_with_now(shared_lake: Lake, updated: str, engine: str) -> None:
    first = shared_lake.history(updated)[0]
    joined = f"""SELECT old.name, new.name FROM {updated} VERSION AS OF {first.id} old
                 JOIN {updated} new ON old.id = new.id ORDER BY 1"""
    assert rows(shared_lake, joined, engine) == [("a", "a"), ("b", "bb")]
    timed = f"SELECT count(*) FROM {updated} TIMESTAMP AS OF '{first.at.isoformat()}' WHERE name = 'b'"
    assert rows(shared_lake, timed, engine) == [(1,)]


def test_a_time_before_the_table_says_what_is_valid(shared_lake: Lake, things: str) -> None:
    with pytest.raises(WhenError, match="did not exist yet") as caught:
        shared_lake.travel(things, "2001-01-01")
    assert shared_lake.history(things)[0].id in caught.value.hint


def test_a_time_in_the_future_says_what_is_valid(shared_lake: Lake, things: str) -> None:
    with pytest.raises(WhenError, match="future") as caught:
        shared_lake.travel(things, "2999-01-01")
    assert "Snapshots range from" in caught.value.hint


def test_diff_finds_added_removed_and_changed_rows(shared_lake: Lake, make: Make) -> None:
    table = make()
    first = shared_lake.history(table)[0]
    shared_lake.sql(f"UPDATE {table} SET name = 'bb', n = 21 WHERE id = 2")
    shared_lake.sql(f"DELETE FROM {table} WHERE id = 1")
    shared_lake.sql(f"INSERT INTO {table} VALUES (3, 'c', 30)")
    diff = shared_lake.diff(table, first.id, key=["id"])
    assert (diff.added, diff.removed, diff.changed) == (1, 1, 1)
    assert diff.rows.rows() == [
        ("removed", 1, "a", 10),
        ("before", 2, "b", 20),
        ("after", 2, "bb", 21),
        ("added", 3, "c", 30),
    ]


def test_a_new_column_evolves_the_table_and_old_rows_have_null(shared_lake: Lake, make: Make) -> None:
    table = make()
    first = shared_lake.history(table)[0]
    shared_lake.sql(f"ALTER TABLE {table} ADD COLUMNS (note STRING)")
    shared_lake.sql(f"INSERT INTO {table} VALUES (3, 'c', 30, 'new')")
    for engine in ("duckdb", "spark"):
        answer = rows(shared_lake, f"SELECT id, note FROM {table} ORDER BY id", engine)
        assert answer == [(1, None), (2, None), (3, "new")]
    assert shared_lake.travel(table, first.id).names == ["id", "name", "n"]
    diff = shared_lake.diff(table, first.id, key=["id"])
    assert [column.name for column in diff.columns_added] == ["note"]
    assert (diff.added, diff.changed) == (1, 0)


def test_rollback_brings_the_old_rows_and_can_be_rolled_back(shared_lake: Lake, make: Make) -> None:
    table = make()
    shared_lake.sql(f"DELETE FROM {table} WHERE id = 1")
    before, after = shared_lake.history(table)
    shared_lake.rollback(table, before.id)
    assert rows(shared_lake, f"SELECT * FROM {table} ORDER BY id") == [(1, "a", 10), (2, "b", 20)]
    shared_lake.rollback(table, after.id)
    assert rows(shared_lake, f"SELECT * FROM {table} ORDER BY id") == [(2, "b", 20)]


def test_rollback_over_a_schema_change_keeps_the_new_column_empty(shared_lake: Lake, make: Make) -> None:
    table = make()
    first = shared_lake.history(table)[0]
    shared_lake.sql(f"ALTER TABLE {table} ADD COLUMNS (note STRING)")
    shared_lake.sql(f"INSERT INTO {table} VALUES (3, 'c', 30, 'new')")
    shared_lake.rollback(table, first.id)
    assert rows(shared_lake, f"SELECT id, name FROM {table} ORDER BY id") == [(1, "a"), (2, "b")]


def test_a_dropped_table_is_gone_and_comes_back_whole(shared_lake: Lake, make: Make) -> None:
    table = make()
    shared_lake.drop(table)
    with pytest.raises(NoSuchTableError):
        shared_lake.sql(f"SELECT * FROM {table}")
    assert table in shared_lake.dropped()
    shared_lake.undrop(table)
    assert len(shared_lake.history(table)) == 1
    for engine in ("duckdb", "spark"):
        assert rows(shared_lake, f"SELECT count(*) FROM {table}", engine) == [(2,)]


def test_drop_in_sql_is_soft_too_and_the_name_is_free_again(shared_lake: Lake, make: Make) -> None:
    table = make()
    shared_lake.sql(f"DROP TABLE {table}")
    make()
    shared_lake.sql(f"INSERT INTO {table} VALUES (9, 'z', 90)")
    assert rows(shared_lake, f"SELECT count(*) FROM {table}", "spark") == [(3,)]
    with pytest.raises(TableExistsError):
        shared_lake.undrop(table)
    shared_lake.drop(table)
    drops = [drop for drop in shared_lake.drops() if str(drop.table) == table]
    assert len(drops) == 2 and drops[0].at < drops[1].at
    shared_lake.undrop(table, drops[0].id)
    assert rows(shared_lake, f"SELECT count(*) FROM {table}") == [(2,)]
    shared_lake.drop(table)
    shared_lake.undrop(table, drops[1].id)
    assert rows(shared_lake, f"SELECT count(*) FROM {table}") == [(3,)]


def test_a_merge_updates_and_inserts(shared_lake: Lake, make: Make) -> None:
    table = make()
    shared_lake.sql(
        f"""MERGE INTO {table} t USING (SELECT 2 AS id, 'bb' AS name, 21L AS n UNION ALL SELECT 3, 'c', 30L) s
            ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""
    )
    assert rows(shared_lake, f"SELECT * FROM {table} ORDER BY id") == [(1, "a", 10), (2, "bb", 21), (3, "c", 30)]


def test_a_name_belongs_to_one_table_only(shared_lake: Lake, things: str, table_format: str) -> None:
    other = "hudi" if table_format == "iceberg" else "iceberg"
    with pytest.raises(TableExistsError, match=table_format):
        shared_lake.sql(f"CREATE TABLE {things} (id INT) USING {other}")


def test_create_table_as_select_makes_the_table(
    shared_lake: Lake, things: str, namespace: str, table_format: str
) -> None:
    copy = f"{namespace}.copy"
    key = "TBLPROPERTIES (primaryKey = 'id', preCombineField = 'n')" if table_format == "hudi" else ""
    shared_lake.sql(f"CREATE TABLE {copy} USING {table_format} {key} AS SELECT * FROM {things}")
    assert rows(shared_lake, f"SELECT * FROM {copy} ORDER BY id") == [(1, "a", 10), (2, "b", 20)]


def test_an_empty_table_reads_as_empty(shared_lake: Lake, namespace: str, table_format: str) -> None:
    table = f"{namespace}.nothing"
    key = "TBLPROPERTIES (primaryKey = 'id', preCombineField = 'n')" if table_format == "hudi" else ""
    shared_lake.sql(f"CREATE TABLE {table} (id INT, name STRING, n BIGINT) USING {table_format} {key}")
    for engine in ("duckdb", "spark"):
        assert rows(shared_lake, f"SELECT count(*) FROM {table}", engine) == [(0,)]
    with pytest.raises(WhenError, match="no snapshot yet"):
        shared_lake.travel(table, "yesterday")


def test_a_partitioned_table_prunes_and_rolls_back(shared_lake: Lake, namespace: str, table_format: str) -> None:
    table = f"{namespace}.parted"
    key = "TBLPROPERTIES (primaryKey = 'id', preCombineField = 'id')" if table_format == "hudi" else ""
    shared_lake.sql(f"CREATE TABLE {table} (id INT, city STRING) USING {table_format} PARTITIONED BY (city) {key}")
    shared_lake.sql(f"INSERT INTO {table} SELECT id, concat('c', id % 4) FROM range(40)")
    for engine in ("duckdb", "spark"):
        assert rows(shared_lake, f"SELECT count(*) FROM {table} WHERE city = 'c1'", engine) == [(10,)]
    assert shared_lake.describe(table).partitioning == ("city",)
    first = shared_lake.history(table)[0]
    shared_lake.sql(f"DELETE FROM {table} WHERE city = 'c1'")
    shared_lake.rollback(table, first.id)
    assert rows(shared_lake, f"SELECT city, count(*) FROM {table} GROUP BY city ORDER BY city") == [
        ("c0", 10), ("c1", 10), ("c2", 10), ("c3", 10),
    ]  # fmt: skip


def test_a_wrong_column_is_pointed_at_by_both_engines(shared_lake: Lake, things: str) -> None:
    for engine in ("duckdb", "spark"):
        with pytest.raises(QueryRejectedError) as caught:
            shared_lake.sql(f"SELECT nam FROM {things}", engine=engine).rows()
        assert (caught.value.line, caught.value.column) == (1, 8)
        assert "name" in caught.value.message
