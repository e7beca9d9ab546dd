"""Compaction: fewer files, the same rows, whatever others do meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow
import pytest
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import StringType
from tests.support.damaged_tables import (
    BY_DAY,
    NAME,
    T,
    append,
    before_publish,
    catalog_of,
    create,
    damaged,
    data_files,
    delete,
    delete_by_position,
    ids,
    maintainer,
    opened,
)
from tests.support.light_runs import pyiceberg

from lakehouse.core.requests import MaintainRequest
from lakehouse.lake import Lake
from lakehouse.maintenance import compact
from lakehouse.tables import rewrite
from lakehouse.tables.rewrite_rows import rewrite_groups

COMPACT = MaintainRequest((NAME,), only=("compact",))


def test_small_files_become_one_and_every_row_stays(lake: Lake) -> None:
    damaged(lake, 7)
    before = {snapshot.id for snapshot in lake.history(T)}
    report = lake.maintain(T)
    assert [(action.action, action.state, action.files_before, action.files_after) for action in report.actions] == [
        ("compact", "done", 7, 1)
    ]
    assert ids(lake) == list(range(7)) and len(data_files(lake)) == 1
    newest = lake.history(T)[-1]
    assert newest.operation == "replace" and newest.rows_total == 7 and newest.files_total == 1
    assert ids(lake, as_of=newest.parent) == list(range(7)), "the snapshot before is still readable"
    assert before < {snapshot.id for snapshot in lake.history(T)}
    assert opened(lake).properties["gc.enabled"] == "false"
    assert [line.what for line in lake.refs.log.lines()][0] == "maintain"


def test_a_second_maintenance_has_nothing_to_do(lake: Lake) -> None:
    damaged(lake)
    lake.maintain(T)
    pointer = catalog_of(lake).pointer(NAME)
    assert lake.maintain(T).actions == () and catalog_of(lake).pointer(NAME) == pointer
    assert lake.health(T)[0].score == 100


def test_a_dry_run_changes_nothing_and_states_the_gain(lake: Lake) -> None:
    damaged(lake, 7)
    pointer = catalog_of(lake).pointer(NAME)
    planned = lake.maintain(T, dry_run=True).actions
    assert [(action.state, action.files_before, action.files_after) for action in planned] == [("planned", 7, 1)]
    assert planned[0].bytes > 0 and catalog_of(lake).pointer(NAME) == pointer


def test_other_tools_append_to_what_we_compacted(lake: Lake) -> None:
    damaged(lake)
    lake.maintain(T)
    append(lake, [100])
    delete(lake, "id = 2")
    assert ids(lake) == [0, 1, 3, 4, 5, 100]


def test_each_partition_keeps_its_rows(lake: Lake) -> None:
    create(lake, partition_spec=BY_DAY)
    for number in range(4):
        append(lake, [number], day="mon")
        append(lake, [10 + number], day="tue")
    assert [action.files_after for action in lake.maintain(T).actions] == [2]
    table = opened(lake)
    assert sorted(task.file.partition[0] for task in table.scan().plan_files()) == ["mon", "tue"]
    assert sorted(table.scan("day == 'tue'").to_arrow().column("id").to_pylist()) == [10, 11, 12, 13]
    assert ids(lake) == [0, 1, 2, 3, 10, 11, 12, 13]


def test_files_from_before_a_column_was_added_are_compacted_with_nulls(lake: Lake) -> None:
    damaged(lake)
    theirs = pyiceberg(lake)
    with theirs.load_table(T).update_schema() as change:
        change.add_column("note", StringType())
    assert lake.maintain(T).actions[0].state == "done"
    assert lake.sql(f"select count(*), count(note) from {T}").rows() == [(6, 0)]


def test_deleted_rows_are_gone_from_the_files_and_so_are_the_delete_files(lake: Lake) -> None:
    create(lake)
    append(lake, range(10))
    append(lake, range(10, 20))
    delete_by_position(lake, [3, 4, 15])
    left = [id for id in range(20) if id not in (3, 4, 15)]
    assert ids(lake) == left and lake.health(T)[0].delete_files == 2
    assert lake.maintain(T).actions[0].state == "done"
    assert ids(lake) == left
    health = lake.health(T)[0]
    assert (health.delete_files, health.files, health.rows) == (0, 1, 17)


def test_delete_files_of_data_that_stays_are_kept(lake: Lake) -> None:
    create(lake, partition_spec=BY_DAY)
    append(lake, range(5), day="mon")
    append(lake, range(5, 10), day="tue")
    delete_by_position(lake, [1, 6])
    maintained = maintainer(lake)
    loaded = opened(lake)
    files = rewrite.read_snapshot(loaded)

    groups = [
        group for group in compact.plan_compaction(loaded, files, 2**29, 2**29).groups if "mon" in group.partition[1]
    ]
    part = rewrite_groups(loaded, files, groups[:1])
    assert len(part.removed_deletes) == 1
    pointer = catalog_of(lake).pointer(NAME)
    assert pointer
    from lakehouse.core.metadata_file import load_metadata

    raw = rewrite.replace_files(loaded, load_metadata(pointer, maintained.files), part, {}, maintained.now(), files)
    assert maintained.committer.commit(NAME, pointer, raw, "half of it")
    assert ids(lake) == [0, 2, 3, 4, 5, 7, 8, 9]
    assert lake.health(T)[0].delete_files == 1


# ---- races: another writer acts after the rows were read and before the commit ---------------------------------------


def test_a_row_whose_file_is_rewritten_meanwhile_is_not_doubled(lake: Lake) -> None:
    create(lake)
    for start in (0, 10, 20, 30, 40, 50):
        append(lake, range(start, start + 10))
    before_publish(maintainer(lake), lambda: delete(lake, "id == 13")).run(COMPACT)
    assert ids(lake) == [id for id in range(60) if id != 13]


def test_a_writer_that_read_before_the_compaction_and_commits_after_it_loses_nothing(lake: Lake) -> None:
    damaged(lake)
    theirs = pyiceberg(lake).load_table(T)  # at the state before
    lake.maintain(T)
    from tests.support.damaged_tables import rows

    try:
        theirs.append(rows([100]))
    except Exception:  # noqa: BLE001 - a refused commit is as good as one that was repeated
        append(lake, [100])
    assert ids(lake) == [0, 1, 2, 3, 4, 5, 100]


def test_a_branch_with_changes_keeps_its_table_from_maintenance(lake: Lake) -> None:
    damaged(lake)
    lake.refs.branches.create("exp")
    append(lake, [100], branch="exp")
    report = lake.maintain(T)
    assert [action.state for action in report.actions] == ["skipped"] and "exp" in report.actions[0].detail
    assert lake.refs.branches.merge("exp")
    assert lake.maintain(T).actions[0].state == "done"
    assert ids(lake) == [0, 1, 2, 3, 4, 5, 100]


def test_a_protected_main_accepts_maintenance(home: object) -> None:
    from pathlib import Path

    from tests.support.light_runs import with_settings

    assert isinstance(home, Path)
    with with_settings(home, branches__protected=["main"]) as lake:
        damaged(lake)
        assert lake.maintain(T).actions[0].state == "done" and ids(lake) == list(range(6))


def test_many_manifests_are_merged(lake: Lake) -> None:
    damaged(lake, 3)
    merged = maintainer(lake).run(MaintainRequest((NAME,), only=("rewrite_manifests",), forced=True))
    assert merged.actions[0].state == "done"
    table = opened(lake)
    assert len(table.current_snapshot().manifests(table.io)) == 1 and ids(lake) == [0, 1, 2]


def rename(table: Any) -> None:
    with table.update_schema() as change:
        change.rename_column("day", "weekday")


def drop_and_add_again(table: Any) -> None:
    """Another column of the same name: what old files have under it is not in the table any more."""
    for step in ("delete_column", "add_column"):
        with table.update_schema() as change:
            getattr(change, step)("day", *([StringType()] if step == "add_column" else []))


def add_column(table: Any) -> None:
    with table.update_schema() as change:
        change.add_column("note", StringType())


@pytest.mark.parametrize("change", [rename, drop_and_add_again, add_column])
def test_files_from_before_a_change_of_columns_keep_their_rows(lake: Lake, change: Callable[[Any], None]) -> None:
    damaged(lake, 4)
    change(pyiceberg(lake).load_table(T))
    table = pyiceberg(lake).load_table(T)
    names = [field.name for field in table.schema().fields]
    table.append(pyarrow.table({"id": [9], names[1]: ["new"]}))
    before = sorted(opened(lake).scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    lake.maintain(T)
    assert len(data_files(lake)) == 1
    assert sorted(opened(lake).scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == before
    assert before[0][names[1]] == (None if change is drop_and_add_again else "mon") and before[-1][names[1]] == "new"


def test_spark_sorts_what_would_fill_the_memory_of_this_process(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(lake)
    with table.update_sort_order() as order:
        order.asc("day", IdentityTransform())
    for number in range(2):
        append(lake, [number])
    (planned,) = lake.maintain(T, dry_run=True, only=["compact"]).actions
    assert planned.engine == "local"
    monkeypatch.setattr(compact, "_MAX_SORTED_BYTES", 100)
    (planned,) = lake.maintain(T, dry_run=True, only=["compact"]).actions
    assert planned.engine == "spark" and "more than 100 bytes to sort" in planned.detail
