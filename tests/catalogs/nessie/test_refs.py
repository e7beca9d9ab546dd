"""Branches, tags and the log of a real Nessie."""

from __future__ import annotations

import pytest
from tests.support.nessie_catalog import ROWS, append, branch, catalog, count, leads, theirs

from lakehouse.catalogs.nessie import NessieCatalog, history, publishing, refs
from lakehouse.catalogs.nessie.annotations import BRANCH
from lakehouse.core.errors import (
    BadNameError,
    BranchExistsError,
    NoSuchBranchError,
    NoSuchCommitError,
)
from lakehouse.core.names import TableName
from lakehouse.core.refs import Commit

__all__ = ["branch", "catalog", "leads"]

pytestmark = pytest.mark.slow


# ---- branches ---------------------------------------------------------------------------------------------------


def test_a_branch_is_its_own_until_it_is_published(catalog: NessieCatalog, leads: TableName, branch: str) -> None:
    base = catalog.fork(branch, [leads, TableName(leads.namespace, "new")])
    assert base == {leads: catalog.pointer(leads), TableName(leads.namespace, "new"): None}
    append(catalog, leads, branch)
    theirs(catalog, branch).create_table(f"{leads.namespace}.new", schema=ROWS.schema).append(ROWS)
    assert [count(catalog, leads), count(catalog, leads, branch)] == [2, 4]
    assert [(change.table.table, change.what) for change in catalog.changes(branch)] == [
        ("leads", "changed"),
        ("new", "added"),
    ]
    after = catalog.on(branch).pointer(leads)
    commit = Commit("publish", "ann", "the news", run="r-1", pipeline="crm", source="a.csv")
    done = catalog.publish(branch, commit, tag=f"t_{branch}"[:100])
    assert done and done.entry
    assert catalog.pointer(leads) == after
    assert count(catalog, TableName(leads.namespace, "new")) == 2
    assert branch not in catalog.branches()
    entry = catalog.log(limit=1)[0]
    assert (entry.id, entry.commit) == (done.entry, commit)
    assert {change.table.table: change.before for change in entry.tables} == {"leads": base[leads], "new": None}
    assert (catalog.tag_pointers(f"t_{branch}"[:100]) or {})[leads] == after


def test_a_publish_of_nothing_is_done_and_leaves_no_trace(
    catalog: NessieCatalog, leads: TableName, branch: str
) -> None:
    catalog.create_branch(branch)
    newest = catalog.log(limit=1)
    done = catalog.publish(branch)
    assert done and not done.entry
    assert catalog.log(limit=1) == newest
    assert branch not in catalog.branches()


def test_a_conflict_publishes_nothing_and_names_the_table(
    catalog: NessieCatalog, leads: TableName, branch: str
) -> None:
    other = TableName(leads.namespace, "other")
    theirs(catalog).create_table(str(other), schema=ROWS.schema)
    catalog.fork(branch, [leads, other])
    append(catalog, leads, branch)
    append(catalog, other, branch)
    assert catalog.conflicts(branch) == ()
    append(catalog, leads)
    before = catalog.pointers([leads, other])
    assert catalog.conflicts(branch) == (leads,)
    assert catalog.pointers([leads, other]) == before
    done = catalog.publish(branch)
    assert not done
    assert done.conflicts == (leads,)
    assert catalog.pointers([leads, other]) == before
    assert branch in catalog.branches()
    assert catalog.drop_branch(branch)
    assert not catalog.drop_branch(branch)


def test_two_branches_that_make_the_same_namespace_both_publish(catalog: NessieCatalog, namespace: str) -> None:
    for number in (1, 2):
        here = f"b{number}_{namespace}"[:100]
        catalog.create_branch(here)
        catalog.on(here).ensure_namespace(namespace)
        theirs(catalog, here).create_table(f"{namespace}.t{number}", schema=ROWS.schema)
    assert [bool(catalog.publish(f"b{number}_{namespace}"[:100])) for number in (1, 2)] == [True, True]
    assert [catalog.pointer(TableName(namespace, f"t{number}")) is None for number in (1, 2)] == [False, False]


