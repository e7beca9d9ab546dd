"""The REST catalog against real servers: our own, and Nessie's, which is anybody's; branches are kept aside."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.rest import RestCatalog as PyIcebergClient
from pyiceberg.types import StringType
from tests.support.servers.nessie import NessieServer
from tests.support.servers.ports import free_port
from tests.support.servers.rest_catalog import Served, serving
from tests.support.servers.web import serving as serving_web
from tests.support.threads import at_once

from lakehouse.catalogs.overlay import BranchOverlay
from lakehouse.catalogs.rest import RestCatalog
from lakehouse.catalogs.rest.updates import change_of
from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.core.errors import (
    BadSettingError,
    CatalogAccessError,
    CatalogError,
    CatalogUnreachableError,
    NotSupportedError,
    TableExistsError,
)
from lakehouse.core.files import local_path
from lakehouse.core.names import TableName
from lakehouse.core.refs import Change, Commit

LEADS, DEALS = TableName("crm", "leads"), TableName("crm", "deals")
ROWS = pyarrow.table({"id": [1, 2]})


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    behind = SqlCatalog(open_database(tmp_path / "catalog.db"), f"file://{tmp_path}/warehouse")
    with serving(behind, tokens=["tok-en"]) as running:
        yield running


@pytest.fixture
def catalog(served: Served) -> RestCatalog:
    """Our catalog on a server of ours, with one table."""
    ours = RestCatalog(served.url, token="tok-en")
    ours.ensure_namespace("crm")
    theirs(ours).create_table(str(LEADS), schema=ROWS.schema).append(ROWS)
    return ours


def theirs(catalog: RestCatalog | SqlCatalog | BranchOverlay) -> Catalog:
    return load_catalog(catalog.name, **catalog.pyiceberg_properties())


def append(catalog: RestCatalog | SqlCatalog | BranchOverlay, table: TableName = LEADS) -> None:
    theirs(catalog).load_table(str(table)).append(ROWS)


def count(catalog: RestCatalog | SqlCatalog, table: TableName = LEADS) -> int:
    return theirs(catalog).load_table(str(table)).scan().to_arrow().num_rows


def test_tables_and_pointers_are_the_servers(catalog: RestCatalog, served: Served) -> None:
    catalog.ensure_namespace("crm")
    assert list(catalog.tables()) == [LEADS]
    before, state = catalog.pointer(LEADS), catalog.state_hash()
    assert before == served.catalog.pointer(LEADS)
    append(catalog)
    assert catalog.pointers([LEADS, DEALS]) == {LEADS: served.catalog.pointer(LEADS), DEALS: None}
    assert catalog.state_hash() != state
    assert not catalog.has_view(LEADS)


def test_the_views_of_the_server_are_listed(catalog: RestCatalog, tmp_path: Path) -> None:
    assert list(catalog.views()) == []
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as db, db:
        db.execute("UPDATE iceberg_tables SET iceberg_type = 'VIEW'")
    assert (list(catalog.views()), list(catalog.tables())) == ([LEADS], [])
    with_branches = BranchOverlay(catalog, SqlCatalog(open_database(tmp_path / "branches.db"), f"file://{tmp_path}"))
    assert list(with_branches.views()) == [LEADS]


def test_gzipped_metadata_becomes_the_servers(catalog: RestCatalog) -> None:
    before = catalog.pointer(LEADS)
    assert before is not None
    metadata = json.loads(local_path(before).read_bytes())
    metadata["properties"]["owner"] = "ada"
    after = before.replace(".metadata.json", "-next.gz.metadata.json")
    local_path(after).write_bytes(gzip.compress(json.dumps(metadata).encode()))
    assert catalog.commit([Change(LEADS, before, after)])
    assert theirs(catalog).load_table(str(LEADS)).properties["owner"] == "ada"
    assert catalog.is_committed(Change(LEADS, before, after))


def test_a_dropped_table_comes_back_with_its_rows(catalog: RestCatalog) -> None:
    assert not catalog.drop(DEALS, "2026-01-01")
    assert not catalog.undrop(LEADS)
    before = catalog.pointer(LEADS)
    assert catalog.drop(LEADS, "2026-01-01")
    assert (list(catalog.tables()), list(catalog.dropped()), catalog.pointer(LEADS)) == ([], [LEADS], None)
    theirs(catalog).create_table(str(LEADS), schema=ROWS.schema)
    with pytest.raises(TableExistsError, match="again"):
        catalog.undrop(LEADS)
    theirs(catalog).rename_table(str(LEADS), "crm.newer")
    (drop,) = catalog.drops()
    assert drop.table == LEADS and drop.at > "2026"
    assert not catalog.undrop(LEADS, "1")
    assert catalog.undrop(LEADS, drop.id)
    assert (catalog.pointer(LEADS), list(catalog.dropped())) == (before, [])
    append(catalog)
    assert count(catalog) == 4


def test_drops_of_many_at_once_drop_once(catalog: RestCatalog) -> None:
    answers = at_once(lambda _: catalog.drop(LEADS, "2026-01-01"), 4)
    assert sorted(answers, key=str) == [False] * 3 + [True]


def test_a_pointer_cannot_be_moved_over_rest_but_forgotten(catalog: RestCatalog) -> None:
    now = catalog.pointer(LEADS)
    assert now
    with pytest.raises(NotSupportedError, match="metadata file"):
        catalog.swap_pointer(LEADS, now, now)
    assert not catalog.swap_pointer(LEADS, "file:///elsewhere", None)
    assert catalog.swap_pointer(LEADS, now, None)
    assert catalog.pointer(LEADS) is None


@pytest.fixture
def appended_before_rename(catalog: RestCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another client appends right before the first rename, by which a table is dropped."""
    rename, pending = PyIcebergClient.rename_table, [True]

    def race(client: PyIcebergClient, start: tuple[str, str], end: tuple[str, str]) -> object:
        if pending:
            pending.clear()
            append(catalog)
        return rename(client, start, end)

    monkeypatch.setattr(PyIcebergClient, "rename_table", race)


