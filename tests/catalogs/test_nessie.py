"""The Nessie catalog against a real Nessie: branches, publishing, history, drops, and nothing lost by writers at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.expressions import AlwaysTrue
from tests.catalogs.apart import SparkApart
from tests.catalogs.threads import at_once
from tests.servers.nessie import NessieServer
from tests.servers.ports import free_port
from tests.servers.web import serving

from lakehouse.catalogs.nessie import NessieCatalog, history, publishing, refs
from lakehouse.catalogs.nessie.api import NessieApi
from lakehouse.catalogs.nessie.kept import KEPT
from lakehouse.core.errors import (
    BadNameError,
    BadSettingError,
    BranchExistsError,
    CatalogError,
    CatalogUnreachableError,
    NoSuchBranchError,
    NoSuchCommitError,
    TableExistsError,
)
from lakehouse.core.names import TableName
from lakehouse.core.refs import Commit

pytestmark = pytest.mark.slow

ROWS = pyarrow.table({"id": [1, 2]})


@pytest.fixture
def catalog(nessie_server: NessieServer) -> NessieCatalog:
    return nessie_server.catalog(author="tests")


@pytest.fixture
def leads(catalog: NessieCatalog, namespace: str) -> TableName:
    """A table with two rows."""
    catalog.ensure_namespace(namespace)
    table = TableName(namespace, "leads")
    theirs(catalog).create_table(str(table), schema=ROWS.schema).append(ROWS)
    return table


@pytest.fixture
def branch(namespace: str) -> str:
    return f"b_{namespace}"[:100]


def theirs(catalog: NessieCatalog, branch: str = "") -> Catalog:
    """PyIceberg on a branch."""
    here = catalog.on(branch)
    return load_catalog(here.name, **here.pyiceberg_properties())


def append(catalog: NessieCatalog, table: TableName, branch: str = "") -> None:
    theirs(catalog, branch).load_table(str(table)).append(ROWS)


def count(catalog: NessieCatalog, table: TableName, branch: str = "") -> int:
    return theirs(catalog, branch).load_table(str(table)).scan().to_arrow().num_rows


# ---- tables and pointers ----------------------------------------------------------------------------------------


def test_a_table_that_is_not_there_has_no_pointer(catalog: NessieCatalog, namespace: str) -> None:
    assert catalog.pointer(TableName(namespace, "nothing")) is None
    assert not catalog.has_view(TableName(namespace, "nothing"))
    assert not catalog.drop(TableName(namespace, "nothing"), "2026-01-01")
    assert not catalog.undrop(TableName(namespace, "nothing"))


def test_the_pointer_follows_every_commit_and_the_history_is_kept(catalog: NessieCatalog, leads: TableName) -> None:
    seen = {catalog.pointer(leads)}
    for _ in range(2):
        append(catalog, leads)
        table = theirs(catalog).load_table(str(leads))
        assert catalog.pointer(leads) == table.metadata_location
        seen.add(table.metadata_location)
    assert len(seen) == 3
    assert [len(table.metadata.snapshots), len(table.metadata.metadata_log)] == [3, 3]
    assert leads in catalog.tables()


def test_what_pyiceberg_refuses_it_refuses_here_too(catalog: NessieCatalog, leads: TableName) -> None:
    other = theirs(catalog)
    with pytest.raises(TableAlreadyExistsError):
        other.create_table(str(leads), schema=ROWS.schema)
    with pytest.raises(NoSuchNamespaceError):
        other.create_table("nowhere_at_all.t", schema=ROWS.schema)
    with pytest.raises(NamespaceNotEmptyError):
        other.drop_namespace(leads.namespace)
    with pytest.raises(NotImplementedError, match="other branches"):
        other.purge_table(str(leads))
    with pytest.raises(NoSuchTableError):
        other.load_table(f"{leads.namespace}.nothing")
    assert count(catalog, leads) == 2


def test_pyiceberg_renames_and_keeps_properties_of_namespaces(catalog: NessieCatalog, leads: TableName) -> None:
    other = theirs(catalog)
    other.rename_table(str(leads), f"{leads.namespace}.people")
    assert other.list_tables(leads.namespace) == [(leads.namespace, "people")]
    assert other.load_table(f"{leads.namespace}.people").scan().to_arrow().num_rows == 2
    other.update_namespace_properties(leads.namespace, updates={"owner": "ann", "x": "1"})
    other.update_namespace_properties(leads.namespace, removals={"x"})
    assert other.load_namespace_properties(leads.namespace) == {"owner": "ann"}
    assert (leads.namespace,) in other.list_namespaces()
    assert other.list_views(leads.namespace) == []


def test_a_namespace_may_have_levels(catalog: NessieCatalog, leads: TableName) -> None:
    for _ in range(2):
        catalog.ensure_namespace(f"{leads.namespace}.deep")
    pointer = catalog.pointer(leads)
    theirs(catalog).register_table((leads.namespace, "deep", "t"), pointer)
    deep = TableName(f"{leads.namespace}.deep", "t")
    assert deep in catalog.tables()
    assert catalog.pointer(deep) == pointer
    assert catalog.drop(deep, "2026-01-01")
    assert catalog.undrop(deep)
    assert catalog.pointer(deep) == pointer


def test_a_move_tells_nessie_what_the_file_says(catalog: NessieCatalog, leads: TableName) -> None:
    first = catalog.pointer(leads)
    append(catalog, leads)
    second = catalog.pointer(leads)
    assert first and second
    assert not catalog.move(leads, first, second)
    assert catalog.move(leads, second, first)
    content = catalog.api.contents("main", [(leads.namespace, "leads")])[0][(leads.namespace, "leads")]
    assert content["snapshotId"] == theirs(catalog).load_table(str(leads)).metadata.current_snapshot_id
    assert count(catalog, leads) == 2
    assert catalog.move(leads, first, None)
    assert catalog.pointer(leads) is None


def test_moves_of_many_at_once_move_once(catalog: NessieCatalog, leads: TableName) -> None:
    first = catalog.pointer(leads)
    append(catalog, leads)
    second = catalog.pointer(leads)
    assert first and second
    answers = at_once(lambda _: catalog.move(leads, second, first), 6)
    assert sorted(answers, key=str) == [False] * 5 + [True]


# ---- writers at once --------------------------------------------------------------------------------------------


def test_first_writers_of_an_empty_table_lose_nothing(catalog: NessieCatalog, namespace: str) -> None:
    """Nessie's REST endpoint answers 200 to all of them and keeps the rows of one."""
    catalog.ensure_namespace(namespace)
    table = TableName(namespace, "empty")
    theirs(catalog).create_table(str(table), schema=ROWS.schema)
    loaded = [theirs(catalog).load_table(str(table)) for _ in range(4)]
    answers = at_once(lambda number: loaded[number].append(ROWS), 4)
    done = sum(answer is None for answer in answers)
    assert all(answer is None or isinstance(answer, CommitFailedException) for answer in answers), answers
    assert done >= 1
    assert count(catalog, table) == 2 * done