def test_what_is_written_to_a_branch_after_it_was_read_is_not_thrown_away(
    catalog: NessieCatalog, leads: TableName, branch: str
) -> None:
    catalog.create_branch(branch)
    seen = refs.existing(catalog.api, branch)
    append(catalog, leads, branch)
    refs.drop_if_unchanged(catalog.api, "branch", seen)
    assert count(catalog, leads, branch) == 4


def test_a_branch_says_who_made_it_from_what(catalog: NessieCatalog, leads: TableName, branch: str) -> None:
    catalog.create_branch(branch, commit=Commit("branch", "ann", "to try"))
    ref = next(entry for entry in catalog.branch_refs() if entry.name == branch)
    assert (ref.created_from, ref.author, ref.message, ref.state) == ("main", "ann", "to try", catalog.state_hash())
    append(catalog, leads)
    assert ref.state != catalog.state_hash()
    with pytest.raises(BranchExistsError):
        catalog.create_branch(branch)
    with pytest.raises(BranchExistsError):
        catalog.create_tag(branch)


def test_a_branch_of_a_branch_brings_the_changes_of_both(catalog: NessieCatalog, leads: TableName, branch: str) -> None:
    catalog.create_branch(branch)
    append(catalog, leads, branch)
    second = f"{branch}_2"
    catalog.create_branch(second, branch)
    assert [change.table for change in catalog.changes(second)] == [leads]
    assert catalog.publish(second)
    assert count(catalog, leads) == 4


def test_only_branches_that_were_made_for_a_table_are_found_by_it(
    catalog: NessieCatalog, leads: TableName, branch: str
) -> None:
    """Every branch of Nessie's has every table: whoever cleans up after one table must not take another's branch."""
    catalog.fork(f"ingest_{branch}", [leads])
    catalog.fork(f"ingest_x_{branch}", [TableName(leads.namespace, "other")])
    assert catalog.branches_of(leads, "ingest_") == [f"ingest_{branch}"]
    assert catalog.branches_of(leads, "run_") == []
    catalog.drop_branch(f"ingest_{branch}")
    assert catalog.branches_of(leads, "ingest_") == []


@pytest.mark.parametrize("name", ["main", "lake", BRANCH, "lake__x", "_x", "a-b", "a b", "a'"])
def test_a_name_that_means_something_else_is_refused(catalog: NessieCatalog, name: str) -> None:
    with pytest.raises(BadNameError):
        catalog.create_branch(name)


def test_what_is_not_there_is_told_of(catalog: NessieCatalog) -> None:
    with pytest.raises(NoSuchBranchError, match="nope"):
        catalog.create_branch("some_branch", "nope")
    for attempt in (catalog.changes, catalog.conflicts, catalog.publish):
        with pytest.raises(NoSuchBranchError, match="nope"):
            attempt("nope")
    with pytest.raises(NoSuchBranchError, match="nope"):
        catalog.on("nope").tables()
    assert catalog.tag_pointers("nope") is None
    assert not catalog.drop_branch("main")
    assert not catalog.drop_tag("main")
    assert catalog.tag_pointers("main") is None


# ---- tags and the log -------------------------------------------------------------------------------------------


def test_a_tag_remembers_what_was(catalog: NessieCatalog, leads: TableName, branch: str) -> None:
    tag, before = f"t_{branch}"[:100], catalog.pointer(leads)
    catalog.create_tag(tag, commit=Commit("tag", "ann", "the end of the year"))
    append(catalog, leads)
    assert (catalog.tag_pointers(tag) or {})[leads] == before
    assert [(ref.author, ref.message) for ref in catalog.tags() if ref.name == tag] == [("ann", "the end of the year")]
    catalog.create_branch(branch, tag)
    assert catalog.on(branch).pointer(leads) == before
    assert tag not in catalog.branches()
    assert before in {file.pointer for file in catalog.reachable("9999") if file.by == f"tag {tag}"}
    assert catalog.drop_tag(tag)
    assert not catalog.drop_tag(tag)
    assert catalog.drop_branch(branch)


