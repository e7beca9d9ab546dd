"""Branches, tags, log and revert: what every catalog that can branch promises."""

from __future__ import annotations

import pytest
from tests.support.catalog_bench import Bench

from lakehouse.core.errors import BadNameError, BranchExistsError, NoSuchBranchError, NoSuchCommitError
from lakehouse.core.names import TableName
from lakehouse.core.refs import Change, Commit

pytestmark = [pytest.mark.slow, pytest.mark.faults]

#: What a catalog that keeps its branches aside of somebody else's cannot do.
no_list_of_all_files = pytest.mark.lacking(
    "aside", "plugin", reason="others may use files that this lake knows nothing of"
)
no_drop_among_changes = pytest.mark.lacking("aside", reason="Iceberg REST has no transaction with a drop in it")

LEADS, DEALS = TableName("crm", "leads"), TableName("crm", "deals")


@pytest.fixture
def shop(bench: Bench) -> Bench:
    bench.make("crm.leads", 1, 2)
    bench.make("crm.deals", 10)
    return bench


# ---- isolation --------------------------------------------------------------------------------------------------


def test_a_branch_has_all_tables_and_what_is_written_there_stays_there(shop: Bench) -> None:
    shop.catalog.create_branch("exp")
    shop.add("crm.leads", 3, branch="exp")
    assert (shop.ids("crm.leads"), shop.ids("crm.leads", "exp")) == ([1, 2], [1, 2, 3])
    shop.add("crm.leads", 4)
    assert (shop.ids("crm.leads"), shop.ids("crm.leads", "exp")) == ([1, 2, 4], [1, 2, 3])
    assert shop.ids("crm.deals", "exp") == [10]


def test_schema_changes_and_new_tables_are_seen_only_on_their_branch(shop: Bench) -> None:
    shop.catalog.create_branch("exp")
    shop.add_column("crm.leads", "note", branch="exp")
    shop.make("crm.fresh", 7, branch="exp")
    assert (shop.columns("crm.leads"), shop.columns("crm.leads", "exp")) == (["id"], ["id", "note"])
    assert (shop.has("crm.fresh"), shop.has("crm.fresh", "exp")) == (False, True)


def test_a_branch_of_a_branch_begins_with_its_changes_and_publishes_them_too(shop: Bench) -> None:
    shop.catalog.create_branch("one")
    shop.add("crm.leads", 3, branch="one")
    shop.catalog.create_branch("two", "one")
    shop.add("crm.deals", 20, branch="two")
    assert shop.ids("crm.leads", "two") == [1, 2, 3]
    assert {change.table for change in shop.catalog.changes("two")} == {LEADS, DEALS}
    assert shop.catalog.publish("two")
    assert (shop.ids("crm.leads"), shop.ids("crm.deals")) == ([1, 2, 3], [10, 20])


def test_a_branch_says_what_it_was_made_from_and_by_whom(shop: Bench) -> None:
    before = shop.catalog.state_hash()
    shop.catalog.create_branch("exp", commit=Commit("branch", message="try it"))
    (ref,) = shop.catalog.branch_refs()
    assert (ref.name, ref.created_from, ref.state, ref.author, ref.message) == ("exp", "main", before, "ada", "try it")
    shop.add("crm.leads", 3)
    assert shop.catalog.state_hash() != before


@pytest.mark.parametrize("name", ["main", "lake", "lake__dropped", "spark_catalog", "a b", "1st", "x;drop", ""])
def test_a_name_that_would_be_taken_for_something_else_is_refused(shop: Bench, name: str) -> None:
    with pytest.raises(BadNameError):
        shop.catalog.create_branch(name)
    with pytest.raises(BadNameError):
        shop.catalog.create_tag(name)
    assert shop.catalog.branches() == []


def test_a_name_is_given_once_to_a_branch_or_a_tag(shop: Bench) -> None:
    shop.catalog.create_branch("exp")
    shop.catalog.create_tag("v1")
    for name in ("exp", "v1"):
        with pytest.raises(BranchExistsError, match=name):
            shop.catalog.create_branch(name)
        with pytest.raises(BranchExistsError, match=name):
            shop.catalog.create_tag(name)


def test_a_branch_of_what_is_not_there_is_refused(shop: Bench) -> None:
    with pytest.raises(NoSuchBranchError, match="nowhere") as refused:
        shop.catalog.create_branch("exp", "nowhere")
    assert "main" in refused.value.hint
    with pytest.raises(NoSuchBranchError):
        shop.catalog.publish("nowhere")
    with pytest.raises(NoSuchBranchError):
        shop.catalog.changes("nowhere")
    assert not shop.catalog.drop_branch("nowhere")


