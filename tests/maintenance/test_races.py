"""Races of maintenance with others, in both orders. Each is shown to go wrong when what prevents it is taken out.

Another actor acts at one exact moment: right before a maintenance publishes, or right after it has listed files. A race is
given twice, with what prevents it and without: the second one shows that the first one can fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.support.damaged_tables import (
    FUTURE_DAYS,
    NAME,
    T,
    append,
    before_publish,
    catalog_of,
    damaged,
    data_files,
    delete,
    delete_by_position,
    maintainer,
    opened,
    rows,
)
from tests.support.light_runs import pyiceberg
from tests.support.removal_races import NO_DELAY, racing, slow_writer

from lakehouse.core.errors import LakeError
from lakehouse.core.names import TableName
from lakehouse.core.requests import MaintainRequest
from lakehouse.lake import Lake
from lakehouse.maintenance import expire
from lakehouse.maintenance.inventory import Inventories
from lakehouse.maintenance.maintain import Maintainer
from lakehouse.tables import rewrite
from lakehouse.tables.fork import Committer

COMPACT = MaintainRequest((NAME,), only=("compact",))
EXPIRE = MaintainRequest((NAME,), only=("expire",))


@pytest.fixture
def no_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replacements are applied whatever others did to their files."""
    monkeypatch.setattr(rewrite, "validate", lambda current, replacement: None)


class BlindCommitter(Committer):
    """Commits on top of whatever the table is by now: without the comparison of pointers."""

    def commit(self, table: TableName, expected: str, raw: Mapping[str, Any], message: str) -> str:
        new = self._write(expected, raw)
        self.publish("", self.signed(message))  # only the hook of the test: the other writer acts
        current = self.catalog.pointer(table)
        assert current and self.catalog.swap_pointer(table, current, new)
        return new


def blindly(maintained: Maintainer, action: Callable[[], None]) -> Maintainer:
    own = maintained.committer
    published = lambda branch, commit: action()  # noqa: E731 - a hook of one expression
    return replace(maintained, committer=BlindCommitter(own.catalog, own.files, published, own.author))  # type: ignore[arg-type]


def upsert(lake: Lake) -> None:
    """A merge: row 2 gets another day, row 100 is new."""
    theirs = pyiceberg(lake).load_table(T)
    theirs.upsert(rows([2, 100], "tue"), join_cols=["id"])


def days(lake: Lake, table: str = T, branch: str = "main") -> list[tuple[int, str]]:
    """All rows, read by PyIceberg: DuckDB takes longer to start than a race."""
    return sorted((row["id"], row["day"]) for row in opened(lake, table, branch).scan().to_arrow().to_pylist())


def ids(lake: Lake, table: str = T, branch: str = "main") -> list[int]:
    return [id for id, _ in days(lake, table, branch)]


# ---- compaction x delete, merge, append, publish, another maintainer --------------------------------------------------


@dataclass(frozen=True)
class Change:
    """What another writer does to the rows 0, 1 and 2, and which rows are right after it."""

    act: Callable[[Lake], None]
    after: tuple[int, ...]


CHANGES = {
    "delete": Change(lambda lake: delete(lake, "id == 1"), (0, 2)),
    "delete by position": Change(lambda lake: delete_by_position(lake, [1]), (0, 2)),
    "merge": Change(upsert, (0, 1, 2, 100)),
    "append": Change(lambda lake: append(lake, [100]), (0, 1, 2, 100)),
    "two maintainers": Change(lambda lake: (other_machine(lake), None)[1], (0, 1, 2)),
}
each_change = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
#: An append changes no file of the compaction, so that the comparison of pointers alone protects it.
rewriting = pytest.mark.parametrize("name", [name for name in CHANGES if name != "append"])


def other_machine(lake: Lake) -> None:
    """A compaction by a maintainer that the lock of this machine does not stop."""
    folder = lake.folder / "elsewhere"
    (folder / "run").mkdir(parents=True)
    replace(maintainer(lake), folder=folder).run(COMPACT)


@each_change
def test_a_change_during_a_compaction(lake: Lake, change: Change) -> None:
    damaged(lake, 3)
    report = before_publish(maintainer(lake), lambda: change.act(lake)).run(COMPACT)
    assert ids(lake) == list(change.after)
    assert "failed" not in {action.state for action in report.actions}


@each_change
def test_a_change_after_a_compaction_that_read_before_it(lake: Lake, change: Change) -> None:
    damaged(lake, 3)
    lake.maintain(T)
    change.act(lake)
    lake.maintain(T)
    assert ids(lake) == list(change.after) and len(data_files(lake)) <= 2


