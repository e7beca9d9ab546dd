"""DuckDB finds the new and changed rows of an upsert in Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from lakehouse.core.errors import LakeError
from lakehouse.core.tables import Column, Scan
from lakehouse.engines.duckdb import DuckDB
from lakehouse.tables.changes import IS_NEW, UpsertChanges, UpsertInput, find_changes

COLUMNS = (Column("id", "bigint"), Column("v", "string"), Column("n", "bigint"))
Row = dict[str, Any]
Find = Callable[..., tuple[UpsertChanges, list[tuple[Any, ...]]]]

SCHEMA = pyarrow.schema([("id", "int64"), ("v", "string"), ("n", "int64")])


@pytest.fixture(scope="module")
def duckdb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDB]:
    yield DuckDB(256 << 20, tmp_path_factory.mktemp("spill"))


def write(path: Path, rows: Sequence[Row], schema: pyarrow.Schema = SCHEMA) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema=schema), path)
    return path


@pytest.fixture
def find(duckdb: DuckDB, tmp_path: Path) -> Find:
    """Find the changes of batches of rows: id, v, n, and whether each row is new."""

    def found(
        *batches: Sequence[Row],
        existing: Sequence[Row] | None = None,
        key: Sequence[str] = ("id",),
        order_by: str = "",
        missing: Sequence[str] = (),
    ) -> tuple[UpsertChanges, list[tuple[Any, ...]]]:
        staged = {
            write(tmp_path / "staged" / f"{number:05}.parquet", rows): (f"file {number}'s.csv", 1)
            for number, rows in enumerate(batches)
        }
        target = None
        if existing is not None:
            target = Scan(COLUMNS, files=(str(write(tmp_path / "existing.parquet", existing)),))
        provided = [column.name for column in COLUMNS if column.name not in missing]
        changes = find_changes(duckdb, UpsertInput(staged, provided, COLUMNS, target, key, order_by), tmp_path)
        table = pyarrow.parquet.read_table(changes.folder).sort_by("id")
        return changes, [tuple(row.values()) for row in table.to_pylist()]

    return found


def counts(changes: UpsertChanges) -> tuple[int, int, int, int]:
    return (changes.inserted, changes.updated, changes.unchanged, changes.without_key)


def row(id: int | None, v: str | None = None, n: int | None = None) -> Row:
    return {"id": id, "v": v, "n": n}


def test_only_what_is_new_or_differs_is_written(find: Find) -> None:
    changes, rows = find(
        [row(1, "a"), row(2, "z"), row(3, "c"), row(4, None)], existing=[row(1, "a"), row(2, "b"), row(4, "d")]
    )
    assert counts(changes) == (1, 2, 1, 0)
    assert rows == [(2, "z", None, False), (3, "c", None, True), (4, None, None, False)]


def test_a_table_that_is_not_there_takes_every_row(find: Find) -> None:
    changes, rows = find([row(1, "a")])
    assert (counts(changes), rows) == ((1, 0, 0, 0), [(1, "a", None, True)])


def test_null_equals_null_and_nothing_else(find: Find) -> None:
    changes, _ = find([row(1, None), row(2, None), row(3, "x")], existing=[row(1, None), row(2, "y"), row(3, None)])
    assert counts(changes) == (0, 2, 1, 0)


def test_the_last_row_of_the_last_file_wins(find: Find) -> None:
    changes, rows = find([row(1, "a"), row(1, "b")], [row(1, "c"), row(1, "d")], existing=[])
    assert (counts(changes), rows) == ((1, 0, 0, 0), [(1, "d", None, True)])


def test_the_highest_order_value_wins_and_the_last_of_equals(find: Find) -> None:
    _, rows = find([row(1, "high", 9), row(1, "low", 1), row(1, "none"), row(2, "x", 5), row(2, "y", 5)], order_by="n")
    assert [values[:2] for values in rows] == [(1, "high"), (2, "y")]


def test_rows_without_a_key_are_kept_apart_with_their_file_and_reason(find: Find) -> None:
    changes, rows = find([row(1, "a")], [row(None, "lost"), row(2, "b")])
    assert counts(changes) == (2, 0, 0, 1)
    assert [values[0] for values in rows] == [1, 2]
    assert changes.rejects is not None
    (kept,) = pyarrow.parquet.read_table(changes.rejects).to_pylist()
    assert (kept["file"], kept["reason"]) == ("file 1's.csv", "null_key")
    assert "lost" in kept["raw"]


def test_every_part_of_a_key_counts_and_none_may_be_null(find: Find) -> None:
    existing = [row(1, "a", 1), row(1, "b", 1)]
    changes, rows = find(
        [row(1, "a", 2), row(1, "c", 1), row(1, None, 1), row(None, "a", 1)], existing=existing, key=("id", "v")
    )
    assert counts(changes) == (1, 1, 0, 2)
    assert rows == [(1, "a", 2, False), (1, "c", 1, True)] or rows == [(1, "c", 1, True), (1, "a", 2, False)]


def test_a_column_that_did_not_come_keeps_its_value_and_is_not_compared(find: Find) -> None:
    changes, rows = find(
        [row(1, "a"), row(2, "z"), row(3, "c")], existing=[row(1, "a", 10), row(2, "b", 20)], missing=["n"]
    )
    assert counts(changes) == (1, 1, 1, 0)
    assert rows == [(2, "z", 20, False), (3, "c", None, True)]


def test_nothing_but_keys_leaves_what_is_there_alone(find: Find) -> None:
    changes, rows = find([row(1), row(2)], existing=[row(1, "a", 1)], missing=["v", "n"])
    assert (counts(changes), rows) == ((1, 0, 1, 0), [(2, None, None, True)])


def test_a_key_that_the_table_has_twice_is_changed_once(find: Find) -> None:
    changes, rows = find([row(1, "z")], existing=[row(1, "a"), row(1, "b")])
    assert rows == [(1, "z", None, False)]
    assert changes.unchanged == 0


def test_a_key_that_becomes_text_is_compared_as_text(duckdb: DuckDB, tmp_path: Path) -> None:
    texts = pyarrow.schema([("id", "string"), ("v", "string")])
    staged = write(tmp_path / "s.parquet", [{"id": "1", "v": "z"}, {"id": "x", "v": "n"}], texts)
    existing = write(tmp_path / "h.parquet", [row(1, "a")])
    columns = (Column("id", "string"), Column("v", "string"))
    target = Scan((Column("id", "bigint"), Column("v", "string")), files=(str(existing),))
    try:
        changes = find_changes(
            duckdb, UpsertInput({staged: ("s.csv", 1)}, ["id", "v"], columns, target, ["id"]), tmp_path
        )
    except LakeError as exc:
        pytest.fail(exc.message)
    assert counts(changes) == (1, 1, 0, 0)


def test_what_was_written_has_the_tables_columns_in_its_order(find: Find) -> None:
    changes, _ = find([row(1, "a")])
    assert pyarrow.parquet.read_schema(changes.folder / "part.parquet").names == ["id", "v", "n", IS_NEW]