# ---- publishing -------------------------------------------------------------------------------------------------


def test_everything_of_a_branch_is_published_at_once(shop: Bench) -> None:
    shop.catalog.create_branch("exp")
    shop.add("crm.leads", 3, branch="exp")
    shop.add_column("crm.deals", "note", branch="exp")
    shop.make("crm.fresh", 7, branch="exp")
    changed = {(change.table.table, change.what) for change in shop.catalog.changes("exp")}
    assert changed == {("leads", "changed"), ("deals", "changed"), ("fresh", "added")}
    assert shop.catalog.publish("exp")
    assert shop.ids("crm.leads") == [1, 2, 3]
    assert shop.columns("crm.deals") == ["id", "note"]
    assert shop.ids("crm.fresh") == [7]
    assert shop.catalog.branches() == []
    shop.add("crm.leads", 4)
    assert shop.ids("crm.leads") == [1, 2, 3, 4], "writers go on from there"


def test_main_may_move_in_tables_that_the_branch_did_not_touch(shop: Bench) -> None:
    shop.catalog.create_branch("exp")
    shop.add("crm.leads", 3, branch="exp")
    shop.add("crm.deals", 20)
    assert list(shop.catalog.conflicts("exp")) == []
    assert shop.catalog.publish("exp")
    assert (shop.ids("crm.leads"), shop.ids("crm.deals")) == ([1, 2, 3], [10, 20])


def test_if_main_moved_in_one_of_its_tables_nothing_is_published_and_the_branch_stays(shop: Bench) -> None:
    shop.catalog.create_branch("exp")
    shop.add("crm.leads", 3, branch="exp")
    shop.add("crm.deals", 20, branch="exp")
    shop.add("crm.leads", 4)
    done = shop.catalog.publish("exp")
    assert not done
    assert done.conflicts == (LEADS,) == tuple(shop.catalog.conflicts("exp"))
    assert (shop.ids("crm.leads"), shop.ids("crm.deals")) == ([1, 2, 4], [10])
    assert shop.ids("crm.leads", "exp") == [1, 2, 3]
    assert shop.catalog.log() == []


def test_two_branches_that_make_the_same_table_do_not_replace_each_others(shop: Bench) -> None:
    for name, number in (("one", 1), ("two", 2)):
        shop.catalog.create_branch(name)
        shop.make("crm.fresh", number, branch=name)
    assert shop.catalog.publish("one")
    assert shop.catalog.publish("two").conflicts == (TableName("crm", "fresh"),)
    assert shop.ids("crm.fresh") == [1]


def test_a_table_that_is_dropped_on_a_branch_is_dropped_by_the_merge_and_can_come_back(shop: Bench) -> None:
    shop.catalog.create_branch("exp")
    shop.catalog.on("exp").drop(LEADS, "2026-01-01")
    assert shop.has("crm.leads")
    assert list(shop.catalog.dropped()) == [], "main has dropped nothing yet"
    assert shop.catalog.publish("exp")
    assert not shop.has("crm.leads")
    assert shop.catalog.undrop(LEADS)
    assert shop.ids("crm.leads") == [1, 2]


def test_a_table_that_main_changed_and_the_branch_dropped_is_a_conflict(shop: Bench) -> None:
    shop.catalog.create_branch("exp")
    shop.catalog.on("exp").drop(LEADS, "2026-01-01")
    shop.add("crm.leads", 3)
    assert shop.catalog.publish("exp").conflicts == (LEADS,)
    assert shop.ids("crm.leads") == [1, 2, 3]


def test_what_is_dropped_and_brought_back_on_a_branch_changes_nothing(shop: Bench) -> None:
    shop.catalog.create_branch("exp")
    here = shop.catalog.on("exp")
    assert here.drop(LEADS, "2026-01-01")
    assert not shop.catalog.undrop(LEADS), "it was not main's that was dropped"
    assert here.undrop(LEADS)
    assert shop.catalog.changes("exp") == []


@no_list_of_all_files
def test_a_dropped_branch_is_gone_with_everything_of_it(shop: Bench) -> None:
    before = shop.catalog.reachable()
    shop.catalog.create_branch("exp")
    shop.add("crm.leads", 3, branch="exp")
    shop.catalog.on("exp").drop(DEALS, "2026-01-01")
    assert shop.catalog.drop_branch("exp")
    assert shop.catalog.branches() == []
    assert shop.catalog.reachable() == before
    assert shop.ids("crm.leads") == [1, 2]
    shop.catalog.create_branch("exp")
    assert shop.ids("crm.leads", "exp") == [1, 2], "a new one of that name begins anew"


