"""Expiry of snapshots: what stays and why, and what is remembered of those that go."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.damaged_tables import (
    FUTURE_DAYS,
    NAME,
    T,
    append,
    before_publish,
    create,
    damaged,
    delete,
    expire_all,
    ids,
    maintainer,
    rows,
)
from tests.support.light_runs import pyiceberg

from lakehouse.core.errors import BadSettingError
from lakehouse.core.names import TableName
from lakehouse.core.requests import MaintainRequest
from lakehouse.lake import Lake
from lakehouse.maintenance.expire import expirable, without_snapshots
from lakehouse.maintenance.policy import MaintenanceSettings, policy_for

NOW = datetime(2026, 11, 17, tzinfo=UTC)
EXPIRE = MaintainRequest((NAME,), only=("expire",))


def milliseconds(days_ago: float) -> int:
    return int((NOW - timedelta(days=days_ago)).timestamp() * 1000)


def metadata(*days_ago: float, **more: Any) -> dict[str, Any]:
    """Metadata with a snapshot 1, 2, 3, … for each age."""
    snapshots = [
        {"snapshot-id": number, "timestamp-ms": milliseconds(age), "summary": {}, "manifest-list": f"snap-{number}"}
        for number, age in enumerate(days_ago, 1)
    ]
    for earlier, later in zip(snapshots, snapshots[1:], strict=False):
        later["parent-snapshot-id"] = earlier["snapshot-id"]
    log = [{"snapshot-id": snapshot["snapshot-id"], "timestamp-ms": snapshot["timestamp-ms"]} for snapshot in snapshots]
    current = {"current-snapshot-id": len(snapshots), "last-updated-ms": milliseconds(0)}
    return {"snapshots": snapshots, "snapshot-log": log, "refs": {}, **current, **more}


def gone(raw: dict[str, Any], held: tuple[str, ...] = (), **settings: Any) -> set[int]:
    options = {"keep_days": 7.0, "keep_snapshots": 1, **settings}
    return expirable(raw, policy_for(MaintenanceSettings(**options)), NOW, held)


def test_old_snapshots_go() -> None:
    assert gone(metadata(30, 20, 10, 5, 1)) == {1, 2}, "the third was current until 5 days ago"


def test_a_snapshot_is_as_old_as_the_one_that_replaced_it() -> None:
    assert gone(metadata(365, 0.1)) == set(), "a reader may have begun an hour ago"


def test_some_stay_however_old_they_are() -> None:
    assert gone(metadata(50, 40, 30, 20, 10), keep_snapshots=3) == {1, 2}


def test_above_a_number_even_young_ones_go() -> None:
    assert gone(metadata(*(hours / 24 for hours in range(20, 0, -1))), max_snapshots=5) == set(range(1, 16))


def test_what_a_ref_of_the_table_or_a_tag_of_the_lake_holds_stays() -> None:
    raw = metadata(50, 40, 30, 1, refs={"old": {"snapshot-id": 1, "type": "tag"}})
    assert gone(raw, held=("2",)) == set() and gone(raw) == {2}


def test_the_log_begins_after_the_last_gap() -> None:
    raw = metadata(50, 40, 30, 1)
    new = without_snapshots(raw, {2}, "file:///t/1.json", NOW)
    assert [snapshot["snapshot-id"] for snapshot in new["snapshots"]] == [1, 3, 4]
    assert [entry["snapshot-id"] for entry in new["snapshot-log"]] == [3, 4], (
        "across the gap, 1 would seem to last until 3"
    )


def test_what_ingests_and_runs_remember_is_carried_over() -> None:
    raw = metadata(50, 40, 30, 1)
    notes = [snapshot["summary"] for snapshot in raw["snapshots"]]
    notes[0] |= {"lake.sha256": "a,b", "lake.fingerprints": '{"d1": "x", "d2": "x"}', "lake.cursor": "1"}
    notes[1] |= {"lake.sha256": "c", "lake.fingerprints": '{"d2": "y"}', "lake.cursor": "2", "lake.author": "ann"}
    notes[2] |= {"lake.sha256": "d"}
    kept = {
        snapshot["snapshot-id"]: snapshot["summary"]
        for snapshot in without_snapshots(raw, {1, 2}, "p", NOW)["snapshots"]
    }
    assert set(kept[3]["lake.sha256"].split(",")) == {"a", "b", "c", "d"}
    assert json.loads(kept[3]["lake.fingerprints"]) == {"d1": "x", "d2": "y"} and kept[3]["lake.cursor"] == "2"
    assert "lake.author" not in kept[3] and kept[4] == {}


def test_files_from_before_a_replacement_of_all_rows_are_not_carried_over() -> None:
    raw = metadata(50, 40, 30)
    raw["snapshots"][0]["summary"] |= {"lake.sha256": "a"}
    raw["snapshots"][1]["summary"] |= {"lake.sha256": "b", "lake.mode": "replace"}
    new = without_snapshots(raw, {1, 2}, "p", NOW)
    assert new["snapshots"][0]["summary"]["lake.sha256"] == "b"


def test_a_file_is_not_ingested_again_after_compaction_and_expiry(lake: Lake, tmp_path: Path) -> None:
    create(lake)
    files = []
    for number in range(5):
        files.append(tmp_path / f"{number}.csv")
        files[-1].write_text(f"id,day\n{number},mon\n")
        digest = hashlib.sha256(files[-1].read_bytes()).hexdigest()
        notes = {"lake.sha256": digest, "lake.mode": "append"}  # as an ingest leaves them
        pyiceberg(lake).load_table(T).append(rows([number]), snapshot_properties=notes)
    lake.maintain(T)
    assert len(lake.ingest(*files, into=T).skipped) == 5 and ids(lake) == list(range(5))
    expire_all(lake)
    assert len(lake.history(T)) < 4
    assert len(lake.ingest(*files, into=T).skipped) == 5 and ids(lake) == list(range(5))


def test_expired_snapshots_are_gone_and_tags_are_still_readable(lake: Lake) -> None:
    damaged(lake, 3)
    lake.refs.branches.create_tag("v1")
    delete(lake, "id == 0")
    append(lake, [9])
    report = expire_all(lake)
    assert [action.snapshots for action in report.actions if action.action == "expire"] == [3]
    assert ids(lake, as_of="v1") == [0, 1, 2] and ids(lake) == [1, 2, 9]
    assert len(lake.history(T)) == 4, "the tag's, that before the compaction, and its two"


def test_a_commit_during_the_expiry_is_not_lost(lake: Lake) -> None:
    damaged(lake, 3)
    maintained = maintainer(lake, FUTURE_DAYS, keep_snapshots=1)
    report = before_publish(maintained, lambda: append(lake, [7])).run(EXPIRE)
    assert report.actions[0].state == "done" and ids(lake) == [0, 1, 2, 7]


def test_a_branch_that_is_created_during_the_expiry_is_whole(lake: Lake) -> None:
    damaged(lake, 3)
    maintained = maintainer(lake, FUTURE_DAYS, keep_snapshots=1)
    first = lake.history(T)[0].id
    before_publish(maintained, lambda: lake.refs.branches.create("late")).run(EXPIRE)
    maintainer(lake, FUTURE_DAYS, delete_after_hours=0, undrop_days=10_000).run(MaintainRequest(only=("remove_files",)))
    assert ids(lake, branch="late") == [0, 1, 2]
    with lake.branch("late") as late:
        assert late.travel(T, first).rows(), "and so are all snapshots that it lists"


def test_a_revert_brings_the_expired_snapshots_back(lake: Lake) -> None:
    damaged(lake, 3)
    maintainer(lake, FUTURE_DAYS, keep_snapshots=1).run(EXPIRE)
    assert len(lake.history(T)) == 1
    entry = lake.refs.log.lines()[0].commit
    lake.refs.log.revert(entry)
    assert len(lake.history(T)) == 3 and ids(lake) == [0, 1, 2]


@pytest.mark.parametrize(
    ("tables", "named"),
    [
        ({"shop.sales": {"keep_dayz": "3"}}, "keep_days"),
        ({"shop": {"keep_days": "soon"}}, "soon"),
        ({"shop": {"target_file_size": "big"}}, "big"),
        ({"shop": {"orphan_days": "1"}}, "orphan_days"),
    ],
)
def test_a_wrong_policy_is_refused(tables: dict[str, dict[str, str]], named: str) -> None:
    from lakehouse.maintenance.policy import special_policies

    with pytest.raises(BadSettingError) as error:
        special_policies(MaintenanceSettings(tables=tables))
    assert named in f"{error.value} {error.value.hint}"


def test_the_policy_of_a_table_overrides_that_of_its_namespace(lake: Lake) -> None:
    tables = {"shop": {"keep_days": "3", "undrop_days": "5"}, "shop.sales": {"keep_days": "90"}}
    settings = MaintenanceSettings(tables=tables)
    assert policy_for(settings, NAME).keep_days == 90 and policy_for(settings, NAME).undrop_days == 5
    assert policy_for(settings, TableName("shop", "x")).keep_days == 3 and policy_for(settings).keep_days == 7