def test_many_writers_lose_nothing_that_was_acknowledged(catalog: NessieCatalog, leads: TableName) -> None:
    def write_until_done(_: int) -> int:
        done = 0
        for _ in range(3):
            try:
                append(catalog, leads)
                done += 1
            except CommitFailedException:
                continue
        return done

    done = sum(answer for answer in at_once(write_until_done, 4) if isinstance(answer, int))
    assert done >= 3
    assert count(catalog, leads) == 2 + 2 * done


def test_only_one_of_many_creates_a_table(catalog: NessieCatalog, namespace: str) -> None:
    catalog.ensure_namespace(namespace)
    answers = at_once(lambda _: theirs(catalog).create_table(f"{namespace}.t", schema=ROWS.schema), 4)
    refused = [answer for answer in answers if isinstance(answer, Exception)]
    assert [type(each) for each in refused] == [TableAlreadyExistsError] * 3


# ---- why writers do not use Nessie's own REST endpoint: once these pass, decision 14 can be looked at again ----------


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="Nessie's REST endpoint keeps the newest snapshot only")
def test_nessies_rest_endpoint_keeps_the_history(catalog: NessieCatalog, leads: TableName) -> None:
    rest = load_catalog("lake", **catalog.rest_properties())
    assert rest.load_table(str(leads)).scan().to_arrow().num_rows == 2
    rest.load_table(str(leads)).append(ROWS)
    assert count(catalog, leads) == 4
    assert len(theirs(catalog).load_table(str(leads)).metadata.snapshots) == 2