@pytest.mark.usefixtures("appended_before_rename")
@pytest.mark.parametrize("by", ["swap_pointer", "commit"])
def test_a_table_that_changes_between_the_check_and_the_drop_stays(catalog: RestCatalog, by: str) -> None:
    now = str(catalog.pointer(LEADS))
    dropped = catalog.swap_pointer(LEADS, now, None) if by == "swap_pointer" else catalog.commit([drop_of(now)])
    assert (dropped, count(catalog), list(catalog.dropped())) == (False, 4, [])


def drop_of(pointer: str) -> Change:
    return Change(LEADS, pointer, None)


@pytest.mark.usefixtures("appended_before_rename")
def test_a_drop_logs_the_state_that_it_dropped(aside: BranchOverlay, catalog: RestCatalog) -> None:
    assert aside.drop(LEADS, "2026-01-01")
    (entry,) = aside.log()
    assert [change.before for change in entry.tables] == [table.pointer for table in catalog.dropped_entries()]
    assert aside.revert(entry.id, Commit())
    assert count(catalog) == 4


def test_a_table_that_is_replaced_while_its_drop_is_undone_can_be_restored(
    catalog: RestCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, renames = PyIcebergClient.rename_table, list[object]()

    def race(client: PyIcebergClient, start: tuple[str, str], end: tuple[str, str]) -> object:
        if renames:
            theirs(catalog).create_table(str(LEADS), schema=ROWS.schema)
        else:
            append(catalog)
        renames.append(start)
        return rename(client, start, end)

    monkeypatch.setattr(PyIcebergClient, "rename_table", race)
    with pytest.raises(TableExistsError, match="again"):
        catalog.swap_pointer(LEADS, str(catalog.pointer(LEADS)), None)
    monkeypatch.undo()
    theirs(catalog).rename_table(str(LEADS), "crm.newer")
    assert catalog.undrop(LEADS)
    assert count(catalog) == 4


# ---- branches, kept aside ---------------------------------------------------------------------------------------


@pytest.fixture
def aside(catalog: RestCatalog, tmp_path: Path) -> BranchOverlay:
    return BranchOverlay(catalog, SqlCatalog(open_database(tmp_path / "branches.db"), f"file://{tmp_path}/warehouse"))


@pytest.fixture
def branch(aside: BranchOverlay) -> SqlCatalog:
    """A branch that has changed one table, in its rows and its schema, and made another."""
    aside.create_branch("run_7")
    here = aside.on("run_7")
    assert isinstance(here, SqlCatalog)
    append(here)
    with theirs(here).load_table(str(LEADS)).update_schema() as change:
        change.add_column("name", StringType())
    theirs(here).create_table(str(DEALS), schema=ROWS.schema).append(ROWS)
    return here


def test_several_tables_are_published_in_one_transaction(
    aside: BranchOverlay, catalog: RestCatalog, branch: SqlCatalog
) -> None:
    wanted = theirs(branch).load_table(str(LEADS)).metadata
    assert (count(catalog), count(branch), catalog.pointer(DEALS)) == (2, 4, None)
    assert [(change.table, change.what) for change in aside.changes("run_7")] == [(DEALS, "added"), (LEADS, "changed")]
    assert aside.conflicts("run_7") == ()
    assert aside.publish("run_7", Commit(run="7"), "run_7")
    assert (count(catalog), count(catalog, DEALS)) == (4, 2)
    now = theirs(catalog).load_table(str(LEADS)).metadata
    assert (now.snapshots, now.schema()) == (wanted.snapshots, wanted.schema())
    (entry,) = aside.log()
    assert {change.table: change.after for change in entry.tables} == catalog.pointers([LEADS, DEALS])
    assert aside.tag_pointers("run_7") == catalog.pointers([LEADS, DEALS])
    append(catalog)
    assert count(catalog) == 6, "writers go on from there"


def test_a_table_that_moved_meanwhile_publishes_nothing(
    aside: BranchOverlay, catalog: RestCatalog, branch: SqlCatalog
) -> None:
    append(catalog)
    assert aside.conflicts("run_7") == (LEADS,)
    assert aside.publish("run_7").conflicts == (LEADS,)
    assert (count(catalog), catalog.pointer(DEALS), aside.branches()) == (4, None, ["run_7"])


def test_what_moves_between_the_look_and_the_transaction_is_refused_by_the_server(
    aside: BranchOverlay, catalog: RestCatalog, branch: SqlCatalog
) -> None:
    sent = []
    for change in aside.changes("run_7"):
        seen = catalog._load(change.table)
        sent.append((change.table, change_of(seen and seen["metadata"], catalog._read(str(change.after)))))
    append(catalog)
    assert not catalog._send(sent)
    assert (count(catalog), catalog.pointer(DEALS)) == (4, None)


def test_every_change_names_the_state_that_it_was_made_from(catalog: RestCatalog, branch: SqlCatalog) -> None:
    now = theirs(catalog).load_table(str(LEADS)).metadata
    response = catalog._load(LEADS)
    assert response
    before, after = response["metadata"], catalog._read(str(branch.pointer(LEADS)))
    assert change_of(None, after)["requirements"] == [{"type": "assert-create"}]
    sent = change_of(before, after)
    assert {"type": "assert-table-uuid", "uuid": str(now.table_uuid)} in sent["requirements"]
    at = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": now.current_snapshot_id}
    assert at in sent["requirements"]
    assert [update["action"] for update in sent["updates"]] == [
        "add-schema",
        "set-current-schema",
        "add-snapshot",
        "set-snapshot-ref",
    ]


def test_several_tables_without_transactions_are_refused_and_one_is_not(
    aside: BranchOverlay, catalog: RestCatalog, branch: SqlCatalog
) -> None:
    catalog._client._supported_endpoints = set()  # as of a server that does not list it
    assert not aside.capabilities.multi_table_publish
    with pytest.raises(
        NotSupportedError, match=r"cannot change several tables at once: crm\.deals, crm\.leads"
    ) as refused:
        aside.publish("run_7")
    assert "nessie" in refused.value.hint
    assert (count(catalog), catalog.pointer(DEALS)) == (2, None)
    branch.drop(DEALS, "2026-01-01")
    assert aside.publish("run_7")
    assert count(catalog) == 4


def test_a_dropped_table_is_dropped_by_the_publish_and_comes_back(aside: BranchOverlay, catalog: RestCatalog) -> None:
    aside.create_branch("exp")
    aside.on("exp").drop(LEADS, "2026-01-01")
    assert catalog.pointer(LEADS)
    assert aside.publish("exp")
    assert catalog.pointer(LEADS) is None
    assert aside.undrop(LEADS)
    assert count(catalog) == 2


def test_a_drop_together_with_other_changes_is_refused_as_a_whole(
    aside: BranchOverlay, catalog: RestCatalog, branch: SqlCatalog
) -> None:
    branch.drop(LEADS, "2026-01-01")
    with pytest.raises(NotSupportedError, match=r"Dropping crm\.leads together with other changes"):
        aside.publish("run_7")
    assert (count(catalog), catalog.pointer(DEALS)) == (2, None)


@pytest.mark.parametrize("made", [True, False], ids=["a new table", "a changed table"])
def test_a_publish_is_undone_and_done_again(aside: BranchOverlay, catalog: RestCatalog, made: bool) -> None:
    aside.create_branch("exp")
    here = aside.on("exp")
    table = DEALS if made else LEADS
    if made:
        theirs(here).create_table(str(DEALS), schema=ROWS.schema).append(ROWS)
    else:
        append(here)
    done = aside.publish("exp")
    undone = aside.revert(done.entry, Commit(message="wrong"))
    assert undone
    assert (count(catalog), catalog.pointer(DEALS)) == (2, None)
    again = aside.revert(undone.entry, Commit())
    assert again
    assert count(catalog, table) == (2 if made else 4)
    assert [entry.commit.kind for entry in aside.log()] == ["revert", "revert", "publish"]
    append(catalog, table)
    refused = aside.revert(again.entry, Commit())
    assert (bool(refused), refused.conflicts) == (False, (table,))


def test_a_run_killed_between_the_commit_and_the_note_has_published(
    aside: BranchOverlay, catalog: RestCatalog, branch: SqlCatalog
) -> None:
    assert aside.published_by("7") is None
    assert catalog.commit(aside.changes("run_7"))  # as a publisher does that is killed right after
    assert aside.log() == []
    entry = aside.published_by("7")
    assert entry
    assert {change.table: change.after for change in entry.tables} == catalog.pointers([LEADS, DEALS])
    assert (aside.branches(), [tag.name for tag in aside.tags()]) == ([], ["run_7"])
    assert aside.published_by("7") == entry


def test_publishing_again_what_a_killed_one_published_changes_nothing(
    aside: BranchOverlay, catalog: RestCatalog, branch: SqlCatalog
) -> None:
    assert catalog.commit(aside.changes("run_7"))
    before = catalog.pointers([LEADS, DEALS])
    assert aside.publish("run_7", Commit(run="7"))
    assert (catalog.pointers([LEADS, DEALS]), aside.branches()) == (before, [])


def test_nobody_deletes_files_by_what_the_lake_knows_of_somebody_elses_catalog(aside: BranchOverlay) -> None:
    with pytest.raises(NotSupportedError, match="readers and writers that this lake does not know"):
        aside.reachable()


# ---- servers of others ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_branch_beside_a_server_of_others_is_published_there(
    nessie_server: NessieServer, namespace: str, tmp_path: Path
) -> None:
    properties = nessie_server.catalog().rest_properties()
    io = {name: value for name, value in properties.items() if name not in ("type", "uri")}
    catalog = RestCatalog(properties["uri"], io=io, files=nessie_server.catalog().files)
    catalog.ensure_namespace(namespace)
    table = TableName(namespace, "leads")
    theirs(catalog).create_table(str(table), schema=ROWS.schema).append(ROWS)
    assert table in catalog.tables()
    assert catalog.pointer(table) == nessie_server.catalog().pointer(table)
    assert count(catalog, table) == 2
    ours = BranchOverlay(
        catalog, SqlCatalog(open_database(tmp_path / "branches.db"), nessie_server.catalog().warehouse, io=io)
    )
    ours.fork("exp", [table])
    append(ours.on("exp"), table)
    assert ours.publish("exp")
    assert count(catalog, table) == 4