def test_what_an_engine_wrote_to_main_is_not_in_the_log_but_can_be_reverted(
    catalog: NessieCatalog, leads: TableName
) -> None:
    before = catalog.pointer(leads)
    append(catalog, leads)
    assert catalog.log(leads) == []
    newest = next(iter(catalog.api.history("main")))["commitMeta"]["hash"]
    assert catalog.revert(newest, Commit())
    assert catalog.pointer(leads) == before
    assert [entry.commit.kind for entry in catalog.log(leads)] == ["revert"]


def test_what_a_run_published_is_found_by_it(catalog: NessieCatalog, leads: TableName, branch: str) -> None:
    run = 'r\'\\ "1" ü'
    assert catalog.published_by(run) is None
    catalog.create_branch(branch)
    append(catalog, leads, branch)
    done = catalog.publish(branch, Commit(run=run))
    entry = catalog.published_by(run)
    assert entry is not None
    assert (entry.id, entry.commit.author) == (done.entry, "tests")
    assert catalog.published_by("r") is None


def test_a_publish_is_found_by_its_run_even_if_the_publisher_died_right_after_it(
    catalog: NessieCatalog, leads: TableName, branch: str
) -> None:
    append(catalog, leads)
    catalog.create_branch(branch)
    append(catalog, leads, branch)
    into, source = catalog.api.find("main"), refs.existing(catalog.api, branch)
    assert into
    history.note_run(catalog.annotations, "main", branch, into.hash)
    assert catalog.published_by(branch) is None, "it only meant to"
    done = publishing.merge(catalog.api, into, source, Commit(run=branch))
    catalog.create_branch(f"{branch}_2")
    append(catalog, leads, f"{branch}_2")
    assert catalog.publish(f"{branch}_2", Commit(run="another"))
    entry = catalog.published_by(branch)
    assert entry is not None
    assert entry.id == done.entry


def test_a_publish_that_was_refused_does_not_hide_an_earlier_one_of_its_run(
    catalog: NessieCatalog, leads: TableName, branch: str
) -> None:
    for name in (branch, f"{branch}_2"):
        catalog.create_branch(name)
        append(catalog, leads, name)
    first = catalog.publish(branch, Commit(run=branch))
    append(catalog, leads)
    assert not catalog.publish(f"{branch}_2", Commit(run=branch))
    entry = catalog.published_by(branch)
    assert entry is not None
    assert entry.id == first.entry


def test_a_revert_undoes_all_tables_of_a_publish(catalog: NessieCatalog, leads: TableName, branch: str) -> None:
    gone, new = TableName(leads.namespace, "gone"), TableName(leads.namespace, "new")
    theirs(catalog).create_table(str(gone), schema=ROWS.schema).append(ROWS)
    before = catalog.pointers([leads, gone, new])
    catalog.create_branch(branch)
    append(catalog, leads, branch)
    theirs(catalog, branch).create_table(str(new), schema=ROWS.schema)
    assert catalog.on(branch).drop(gone, "2026-01-01")
    done = catalog.publish(branch)
    assert catalog.pointer(gone) is None
    assert gone in catalog.dropped()
    undone = catalog.revert(done.entry, Commit(author="ann", message="wrong"))
    assert undone
    assert catalog.pointers([leads, gone, new]) == before
    assert [count(catalog, leads), count(catalog, gone)] == [2, 2]
    assert (catalog.log(limit=1)[0].commit.kind, catalog.log(limit=1)[0].commit.author) == ("revert", "ann")
    append(catalog, leads)
    assert count(catalog, leads) == 4, "writers go on from there"
    again = catalog.revert(undone.entry, Commit())
    assert not again
    assert again.conflicts == (leads,)


def test_a_commit_of_nowhere_or_of_a_branch_cannot_be_reverted(
    catalog: NessieCatalog, leads: TableName, branch: str
) -> None:
    catalog.create_branch(branch)
    append(catalog, leads, branch)
    of_branch = next(iter(catalog.api.history(branch)))["commitMeta"]["hash"]
    for entry in ("nonsense", "ab" * 32, "1", "", of_branch):
        with pytest.raises(NoSuchCommitError):
            catalog.revert(entry, Commit())