@rewriting
def test_without_the_validation_a_change_during_a_compaction_is_undone_or_doubled_or_the_compaction_fails(
    lake: Lake, name: str, no_validation: None
) -> None:
    damaged(lake, 3)
    change = CHANGES[name]
    report = before_publish(maintainer(lake), lambda: change.act(lake)).run(COMPACT)
    failed = "failed" in {action.state for action in report.actions}
    assert failed or ids(lake) != list(change.after)


@pytest.mark.parametrize("request_", [COMPACT, EXPIRE], ids=["compact", "expire"])
def test_without_the_comparison_of_pointers_an_append_would_be_lost(lake: Lake, request_: MaintainRequest) -> None:
    damaged(lake, 3)
    maintained = maintainer(lake, FUTURE_DAYS, keep_snapshots=1)
    blindly(maintained, lambda: append(lake, [100])).run(request_)
    assert ids(lake) == [0, 1, 2], "so the tests of appends fail without it"


def test_the_rows_of_a_merge_during_a_compaction_are_the_new_ones(lake: Lake) -> None:
    damaged(lake, 3)
    before_publish(maintainer(lake), lambda: upsert(lake)).run(COMPACT)
    assert days(lake) == [(0, "mon"), (1, "mon"), (2, "tue"), (100, "tue")]


def publish_of_branch(lake: Lake) -> None:
    lake.refs.branches.create("exp")
    append(lake, [100], branch="exp")
    assert lake.refs.branches.merge("exp")


def test_a_publish_during_a_compaction_or_an_expiry_is_kept(lake: Lake) -> None:
    damaged(lake, 3)
    before_publish(maintainer(lake), lambda: publish_of_branch(lake)).run(COMPACT)
    assert ids(lake) == [0, 1, 2, 100]
    late = maintainer(lake, FUTURE_DAYS, keep_snapshots=1)
    before_publish(late, lambda: append(lake, [200])).run(EXPIRE)
    assert ids(lake) == [0, 1, 2, 100, 200]


def test_without_the_comparison_of_pointers_a_publish_would_be_lost(lake: Lake) -> None:
    damaged(lake, 3)
    blindly(maintainer(lake), lambda: publish_of_branch(lake)).run(COMPACT)
    assert ids(lake) == [0, 1, 2]


def test_a_branch_that_changes_the_table_during_a_compaction_is_published_whole_or_refused(lake: Lake) -> None:
    damaged(lake, 3)

    def branch_off() -> None:
        lake.refs.branches.create("exp")
        append(lake, [100], branch="exp")

    before_publish(maintainer(lake), branch_off).run(COMPACT)
    assert ids(lake) == [0, 1, 2] and ids(lake, branch="exp") == [0, 1, 2, 100]
    try:
        lake.refs.branches.merge("exp")
        expected = [0, 1, 2, 100]
    except LakeError:
        expected = [0, 1, 2]
    assert ids(lake) == expected, "nothing is lost, nothing doubled"


# ---- expiry x long reader ---------------------------------------------------------------------------------------------


