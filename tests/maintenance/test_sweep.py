"""Removal of files that nothing needs: what somebody may need stays, whatever it is and whenever it comes."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.audit import audited, take_state
from tests.support.damaged_tables import (
    FUTURE_DAYS,
    NAME,
    T,
    append,
    catalog_of,
    create,
    damaged,
    data_files,
    delete,
    expire_all,
    ids,
    maintainer,
    opened,
    orphan_of,
    rows,
    stored_files,
)
from tests.support.light_runs import pyiceberg, run, with_settings
from tests.support.removal_races import NO_DELAY, REMOVE, racing, slow_writer

from lakehouse.core.errors import MaintenanceRunningError
from lakehouse.core.requests import MaintainRequest
from lakehouse.lake import Lake
from lakehouse.maintenance.inventory import Inventory
from lakehouse.maintenance.sweep import Sweeper


def sweep(lake: Lake, days: float = FUTURE_DAYS, **settings: Any) -> Any:
    return maintainer(lake, days, **{**NO_DELAY, **settings}).run(REMOVE).sweep


def test_what_a_writer_left_behind_is_removed(lake: Lake) -> None:
    damaged(lake, 2)
    file = orphan_of(lake)
    assert sweep(lake).removed_files >= 1 and not file.exists()
    assert ids(lake) == [0, 1]


def test_a_young_file_stays(lake: Lake) -> None:
    damaged(lake, 1)
    file = orphan_of(lake)
    assert sweep(lake, days=2.9).removed_files == 0 and file.exists()


def test_a_file_is_removed_only_some_time_after_it_was_found(lake: Lake) -> None:
    damaged(lake, 1)
    file = orphan_of(lake)
    first = sweep(lake, days=5, delete_after_hours=24)
    assert first.removed_files == 0 and first.waiting_files >= 1 and file.exists()
    assert sweep(lake, days=5.5, delete_after_hours=24).removed_files == 0 and file.exists()
    assert sweep(lake, days=6.1, delete_after_hours=24).removed_files >= 1 and not file.exists()


def test_the_wait_begins_anew_when_a_file_was_needed_in_between(lake: Lake) -> None:
    damaged(lake, 3)
    delete(lake, "id >= 0")
    old = set(data_files(lake))
    maintained = maintainer(lake, 20, keep_snapshots=1, **{**NO_DELAY, "delete_after_hours": 24})
    maintained.run(MaintainRequest())
    assert ids(lake) == [] and not old
    waiting = maintainer(lake, 20.5, **{**NO_DELAY, "delete_after_hours": 24}).run(REMOVE).sweep.waiting_files
    assert waiting > 0
    assert maintainer(lake, 21.1, **{**NO_DELAY, "delete_after_hours": 24}).run(REMOVE).sweep.removed_files == waiting


def test_bytes_on_disk_after_expiry_are_those_that_are_reachable(lake: Lake) -> None:
    damaged(lake, 8)
    maintainer(lake).run(MaintainRequest())
    expire_all(lake)
    inventory = maintainer(lake, FUTURE_DAYS).sweeper().inventories.take()
    folder = lake.folder / "warehouse"
    on_disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    needed = sum(Path(uri.removeprefix("file://")).stat().st_size for uri in _since(lake).files)
    assert inventory.complete and on_disk <= 1.2 * needed
    assert ids(lake) == list(range(8))


def _since(lake: Lake) -> Inventory:
    swept = maintainer(lake, FUTURE_DAYS).sweeper()
    return swept.inventories.take(swept.since)


def test_a_dry_run_removes_nothing(lake: Lake) -> None:
    damaged(lake, 1)
    file = orphan_of(lake)
    before = stored_files(lake)
    planned = maintainer(lake, FUTURE_DAYS, **NO_DELAY).run(replace(REMOVE, dry_run=True)).sweep
    assert planned.removed_files >= 1 and file.exists() and stored_files(lake) == before
    assert not (lake.folder / "maintenance").exists()


# ---- what others need: each of them is offered to the sweep, beside an orphan that goes ------------------------------


def planted_on_a_branch(lake: Lake) -> Callable[[], bool]:
    lake.refs.branches.create("exp")
    append(lake, [100], branch="exp")
    return lambda: ids(lake, branch="exp") == [0, 1, 100]


def planted_on_a_new_table_of_a_branch(lake: Lake) -> Callable[[], bool]:
    lake.refs.branches.create("exp")
    create(lake, "shop.other", branch="exp")
    append(lake, [7], "shop.other", branch="exp")
    return lambda: ids(lake, "shop.other", branch="exp") == [7]


def planted_under_a_tag(lake: Lake) -> Callable[[], bool]:
    lake.refs.branches.create_tag("v1")
    delete(lake, "id == 0")
    return lambda: ids(lake, as_of="v1") == [0, 1]


def planted_by_a_kept_run(lake: Lake) -> Callable[[], bool]:
    record = run(lake, "kept", "shop.kept", publish=False)
    assert record.state == "kept"
    answer = lake.sql("select run from shop.kept", branch=record.branch)
    return lambda: answer.rows() == lake.sql("select run from shop.kept", branch=record.branch).rows() == [("kept",)]


def planted_as_a_dropped_table(lake: Lake) -> Callable[[], bool]:
    damaged(lake, 2, "shop.gone")
    lake.drop("shop.gone")

    def restored() -> bool:
        lake.undrop("shop.gone")
        return ids(lake, "shop.gone") == [0, 1]

    return restored


def planted_as_a_hudi_table(lake: Lake) -> Callable[[], bool]:
    folder = data_files(lake)[0].parent / "inner"
    (folder / ".hoodie").mkdir(parents=True)
    (folder / ".hoodie" / "hoodie.properties").write_text("hoodie.table.name=inner\n")
    file = folder / "part.parquet"
    file.write_bytes(b"PAR1")
    return file.exists


def planted_by_another_lake_in_a_nested_folder(lake: Lake) -> Callable[[], bool]:
    table = data_files(lake)[0].parents[1]
    shutil.copytree(table, lake.folder.parent / "copy")
    folder = table / "data" / "theirs"
    shutil.move(lake.folder.parent / "copy", folder)
    file = next((folder / "data").glob("*.parquet"))
    return file.exists


PLANTED = [value for name, value in sorted(globals().items()) if name.startswith("planted_")]


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__.removeprefix("planted_"))
def test_what_somebody_needs_stays(lake: Lake, plant: Callable[[Lake], Callable[[], bool]]) -> None:
    damaged(lake, 2)
    is_there = plant(lake)
    file = orphan_of(lake)
    report = expire_all(lake)
    assert report.sweep.removed_files >= 1 and not file.exists(), "the sweep did remove something"
    assert is_there()


@pytest.mark.parametrize("plant", [planted_on_a_branch, planted_under_a_tag], ids=["branch", "tag"])
def test_without_asking_the_inventory_they_would_be_removed(
    lake: Lake, plant: Callable[[Lake], Callable[[], bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged(lake, 2)
    plant(lake)
    current = {str(path) for path in data_files(lake)}
    before = {path for path in stored_files(lake) if path.endswith(".parquet")}
    monkeypatch.setattr(Inventory, "needs", lambda self, uri: uri.removeprefix("file://") in current)
    expire_all(lake)
    assert {path for path in stored_files(lake) if path.endswith(".parquet")} < before


def test_another_lake_in_the_same_folder_is_left_alone(tmp_path: Path) -> None:
    shared = f"file://{tmp_path / 'shared'}"
    with (
        with_settings(tmp_path / "one", warehouse=shared) as one,
        with_settings(tmp_path / "two", warehouse=shared) as two,
    ):
        damaged(one, 2)
        damaged(two, 2)  # the same name and so the same folder, but another table
        append(two, [7])
        assert data_files(one)[0].parent == data_files(two)[0].parent
        report = sweep(one)
        assert report.removed_files == 0 and any("does not know" in reason for reason in report.skipped)
        assert ids(two) == [0, 1, 7] and ids(one) == [0, 1]


def test_an_attempt_to_create_the_table_again_is_no_other_lake(lake: Lake) -> None:
    damaged(lake, 1)
    pyiceberg(lake).create_table_if_not_exists(T, rows([]).schema)  # leaves a metadata file without a table
    file = orphan_of(lake)
    assert sweep(lake).removed_files >= 1 and not file.exists() and ids(lake) == [0]


def test_what_a_branch_wrote_to_a_new_table_is_no_other_lake(lake: Lake) -> None:
    for branch in ("exp", "exp", "other"):
        lake.refs.branches.create(branch)
        create(lake, branch=branch)
        append(lake, [1], branch=branch)
        if branch == "other":
            lake.branch(branch).drop(T)
        lake.refs.branches.drop(branch)
    damaged(lake, 1)
    file = orphan_of(lake)
    lake.maintain(only=["remove_files"])  # learns whose files these are, while the log still has them
    report = sweep(lake)
    assert not report.skipped and not file.exists() and ids(lake) == [0]
    assert not take_state(audited(lake)).unnamed and len(list(file.parent.glob("*.parquet"))) == 1


def test_a_table_outside_the_warehouse_is_left_alone(lake: Lake, tmp_path: Path) -> None:
    create(lake, location=f"file://{tmp_path / 'elsewhere'}")
    append(lake, [1])
    file = orphan_of(lake)
    report = sweep(lake)
    assert report.removed_files == 0 and file.exists() and "outside" in report.skipped[0]


def test_nothing_is_removed_while_a_reference_cannot_be_read(lake: Lake) -> None:
    damaged(lake, 2)
    create(lake, "shop.broken")
    append(lake, [1], "shop.broken")
    manifest_list = opened(lake, "shop.broken").current_snapshot().manifest_list
    Path(manifest_list.removeprefix("file://")).unlink()
    file = orphan_of(lake)
    report = sweep(lake)
    assert report.removed_files == 0 and file.exists() and "lake verify" in report.skipped[0]


def test_a_dropped_table_is_forgotten_after_its_time_and_its_files_go(lake: Lake) -> None:
    damaged(lake, 2, "shop.gone")
    damaged(lake, 1)
    lake.drop("shop.gone")
    sweep(lake, days=20, undrop_days=30)
    assert lake.dropped() == ["shop.gone"]
    sweep(lake, days=40, undrop_days=30)
    assert lake.dropped() == [] and ids(lake) == [0]
    sweep(lake, days=90, undrop_days=30)
    assert not [path for path in stored_files(lake) if "/gone/" in path]


# ---- races ----------------------------------------------------------------------------------------------------------


def test_a_file_that_is_committed_after_the_listing_stays(lake: Lake) -> None:
    damaged(lake, 2)
    racing(lake, slow_writer(lake))
    assert ids(lake) == [0, 1, 100]


def test_a_file_that_is_committed_right_before_the_removal_stays(lake: Lake) -> None:
    damaged(lake, 2)
    commit = slow_writer(lake)
    maintained = maintainer(lake, FUTURE_DAYS, **NO_DELAY)
    swept = maintained.sweeper()
    files, _, inventory = swept.find()
    assert any("data" in file.uri for file in files), "the writer's file is a candidate"
    commit()
    swept._remove(files, inventory)
    assert ids(lake) == [0, 1, 100]


def test_without_the_second_look_it_would_be_lost(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged(lake, 2)
    commit = slow_writer(lake)
    swept = maintainer(lake, FUTURE_DAYS, **NO_DELAY).sweeper()
    files, _, inventory = swept.find()
    commit()
    monkeypatch.setattr(type(swept.inventories), "take", lambda self, since="", previous=None: previous)
    swept._remove(files, inventory)
    with pytest.raises(FileNotFoundError):
        data_files(lake)


def test_a_branch_that_is_created_after_the_listing_keeps_its_files(lake: Lake) -> None:
    damaged(lake, 3)
    lake.refs.branches.create_tag("v1")
    delete(lake, "id == 0")

    def act() -> None:
        lake.refs.branches.create("late", from_ref="v1")
        lake.refs.branches.drop_tag("v1")

    racing(lake, act)
    assert ids(lake, branch="late") == [0, 1, 2]


def test_a_table_that_is_restored_after_the_listing_is_whole(lake: Lake) -> None:
    damaged(lake, 2)
    lake.drop(T)
    racing(lake, lambda: (lake.undrop(T), None)[1])
    assert ids(lake) == [0, 1]


def test_a_run_that_publishes_after_the_listing_is_whole(lake: Lake) -> None:
    damaged(lake, 1)
    kept = run(lake, "kept", "shop.kept", publish=False)
    racing(lake, lambda: (lake.refs.branches.merge(kept.branch), None)[1])
    assert lake.sql("select run from shop.kept").rows() == [("kept",)]


def test_a_run_at_work_protects_all_files_since_it_began(lake: Lake) -> None:
    damaged(lake, 1)
    file = orphan_of(lake)
    os.utime(file, (1, 1))
    begun = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(minutes=30)
    maintained = replace(maintainer(lake, FUTURE_DAYS, **NO_DELAY), writers_since=lambda: begun)
    assert maintained.run(REMOVE).sweep.removed_files == 0 and file.exists()


def test_a_second_maintainer_is_told_that_one_is_at_work(lake: Lake) -> None:
    damaged(lake, 1)
    inside, done = threading.Event(), threading.Event()
    errors: list[Exception] = []

    def second() -> None:
        inside.wait(30)
        try:
            lake.maintain(T)
        except MaintenanceRunningError as exc:
            errors.append(exc)
        done.set()

    worker = threading.Thread(target=second)
    worker.start()
    racing(lake, lambda: (inside.set(), done.wait(60), None)[2])
    worker.join()
    assert len(errors) == 1


def test_two_maintainers_of_two_machines_lose_nothing(lake: Lake, tmp_path: Path) -> None:
    damaged(lake, 6)
    barrier = threading.Barrier(2)
    failures: list[BaseException] = []

    def work(folder: Path) -> None:
        try:
            (folder / "run").mkdir(parents=True)
            mine = replace(maintainer(lake, FUTURE_DAYS, keep_snapshots=1, **NO_DELAY), folder=folder)
            barrier.wait(30)
            mine.run(MaintainRequest())
            mine.run(MaintainRequest())
        except BaseException as exc:  # noqa: BLE001 - the test shows it
            failures.append(exc)

    workers = [threading.Thread(target=work, args=(tmp_path / name,)) for name in ("a", "b")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures and ids(lake) == list(range(6))
    assert catalog_of(lake).branches() == []


def test_the_sweep_of_a_catalog_that_cannot_know_all_files_removes_nothing(lake: Lake) -> None:
    from lakehouse.core.errors import NotSupportedError

    class Unknowing:
        def __getattr__(self, name: str) -> Any:
            return getattr(catalog_of(lake), name)

        def reachable(self, since: str = "") -> Any:
            raise NotSupportedError("others may use it")

    damaged(lake, 2)
    file = orphan_of(lake)
    from lakehouse.maintenance.inventory import Inventories

    swept: Sweeper = maintainer(lake, FUTURE_DAYS, **NO_DELAY).sweeper()
    unknowing = Inventories(Unknowing(), swept.inventories.files)  # type: ignore[arg-type]
    report = replace(swept, inventories=unknowing).sweep()
    assert report.removed_files == 0 and file.exists() and "others may use it" in report.skipped[0]
    assert NAME in {reference.table for reference in unknowing.take().references}