# ---- the server -------------------------------------------------------------------------------------------------


def test_a_server_that_does_not_run_is_told_of() -> None:
    uri = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(CatalogUnreachableError, match=uri) as refused:
        RestCatalog(uri).ensure_ready()
    assert "lake up rest" in refused.value.hint


def test_a_wrong_token_is_told_of_and_not_repeated(served: Served) -> None:
    with pytest.raises(CatalogAccessError) as refused:
        RestCatalog(served.url, token="wrong-one").ensure_ready()
    assert (
        "wrong-one" not in f"{refused.value.message} {refused.value.hint} {RestCatalog(served.url, token='wrong-one')}"
    )


def test_another_server_is_not_taken_for_a_catalog() -> None:
    with serving_web() as web, pytest.raises(CatalogError, match="failed"):
        RestCatalog(web.address).tables()


@pytest.mark.parametrize("uri", ["", "127.0.0.1:8181", "thrift://h:1"])
def test_an_address_that_is_none_is_refused(uri: str) -> None:
    with pytest.raises(BadSettingError, match="is not the address"):
        RestCatalog(uri)


def test_spark_is_told_the_server_and_the_branch_where_it_is_kept(aside: BranchOverlay, branch: SqlCatalog) -> None:
    assert aside.spark_conf()["spark.sql.catalog.lake.token"] == "tok-en"
    assert aside.on("run_7").spark_conf()["spark.sql.catalog.run_7.uri"].startswith("jdbc:sqlite:")