def test_a_reader_that_began_right_before_a_snapshot_was_replaced_keeps_it(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged(lake, 2)
    reader = str(opened(lake).current_snapshot().snapshot_id)
    # The snapshot of the reader is as old as the table, and was replaced a moment ago.
    late = maintainer(lake, 10, keep_snapshots=1)
    pointer = catalog_of(lake).pointer(NAME)
    assert pointer
    now = int(late.now().timestamp() * 1000)
    raw = rewrite.replace_files(
        opened(lake), expire_raw(lake), rewrite.Replacement(frozenset(), (), merge_manifests=True), {}, late.now()
    )
    assert raw["snapshots"][-1]["timestamp-ms"] >= now - 1000
    policy = late.policy(NAME)
    assert int(reader) not in expire.expirable(raw, policy, late.now())
    monkeypatch.setattr(
        expire,
        "ended_at_ms",
        lambda raw: {snapshot["snapshot-id"]: snapshot["timestamp-ms"] for snapshot in raw["snapshots"][:-1]},
    )
    assert int(reader) in expire.expirable(raw, policy, late.now()), "by its own age it would go under the reader"


def expire_raw(lake: Lake) -> dict[str, Any]:
    from lakehouse.core.metadata_file import load_metadata

    pointer = catalog_of(lake).pointer(NAME)
    assert pointer
    return load_metadata(pointer, maintainer(lake).files)


@pytest.mark.parametrize(("hours", "readable"), [(24.0, True), (0.0, False)], ids=["with the wait", "without it"])
def test_a_long_reader_of_an_expired_snapshot_ends_well_because_files_wait(
    lake: Lake, hours: float, readable: bool
) -> None:
    damaged(lake, 3)
    first, old = int(lake.history(T)[0].id), opened(lake)
    delete(lake, "id == 0")
    maintained = maintainer(lake, FUTURE_DAYS, keep_snapshots=1, **{**NO_DELAY, "delete_after_hours": hours})
    maintained.run(MaintainRequest())
    assert str(first) not in {snapshot.id for snapshot in lake.history(T)}
    if readable:
        assert old.scan(snapshot_id=first).to_arrow().num_rows == 1
    else:
        with pytest.raises(FileNotFoundError):
            old.scan(snapshot_id=first).to_arrow()


def test_a_reader_that_begins_after_the_expiry_gets_an_error_and_no_wrong_rows(lake: Lake) -> None:
    damaged(lake, 3)
    first = lake.history(T)[0].id
    maintainer(lake, FUTURE_DAYS, keep_snapshots=1).run(EXPIRE)
    with pytest.raises(LakeError):
        lake.travel(T, first)


# ---- removal of files x slow writer, branch creation, undrop -----------------------------------------------------------


@pytest.fixture
def one_inventory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep takes its inventory before it lists files, and never again."""
    take, taken = Inventories.take, []

    def once(self: Inventories, since: str = "", previous: Any = None) -> Any:
        if not taken:
            taken.append(take(self, since, previous))
        return taken[0]

    monkeypatch.setattr(Inventories, "take", once)


def test_without_a_later_inventory_the_file_of_a_slow_writer_would_go(lake: Lake, one_inventory: None) -> None:
    damaged(lake, 2)
    racing(lake, slow_writer(lake))
    with pytest.raises(FileNotFoundError):
        opened(lake).scan().to_arrow()


def test_a_file_that_is_committed_before_the_listing_stays(lake: Lake) -> None:
    damaged(lake, 2)
    commit = slow_writer(lake)
    commit()
    racing(lake, lambda: None)
    assert ids(lake) == [0, 1, 100]


def writer_on_new_branch(lake: Lake) -> Callable[[], None]:
    """A writer that has written its file, and commits it to a branch that it creates later."""
    lake.refs.branches.create("first")
    table = pyiceberg(lake, "first").load_table(T)
    transaction = table.transaction()
    transaction.append(rows([100]))
    return transaction.commit_transaction  # type: ignore[no-any-return]


def test_a_commit_to_a_branch_after_the_listing_stays(lake: Lake) -> None:
    damaged(lake, 2)
    racing(lake, writer_on_new_branch(lake))
    assert ids(lake, branch="first") == [0, 1, 100]


def test_without_a_later_inventory_the_files_of_the_branch_would_go(lake: Lake, one_inventory: None) -> None:
    damaged(lake, 2)
    racing(lake, writer_on_new_branch(lake))
    with pytest.raises(FileNotFoundError):
        opened(lake, branch="first").scan().to_arrow()


@pytest.mark.parametrize("restored", [True, False], ids=["undrop first", "forgotten first"])
def test_a_table_is_restored_whole_or_not_at_all(lake: Lake, restored: bool) -> None:
    damaged(lake, 2, "shop.gone")
    damaged(lake, 1)
    lake.drop("shop.gone")
    over = {**NO_DELAY, "undrop_days": 30.0}

    def undrop() -> bool:
        try:
            return bool(lake.undrop("shop.gone"))
        except LakeError:
            return False

    if restored:
        assert undrop()
    maintainer(lake, 40, **over).run(MaintainRequest(only=("remove_files",)))
    maintainer(lake, 90, **over).run(MaintainRequest(only=("remove_files",)))
    assert undrop() is False
    assert lake.table_names().count("shop.gone") == int(restored)
    if restored:
        assert ids(lake, "shop.gone") == [0, 1]


def test_without_the_log_of_drops_a_dropped_table_would_be_removed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged(lake, 2, "shop.gone")
    damaged(lake, 1)
    lake.maintain(only=["remove_files"])  # the folder is known as the lake's own
    lake.drop("shop.gone")
    catalog = type(catalog_of(lake))
    reachable = catalog.reachable
    monkeypatch.setattr(
        catalog,
        "reachable",
        lambda self, since="": [file for file in reachable(self, since) if not file.by.startswith("dropped")],
    )
    maintainer(lake, FUTURE_DAYS, **NO_DELAY).run(MaintainRequest(only=("remove_files",)))
    monkeypatch.undo()
    with pytest.raises(LakeError, match="cannot be read"):
        lake.undrop("shop.gone")