@pytest.mark.xfail(
    strict=True, raises=AssertionError, reason="Nessie's REST endpoint lets a first snapshot replace one"
)
def test_nessies_rest_endpoint_keeps_what_a_first_writer_wrote(catalog: NessieCatalog, namespace: str) -> None:
    catalog.ensure_namespace(namespace)
    rest = load_catalog("lake", **catalog.rest_properties())
    rest.create_table(f"{namespace}.t", schema=ROWS.schema)
    done = 0
    for table in [rest.load_table(f"{namespace}.t") for _ in range(2)]:
        try:
            table.append(ROWS)
            done += 1
        except CommitFailedException:
            continue
    assert rest.load_table(f"{namespace}.t").scan().to_arrow().num_rows == 2 * done


# ---- branches ---------------------------------------------------------------------------------------------------


def test_a_branch_is_its_own_until_it_is_published(catalog: NessieCatalog, leads: TableName, branch: str) -> None:
    base = catalog.fork(branch, [leads, TableName(leads.namespace, "new")])
    assert base == {leads: catalog.pointer(leads), TableName(leads.namespace, "new"): None}
    append(catalog, leads, branch)
    theirs(catalog, branch).create_table(f"{leads.namespace}.new", schema=ROWS.schema).append(ROWS)
    assert [count(catalog, leads), count(catalog, leads, branch)] == [2, 4]
    assert [(each.table.table, each.what) for each in catalog.changes(branch)] == [
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
    assert {each.table.table: each.before for each in entry.tables} == {"leads": base[leads], "new": None}
    assert (catalog.tagged(f"t_{branch}"[:100]) or {})[leads] == after


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
    assert done.moved == (leads,)
    assert catalog.pointers([leads, other]) == before
    assert branch in catalog.branches()
    assert catalog.discard(branch)
    assert not catalog.discard(branch)


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
    refs.forget(catalog.api, "branch", seen)
    assert count(catalog, leads, branch) == 4


def test_a_branch_says_who_made_it_from_what(catalog: NessieCatalog, leads: TableName, branch: str) -> None:
    catalog.create_branch(branch, commit=Commit("branch", "ann", "to try"))
    ref = next(each for each in catalog.branch_refs() if each.name == branch)
    assert (ref.made_from, ref.author, ref.message, ref.state) == ("main", "ann", "to try", catalog.state())
    append(catalog, leads)
    assert ref.state != catalog.state()
    with pytest.raises(BranchExistsError):
        catalog.create_branch(branch)
    with pytest.raises(BranchExistsError):
        catalog.create_tag(branch)


def test_a_branch_of_a_branch_brings_the_changes_of_both(catalog: NessieCatalog, leads: TableName, branch: str) -> None:
    catalog.create_branch(branch)
    append(catalog, leads, branch)
    second = f"{branch}_2"
    catalog.create_branch(second, branch)
    assert [each.table for each in catalog.changes(second)] == [leads]
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
    catalog.discard(f"ingest_{branch}")
    assert catalog.branches_of(leads, "ingest_") == []


@pytest.mark.parametrize("name", ["main", "lake", KEPT, "lake__x", "_x", "a-b", "a b", "a'"])
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
    assert catalog.tagged("nope") is None
    assert not catalog.discard("main")
    assert not catalog.drop_tag("main")
    assert catalog.tagged("main") is None


# ---- tags and the log -------------------------------------------------------------------------------------------


def test_a_tag_remembers_what_was(catalog: NessieCatalog, leads: TableName, branch: str) -> None:
    tag, before = f"t_{branch}"[:100], catalog.pointer(leads)
    catalog.create_tag(tag, commit=Commit("tag", "ann", "the end of the year"))
    append(catalog, leads)
    assert (catalog.tagged(tag) or {})[leads] == before
    assert [(each.author, each.message) for each in catalog.tags() if each.name == tag] == [
        ("ann", "the end of the year")
    ]
    catalog.create_branch(branch, tag)
    assert catalog.on(branch).pointer(leads) == before
    assert tag not in catalog.branches()
    assert before in {each.pointer for each in catalog.reachable("9999") if each.by == f"tag {tag}"}
    assert catalog.drop_tag(tag)
    assert not catalog.drop_tag(tag)
    assert catalog.discard(branch)


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
    history.note_run(catalog.kept, "main", branch, into.hash)
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
    assert again.moved == (leads,)


def test_a_commit_of_nowhere_or_of_a_branch_cannot_be_reverted(
    catalog: NessieCatalog, leads: TableName, branch: str
) -> None:
    catalog.create_branch(branch)
    append(catalog, leads, branch)
    of_branch = next(iter(catalog.api.history(branch)))["commitMeta"]["hash"]
    for entry in ("nonsense", "ab" * 32, "1", "", of_branch):
        with pytest.raises(NoSuchCommitError):
            catalog.revert(entry, Commit())


# ---- drops ------------------------------------------------------------------------------------------------------


def test_a_dropped_table_comes_back_with_its_rows(catalog: NessieCatalog, leads: TableName) -> None:
    before = catalog.pointer(leads)
    assert catalog.drop(leads, "2026-01-01")
    assert catalog.pointer(leads) is None
    assert leads in catalog.dropped()
    assert before in {
        each.pointer for each in catalog.reachable("9999") if each.by == "dropped" and each.table == leads
    }
    assert catalog.undrop(leads)
    assert catalog.pointer(leads) == before
    assert leads not in catalog.dropped()
    append(catalog, leads)
    assert count(catalog, leads) == 4
    assert [entry.commit.kind for entry in catalog.log(leads)] == ["undrop", "drop"]


def test_two_dropped_tables_of_one_name_come_back_newest_first(catalog: NessieCatalog, leads: TableName) -> None:
    pointers = [catalog.pointer(leads)]
    catalog.drop(leads, "2026-01-01")
    theirs(catalog).create_table(str(leads), schema=ROWS.schema)
    pointers.append(catalog.pointer(leads))
    with pytest.raises(TableExistsError, match="again"):
        catalog.undrop(leads)
    catalog.drop(leads, "2026-01-01")
    assert catalog.undrop(leads)
    assert catalog.pointer(leads) == pointers[1]
    theirs(catalog).rename_table(str(leads), f"{leads.namespace}.newer")
    assert catalog.undrop(leads)
    assert catalog.pointer(leads) == pointers[0]
    assert not catalog.undrop(leads)


def test_drops_of_many_at_once_drop_once(catalog: NessieCatalog, leads: TableName) -> None:
    answers = at_once(lambda _: catalog.drop(leads, "2026-01-01"), 6)
    assert sorted(answers, key=str) == [False] * 5 + [True]
    assert catalog.undrop(leads)
    assert not catalog.undrop(leads)


def test_what_was_dropped_on_a_branch_goes_with_it(catalog: NessieCatalog, leads: TableName, branch: str) -> None:
    catalog.create_branch(branch)
    assert catalog.on(branch).drop(leads, "2026-01-01")
    assert list(catalog.on(branch).dropped()) == [leads]
    assert leads not in catalog.dropped()
    assert count(catalog, leads) == 2
    catalog.discard(branch)
    catalog.create_branch(branch)
    assert list(catalog.on(branch).dropped()) == []


# ---- the server -------------------------------------------------------------------------------------------------


def test_a_nessie_that_does_not_run_is_told_of() -> None:
    uri = f"http://127.0.0.1:{free_port()}/api/v2"
    with pytest.raises(CatalogUnreachableError, match=uri) as refused:
        NessieCatalog(NessieApi(uri), "s3://x/y").ready()
    assert "lake up nessie" in refused.value.hint


def test_another_server_is_not_taken_for_nessie() -> None:
    with serving() as web, pytest.raises(CatalogError, match="is not Nessie"):
        NessieCatalog(NessieApi(f"{web.address}/api/v2"), "s3://x/y").tables()


@pytest.mark.parametrize("uri", ["", "localhost:19120", "ftp://x/api/v2", "http://user:secret@host/api/v2"])
def test_an_address_that_is_none_is_refused_without_repeating_it(uri: str) -> None:
    with pytest.raises(BadSettingError) as refused:
        NessieApi(uri)
    assert "secret" not in refused.value.message


def test_the_token_is_in_no_text_about_the_catalog(catalog: NessieCatalog) -> None:
    ours = NessieCatalog(NessieApi("http://h/api/v2", "tok-en"), "s3://x/y", io={"s3.secret-access-key": "hidden"})
    assert "tok-en" not in repr(ours)
    assert "hidden" not in repr(ours)
    assert ours.spark_conf()["spark.sql.catalog.lake.authentication.token"] == "tok-en"
    assert ours.rest_properties()["uri"] == "http://h/iceberg/main"


# ---- Spark ------------------------------------------------------------------------------------------------------


@pytest.fixture
def sql(spark_apart: SparkApart, catalog: NessieCatalog) -> Iterator[Callable[..., list[dict[str, object]]]]:
    def run(statement: str, branch: str = "") -> list[dict[str, object]]:
        here = catalog.on(branch)
        return spark_apart.sql(statement.replace("lake.", f"{here.name}."), here.spark_conf())

    yield run


@pytest.mark.spark
def test_spark_and_pyiceberg_write_the_same_tables(
    catalog: NessieCatalog, namespace: str, branch: str, sql: Callable[..., list[dict[str, object]]]
) -> None:
    catalog.ensure_namespace(namespace)
    table = TableName(namespace, "t")
    sql(f"CREATE TABLE lake.{table} (id BIGINT) USING iceberg")
    sql(f"INSERT INTO lake.{table} VALUES (1), (2)")
    append(catalog, table)
    assert sql(f"SELECT count(*) AS n FROM lake.{table}") == [{"n": 4}]
    assert len(sql(f"SELECT * FROM lake.{table}.snapshots")) == 2
    # On a branch, by both; a schema change too.
    catalog.fork(branch, [table])
    sql(f"ALTER TABLE lake.{table} ADD COLUMN name STRING", branch)
    sql(f"INSERT INTO lake.{table} VALUES (3, 'c')", branch)
    append(catalog, table, branch)
    assert sql(f"SELECT count(*) AS n FROM lake.{table}") == [{"n": 4}]
    assert catalog.publish(branch, Commit(run="spark"))
    assert sql(f"SELECT count(*) AS n, count(name) AS named FROM lake.{table}") == [{"n": 7, "named": 1}]
    assert len(theirs(catalog).load_table(str(table)).metadata.snapshots) == 4


@pytest.mark.spark
def test_spark_and_pyiceberg_at_once_lose_nothing(
    catalog: NessieCatalog, leads: TableName, sql: Callable[..., list[dict[str, object]]]
) -> None:
    def write(number: int) -> int:
        done = 0
        for _ in range(3):
            try:
                if number == 0:
                    sql(f"INSERT INTO lake.{leads} VALUES (7), (8)")
                else:
                    append(catalog, leads)
                done += 1
            except (CommitFailedException, RuntimeError):
                continue
        return done

    done = sum(answer for answer in at_once(write, 2) if isinstance(answer, int))
    assert done >= 3
    assert count(catalog, leads) == 2 + 2 * done


@pytest.mark.spark
def test_spark_goes_on_from_a_pointer_that_was_moved(
    catalog: NessieCatalog, leads: TableName, sql: Callable[..., list[dict[str, object]]]
) -> None:
    first = catalog.pointer(leads)
    append(catalog, leads)
    second = catalog.pointer(leads)
    assert first and second
    for start, end, rows in ((second, first, 2), (first, second, 4)):
        assert catalog.move(leads, start, end)
        assert sql(f"SELECT count(*) AS n FROM lake.{leads}") == [{"n": rows}]
    sql(f"INSERT INTO lake.{leads} VALUES (9)")
    assert count(catalog, leads) == 5
    assert catalog.drop(leads, "2026-01-01")
    assert catalog.undrop(leads)
    sql(f"DELETE FROM lake.{leads} WHERE id = 9")
    assert theirs(catalog).load_table(str(leads)).scan(row_filter=AlwaysTrue()).to_arrow().num_rows == 4


@pytest.mark.spark
def test_snapshots_that_branches_and_tags_need_are_not_expired_by_spark(
    catalog: NessieCatalog, leads: TableName, sql: Callable[..., list[dict[str, object]]]
) -> None:
    append(catalog, leads)
    with pytest.raises(RuntimeError, match="GC is disabled"):
        sql(f"CALL lake.system.expire_snapshots(table => '{leads}', older_than => TIMESTAMP '2100-01-01 00:00:00')")
    assert len(theirs(catalog).load_table(str(leads)).metadata.snapshots) == 2


@pytest.mark.spark
def test_a_view_of_sparks_is_no_table(
    catalog: NessieCatalog, leads: TableName, sql: Callable[..., list[dict[str, object]]]
) -> None:
    view = TableName(leads.namespace, "seen")
    sql(f"CREATE VIEW lake.{view} AS SELECT id FROM lake.{leads}")
    assert catalog.has_view(view)
    assert view not in catalog.tables()
    assert catalog.pointer(view) is None
    assert not catalog.drop(view, "2026-01-01")