# ---- tags -------------------------------------------------------------------------------------------------------


def test_a_tag_stays_where_everything_was(shop: Bench) -> None:
    shop.catalog.create_tag("close")
    shop.add("crm.leads", 3)
    shop.catalog.create_branch("then", "close")
    assert shop.ids("crm.leads", "then") == [1, 2]
    tagged = shop.catalog.tag_pointers("close")
    assert tagged is not None and set(tagged) == {LEADS, DEALS}
    assert tagged[LEADS] == shop.catalog.on("then").pointer(LEADS) != shop.catalog.pointer(LEADS)
    shop.add("crm.leads", 9, branch="then")
    assert shop.catalog.publish("then").conflicts == (LEADS,), "main has moved on since"


def test_a_dropped_tag_is_gone(shop: Bench) -> None:
    shop.catalog.create_tag("close")
    shop.catalog.create_tag("copy", "close")
    assert shop.catalog.drop_tag("close")
    assert not shop.catalog.drop_tag("close")
    assert shop.catalog.tag_pointers("close") is None
    assert [ref.name for ref in shop.catalog.tags()] == ["copy"]


def test_publishing_can_leave_a_tag_of_what_everything_was_then(shop: Bench) -> None:
    shop.catalog.create_branch("run_1")
    shop.add("crm.leads", 3, branch="run_1")
    shop.catalog.publish("run_1", Commit(run="1"), tag="run_1")
    shop.add("crm.leads", 4)
    shop.catalog.create_branch("then", "run_1")
    assert shop.ids("crm.leads", "then") == [1, 2, 3]


# ---- the log ----------------------------------------------------------------------------------------------------


def test_the_log_says_who_published_what_and_where_the_tables_were(shop: Bench) -> None:
    before = shop.catalog.pointer(LEADS)
    shop.catalog.create_branch("run_7")
    shop.add("crm.leads", 3, branch="run_7")
    commit = Commit("publish", "grace", "nightly", "7", "leads", "crm.csv")
    done = shop.catalog.publish("run_7", commit)
    (entry,) = shop.catalog.log()
    assert (entry.id, entry.branch, entry.commit) == (done.entry, "main", commit)
    assert entry.tables == (Change(LEADS, before, shop.catalog.pointer(LEADS)),)
    assert shop.catalog.published_by("7") == entry
    assert shop.catalog.published_by("8") is None


def test_the_log_of_a_table_has_only_its_own_entries_the_newest_first(shop: Bench) -> None:
    for name, table in (("a", "crm.leads"), ("b", "crm.deals"), ("c", "crm.leads")):
        shop.catalog.create_branch(name)
        shop.add(table, 5, branch=name)
        shop.catalog.publish(name, Commit(message=name))
    assert [entry.commit.message for entry in shop.catalog.log(LEADS)] == ["c", "a"]
    assert [entry.commit.message for entry in shop.catalog.log()] == ["c", "b", "a"]
    assert [entry.commit.message for entry in shop.catalog.log(limit=1)] == ["c"]


def test_drops_are_in_the_log_and_a_publish_of_nothing_is_not(shop: Bench) -> None:
    shop.catalog.create_branch("exp")
    assert shop.catalog.publish("exp").entry == ""
    shop.catalog.drop(LEADS, "2026-01-01")
    shop.catalog.undrop(LEADS)
    assert [(entry.commit.kind, entry.commit.author) for entry in shop.catalog.log()] == [
        ("undrop", "ada"),
        ("drop", "ada"),
    ]


def test_words_that_are_too_long_are_cut_and_stop_nothing(shop: Bench) -> None:
    shop.catalog.create_branch("exp", commit=Commit("branch", "a" * 300, "m" * 5000))
    shop.add("crm.leads", 3, branch="exp")
    assert shop.catalog.publish("exp", Commit(author="a" * 300, message="m" * 5000, source="s" * 5000))
    (entry,) = shop.catalog.log()
    assert entry.commit.message.startswith("m" * 1000)


# ---- revert -----------------------------------------------------------------------------------------------------


def published(shop: Bench) -> str:
    """A publish that changed a table, made one and dropped one."""
    shop.catalog.create_branch("exp")
    shop.add("crm.leads", 3, branch="exp")
    shop.make("crm.fresh", 7, branch="exp")
    shop.catalog.on("exp").drop(DEALS, "2026-01-01")
    return shop.catalog.publish("exp").entry


