"""The REST catalog against real servers: our own, with branches, and Nessie's, which is anybody's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from tests.catalogs.threads import at_once
from tests.rest.conftest import Served, serving
from tests.servers.nessie import NessieServer
from tests.servers.ports import free_port
from tests.servers.web import serving as serving_web

from lakehouse.catalogs.rest import RestCatalog
from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.core.errors import (
    BadSettingError,
    CatalogAccessError,
    CatalogError,
    CatalogUnreachableError,
    NotSupportedError,
    TableExistsError,
)
from lakehouse.core.names import TableName
from lakehouse.core.refs import Commit

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


def theirs(catalog: RestCatalog) -> Catalog:
    return load_catalog(catalog.name, **catalog.pyiceberg_properties())


def append(catalog: RestCatalog, table: TableName = LEADS) -> None:
    theirs(catalog).load_table(str(table)).append(ROWS)


def count(catalog: RestCatalog, table: TableName = LEADS) -> int:
    return theirs(catalog).load_table(str(table)).scan().to_arrow().num_rows


def test_tables_and_pointers_are_the_servers(catalog: RestCatalog, served: Served) -> None:
    catalog.ensure_namespace("crm")
    assert list(catalog.tables()) == [LEADS]
    before, state = catalog.pointer(LEADS), catalog.state()
    assert before == served.catalog.pointer(LEADS)
    pinned = catalog.pinned([LEADS])
    append(catalog)
    assert catalog.pointers([LEADS, DEALS]) == {LEADS: served.catalog.pointer(LEADS), DEALS: None}
    assert pinned.pointer(LEADS) == before != catalog.pointer(LEADS)
    assert catalog.state() != state
    assert not catalog.has_view(LEADS)


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
    assert catalog.undrop(LEADS)
    assert (catalog.pointer(LEADS), list(catalog.dropped())) == (before, [])
    append(catalog)
    assert count(catalog) == 4


def test_drops_of_many_at_once_drop_once(catalog: RestCatalog) -> None:
    answers = at_once(lambda _: catalog.on("main").drop(LEADS, "2026-01-01"), 4)
    assert sorted(answers, key=str) == [False] * 3 + [True]


def test_a_pointer_cannot_be_moved_over_rest_but_forgotten(catalog: RestCatalog) -> None:
    now = catalog.pointer(LEADS)
    assert now
    with pytest.raises(NotSupportedError, match="metadata file"):
        catalog.move(LEADS, now, now)
    assert not catalog.move(LEADS, "file:///elsewhere", None)
    assert catalog.move(LEADS, now, None)
    assert catalog.pointer(LEADS) is None


# ---- branches of our own server ---------------------------------------------------------------------------------


@pytest.fixture
def branch(catalog: RestCatalog, served: Served) -> RestCatalog:
    served.catalog.create_branch("dev")
    return catalog.on("dev")


def test_a_branch_of_our_server_is_published_in_one_transaction(catalog: RestCatalog, branch: RestCatalog) -> None:
    append(branch)
    with theirs(branch).load_table(str(LEADS)).update_schema() as change:
        from pyiceberg.types import StringType

        change.add_column("name", StringType())
    theirs(branch).create_table(str(DEALS), schema=ROWS.schema).append(ROWS)
    assert (count(catalog), count(branch), catalog.pointer(DEALS)) == (2, 4, None)
    assert [(each.table, each.what) for each in catalog.changes("dev")] == [(DEALS, "added"), (LEADS, "changed")]
    assert catalog.conflicts("dev") == ()
    assert catalog.publish("dev", Commit(run="r-1"))
    assert (count(catalog), count(catalog, DEALS)) == (4, 2)
    table = theirs(catalog).load_table(str(LEADS))
    assert [field.name for field in table.schema().fields] == ["id", "name"]
    assert table.metadata.snapshots == theirs(branch).load_table(str(LEADS)).metadata.snapshots
    append(catalog)
    assert count(catalog) == 6
    assert branch.on("main").pointer(LEADS) == catalog.pointer(LEADS) != branch.pointer(LEADS)


def test_a_table_that_moved_meanwhile_publishes_nothing(catalog: RestCatalog, branch: RestCatalog) -> None:
    append(branch)
    theirs(branch).create_table(str(DEALS), schema=ROWS.schema)
    append(catalog)
    assert catalog.conflicts("dev") == (LEADS,)
    done = catalog.publish("dev")
    assert not done
    assert done.moved == (LEADS,)
    assert (count(catalog), catalog.pointer(DEALS)) == (4, None)


def test_a_table_that_only_main_changed_is_left_alone(catalog: RestCatalog, branch: RestCatalog) -> None:
    append(catalog)
    assert catalog.changes("dev") == []
    assert catalog.publish("dev")
    assert count(catalog) == 4


def test_what_moves_between_the_look_and_the_transaction_is_refused_by_the_server(
    catalog: RestCatalog, branch: RestCatalog
) -> None:
    append(branch)
    theirs(branch).create_table(str(DEALS), schema=ROWS.schema)
    seen = catalog._changed("dev")
    append(catalog)
    assert not catalog._sent([(change.table, sent) for change, sent in seen if sent])
    assert (count(catalog), catalog.pointer(DEALS)) == (4, None)


def test_every_change_names_the_state_that_it_was_made_from(catalog: RestCatalog, branch: RestCatalog) -> None:
    append(branch)
    theirs(branch).create_table(str(DEALS), schema=ROWS.schema)
    now = theirs(catalog).load_table(str(LEADS)).metadata
    (_, deals), (_, leads) = catalog._changed("dev")
    assert deals and leads
    assert deals["requirements"] == [{"type": "assert-create"}]
    assert {"type": "assert-table-uuid", "uuid": str(now.table_uuid)} in leads["requirements"]
    at = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": now.current_snapshot_id}
    assert at in leads["requirements"]
    assert [update["action"] for update in leads["updates"]] == ["add-snapshot", "set-snapshot-ref"]


def test_several_tables_without_a_transaction_are_refused_and_one_is_not(
    catalog: RestCatalog, branch: RestCatalog
) -> None:
    catalog._theirs._supported_endpoints = set()  # as of a server that does not list it
    append(branch)
    theirs(branch).create_table(str(DEALS), schema=ROWS.schema)
    with pytest.raises(NotSupportedError, match="A publish of 2 tables at once"):
        catalog.publish("dev")
    assert (count(catalog), catalog.pointer(DEALS)) == (2, None)
    theirs(branch).drop_table(str(DEALS))
    assert catalog.publish("dev")
    assert count(catalog) == 4


# ---- servers of others ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_server_of_others_has_tables_and_no_branches(nessie_server: NessieServer, namespace: str) -> None:
    properties = nessie_server.catalog().rest_properties()
    io = {name: value for name, value in properties.items() if name not in ("type", "uri")}
    catalog = RestCatalog(properties["uri"], io=io)
    catalog.ensure_namespace(namespace)
    table = TableName(namespace, "leads")
    theirs(catalog).create_table(str(table), schema=ROWS.schema).append(ROWS)
    assert table in catalog.tables()
    assert catalog.pointer(table) == nessie_server.catalog().pointer(table)
    assert count(catalog, table) == 2
    attempts: list[Callable[[], object]] = [
        lambda: catalog.on("dev"),
        lambda: catalog.changes("dev"),
        lambda: catalog.publish("dev"),
        lambda: catalog.create_branch("dev"),
        lambda: catalog.fork("dev", []),
        lambda: catalog.create_tag("dev"),
        lambda: catalog.revert("dev", Commit()),
        catalog.reachable,
    ]
    for attempt in attempts:
        with pytest.raises(NotSupportedError, match="cannot be had over Iceberg REST") as refused:
            attempt()
        assert "nessie" in refused.value.hint
    assert (catalog.branches(), catalog.tags(), catalog.log()) == ([], [], [])


# ---- the server -------------------------------------------------------------------------------------------------


def test_a_server_that_does_not_run_is_told_of() -> None:
    uri = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(CatalogUnreachableError, match=uri) as refused:
        RestCatalog(uri).ready()
    assert "lake up rest" in refused.value.hint


def test_a_wrong_token_is_told_of_and_not_repeated(served: Served) -> None:
    with pytest.raises(CatalogAccessError) as refused:
        RestCatalog(served.url, token="wrong-one").ready()
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


def test_spark_is_told_the_branch_as_a_prefix(catalog: RestCatalog, branch: RestCatalog) -> None:
    assert branch.spark_conf()["spark.sql.catalog.dev.prefix"] == "dev"
    assert "spark.sql.catalog.lake.prefix" not in catalog.spark_conf()
    assert branch.spark_conf()["spark.sql.catalog.dev.token"] == "tok-en"
