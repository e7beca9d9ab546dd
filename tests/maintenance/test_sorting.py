"""Sort order: how far files overlap, and when a table is sorted again."""

from __future__ import annotations

import pytest
from tests.support.damaged_tables import BY_DAY, NAME, T, append, catalog_of, create, data_files, maintainer, opened

from lakehouse.core.requests import MaintainRequest
from lakehouse.lake import Lake
from lakehouse.maintenance.sorting import SORT_OVERLAP, is_decayed, overlap, sort_columns
from lakehouse.tables.rewrite import read_snapshot


def found_overlap(lake: Lake, *columns: str) -> float | None:
    table = opened(lake)
    return overlap(table, read_snapshot(table), columns)


def test_sorted_files_do_not_overlap(lake: Lake) -> None:
    create(lake)
    assert found_overlap(lake, "id") is None
    for start in (0, 10, 20):
        append(lake, range(start, start + 11))  # one ends where the next one begins
    assert found_overlap(lake, "id") == 0 and found_overlap(lake, "missing") is None


def test_unsorted_files_overlap_and_partitions_are_compared_by_themselves(lake: Lake) -> None:
    create(lake, partition_spec=BY_DAY)
    append(lake, range(10), day="mon")
    append(lake, range(10), day="tue")
    assert found_overlap(lake, "id") is None, "each is alone in its partition"
    append(lake, range(5, 15), day="mon")
    assert found_overlap(lake, "id") == 1
    append(lake, range(100, 110), day="mon")
    assert found_overlap(lake, "id") == pytest.approx(1 / 3), "two of six ordered pairs"


@pytest.mark.parametrize(
    ("order", "columns"),
    [("day, id DESC", ["day"]), ("id desc nulls last", ["id"]), ("ZORDER(id, day)", ["id", "day"])],
)
def test_the_columns_of_an_order(lake: Lake, order: str, columns: list[str]) -> None:
    create(lake)
    assert sort_columns(order, opened(lake)) == columns and sort_columns("", opened(lake)) == []


def test_what_sorting_left_is_not_decay() -> None:
    sorted_before = {"snapshots": [{"summary": {SORT_OVERLAP: "0.400"}}, {"summary": {}}]}
    assert is_decayed(0.6, {}) and not is_decayed(0.6, sorted_before) and is_decayed(0.8, sorted_before)
    assert not is_decayed(None, {}) and not is_decayed(0.2, {})


def test_health_states_the_overlap_and_maintenance_sorts_when_it_is_decayed(lake: Lake) -> None:
    create(lake)
    for number in range(3):
        append(lake, range(number, 3000, 3))
    # Files of this size are not small, so that only the order is a reason.
    small = {"tables": {T: {"target_file_size": "1kB", "sort": "id"}}}
    without = maintainer(lake, tables={T: {"target_file_size": "1kB"}})
    assert "sort_overlap" not in without.deepened(without.health().tables())[0].deep, "it has no order"
    assert without.run(MaintainRequest((NAME,), dry_run=True)).actions == ()

    maintained = maintainer(lake, **small)
    health = maintained.deepened(maintained.health().tables())[0]
    assert health.deep["sort_overlap"] == 1 and [reason.what for reason in health.reasons] == ["unsorted"]
    assert health.reasons[0].action == "compact" and health.score == 90
    pointer = catalog_of(lake).pointer(NAME)
    planned = maintained.run(MaintainRequest((NAME,), dry_run=True)).actions
    assert [(action.action, action.engine, action.files_before) for action in planned] == [("compact", "spark", 3)]
    assert "overlap by 100%" in planned[0].detail and catalog_of(lake).pointer(NAME) == pointer
    assert len(data_files(lake)) == 3