@no_drop_among_changes
def test_a_revert_undoes_a_publish_in_all_its_tables(shop: Bench) -> None:
    entry = published(shop)
    assert (shop.has("crm.fresh"), shop.has("crm.deals")) == (True, False)
    done = shop.catalog.revert(entry, Commit(message="wrong"))
    assert done and done.entry != entry
    assert (shop.ids("crm.leads"), shop.ids("crm.deals"), shop.has("crm.fresh")) == ([1, 2], [10], False)
    assert [record.commit.kind for record in shop.catalog.log(limit=2)] == ["revert", "publish"]
    shop.add("crm.leads", 4)
    assert shop.ids("crm.leads") == [1, 2, 4], "writers go on from there"


@no_drop_among_changes
def test_a_revert_can_be_reverted(shop: Bench) -> None:
    undone = shop.catalog.revert(published(shop), Commit())
    assert shop.catalog.revert(undone.entry, Commit())
    assert (shop.ids("crm.leads"), shop.ids("crm.fresh"), shop.has("crm.deals")) == ([1, 2, 3], [7], False)


def test_a_run_whose_publish_was_reverted_has_not_published(shop: Bench) -> None:
    def publish() -> str:
        shop.catalog.create_branch("run_7")
        shop.add("crm.leads", 3, branch="run_7")
        return shop.catalog.publish("run_7", Commit(run="7")).entry

    def entry_of_run() -> str:
        entry = shop.catalog.published_by("7")
        return entry.id if entry else ""

    first = publish()
    undone = shop.catalog.revert(first, Commit(run="7")).entry
    assert entry_of_run() == ""
    again = shop.catalog.revert(undone, Commit(run="7")).entry
    assert entry_of_run() == first
    shop.catalog.revert(again, Commit(run="7"))
    assert entry_of_run() == ""
    second = publish()
    assert second != first and entry_of_run() == second


@no_drop_among_changes
def test_a_revert_is_refused_as_a_whole_if_one_table_moved_since(shop: Bench) -> None:
    entry = published(shop)
    shop.add("crm.leads", 4)
    done = shop.catalog.revert(entry, Commit())
    assert not done
    assert done.conflicts == (LEADS,)
    assert (shop.ids("crm.leads"), shop.ids("crm.fresh"), shop.has("crm.deals")) == ([1, 2, 3, 4], [7], False)


@pytest.mark.parametrize("commit", ["99", "x", "-1", "", "9" * 30])
def test_a_commit_that_is_not_there_cannot_be_reverted(shop: Bench, commit: str) -> None:
    with pytest.raises(NoSuchCommitError):
        shop.catalog.revert(commit, Commit())


# ---- what is still needed -----------------------------------------------------------------------------------------


@no_list_of_all_files
def test_everything_that_anything_leads_to_is_reachable(shop: Bench) -> None:
    first = shop.catalog.pointer(LEADS)
    shop.catalog.create_tag("close")
    shop.catalog.create_branch("exp")
    shop.add("crm.leads", 3, branch="exp")
    on_branch = shop.catalog.on("exp").pointer(LEADS)
    shop.add("crm.leads", 4)
    now = shop.catalog.pointer(LEADS)
    files = {(file.pointer, file.by) for file in shop.catalog.reachable() if file.table.table.startswith("leads")}
    assert files == {(now, "main"), (on_branch, "branch exp"), (first, "base of exp"), (first, "tag close")}
    shop.catalog.drop(LEADS, "2026-01-01")
    dropped = {file.by for file in shop.catalog.reachable() if file.pointer == now}
    assert dropped == {"dropped", f"log {shop.catalog.log()[0].id}"}
    assert {file.by for file in shop.catalog.reachable(since="9999") if file.pointer == now} == {"dropped"}


@no_list_of_all_files
@no_drop_among_changes
def test_what_a_revert_would_need_is_reachable(shop: Bench) -> None:
    before = shop.catalog.pointer(LEADS)
    entry = published(shop)
    assert f"log {entry}" in {file.by for file in shop.catalog.reachable() if file.pointer == before}


def test_several_pointers_are_of_one_moment_and_none_where_there_is_no_table(shop: Bench) -> None:
    gone = TableName("crm", "gone")
    pointers = shop.catalog.pointers([LEADS, DEALS, gone])
    assert pointers == {LEADS: shop.catalog.pointer(LEADS), DEALS: shop.catalog.pointer(DEALS), gone: None}
