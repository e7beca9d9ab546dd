"""The Hive catalog against a real metastore: Iceberg and Hudi side by side, pointers under its lock, branches kept aside."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException
from tests.support.servers.ports import free_port
from tests.support.servers.stack import Stack
from tests.support.threads import at_once

from lakehouse.catalogs.hive import HiveCatalog
from lakehouse.catalogs.hive.metastore import DROPPED
from lakehouse.catalogs.overlay import BranchOverlay
from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.core.errors import (
    BadSettingError,
    CatalogUnreachableError,
    NotInstalledError,
    NotSupportedError,
    TableExistsError,
)
from lakehouse.core.names import TableName
from lakehouse.core.refs import Change, Commit
from lakehouse.engine_config import snippet
from lakehouse.storage.access import for_pyiceberg, for_spark
from lakehouse.storage.s3 import S3Settings

pytestmark = [pytest.mark.slow, pytest.mark.stretch("hive")]

ROWS = pyarrow.table({"id": [1, 2]})


@pytest.fixture(scope="module")
def hive(stack: Stack) -> HiveCatalog:
    facts = stack.need("hive")
    s3 = S3Settings(facts.s3_endpoint, access_key=facts.s3_access_key, secret_key=facts.s3_secret_key)
    return HiveCatalog(facts.hive_uri, facts.warehouse, for_pyiceberg(s3), for_spark(s3))


@pytest.fixture
def leads(hive: HiveCatalog, namespace: str) -> TableName:
    """A table with two rows."""
    hive.ensure_namespace(namespace)
    table = TableName(namespace, "leads")
    theirs(hive).create_table(str(table), schema=ROWS.schema).append(ROWS)
    return table


def theirs(hive: HiveCatalog | SqlCatalog | BranchOverlay) -> Catalog:
    return load_catalog(hive.name, **hive.pyiceberg_properties())


def append(hive: HiveCatalog | SqlCatalog | BranchOverlay, table: TableName) -> None:
    theirs(hive).load_table(str(table)).append(ROWS)


def count(hive: HiveCatalog | SqlCatalog | BranchOverlay, table: TableName) -> int:
    return theirs(hive).load_table(str(table)).scan().to_arrow().num_rows


def both_pointers(hive: HiveCatalog, table: TableName) -> tuple[str, str]:
    """Where a table was and is, one append apart."""
    first = hive.pointer(table)
    append(hive, table)
    second = hive.pointer(table)
    assert first
    assert second
    return first, second


def test_what_is_not_there_has_no_pointer(hive: HiveCatalog, namespace: str) -> None:
    nothing = TableName(namespace, "nothing")
    assert hive.pointer(nothing) is None
    assert not hive.has_view(nothing)
    assert not hive.swap_pointer(nothing, "s3://a", "s3://b")
    assert not hive.drop(nothing, "2026-01-01")
    assert not hive.undrop(nothing)


def test_the_pointer_follows_every_commit(hive: HiveCatalog, leads: TableName) -> None:
    state = hive.state_hash()
    first, second = both_pointers(hive, leads)
    assert first != second == theirs(hive).load_table(str(leads)).metadata_location
    assert leads in hive.tables()
    assert hive.state_hash() != state
    assert hive.pointers([leads, TableName("no_such_db", "t")]) == {leads: second, TableName("no_such_db", "t"): None}


def test_a_move_needs_the_table_to_be_where_it_was(hive: HiveCatalog, leads: TableName) -> None:
    first, second = both_pointers(hive, leads)
    assert not hive.swap_pointer(leads, first, second)
    assert hive.swap_pointer(leads, second, first)
    assert count(hive, leads) == 2
    append(hive, leads)
    assert count(hive, leads) == 4
    now = hive.pointer(leads)
    assert now
    assert hive.swap_pointer(leads, now, None)
    assert hive.pointer(leads) is None


def test_moves_of_many_at_once_move_once(hive: HiveCatalog, leads: TableName) -> None:
    first, second = both_pointers(hive, leads)
    answers = at_once(lambda _: hive.swap_pointer(leads, second, first), 4)
    assert sorted(answers, key=str) == [False] * 3 + [True]


def test_writers_at_once_lose_nothing_that_was_acknowledged(hive: HiveCatalog, leads: TableName) -> None:
    def write(_: int) -> None:
        append(hive, leads)

    answers = at_once(write, 3)
    assert all(answer is None or isinstance(answer, CommitFailedException) for answer in answers), answers
    done = sum(answer is None for answer in answers)
    assert done >= 1
    assert count(hive, leads) == 2 + 2 * done


def test_a_dropped_table_comes_back_with_its_rows(hive: HiveCatalog, leads: TableName) -> None:
    before = hive.pointer(leads)
    assert hive.drop(leads, "2026-01-01")
    assert hive.pointer(leads) is None
    assert leads in hive.dropped()
    assert not any(table.namespace == DROPPED for table in hive.tables())
    theirs(hive).create_table(str(leads), schema=ROWS.schema)
    with pytest.raises(TableExistsError, match="again"):
        hive.undrop(leads)
    assert hive.drop(leads, "2026-01-01")
    older, newer = [drop for drop in hive.drops() if drop.table == leads]
    assert older.at < newer.at
    assert hive.undrop(leads)  # the newer of the two, which is empty
    assert count(hive, leads) == 0
    theirs(hive).rename_table(str(leads), f"{leads.namespace}.newer")
    assert not hive.undrop(leads, newer.id)
    assert hive.undrop(leads, older.id)
    assert hive.pointer(leads) == before
    assert leads not in hive.dropped()
    append(hive, leads)
    assert count(hive, leads) == 4


@pytest.fixture
def trips(hive: HiveCatalog, leads: TableName) -> TableName:
    """A Hudi table beside the other, one of the metastore's own as Spark's SQL makes them, and something else."""
    from hive_metastore.ttypes import SerDeInfo, StorageDescriptor, Table

    trips, plain = TableName(leads.namespace, "trips"), TableName(leads.namespace, "plain")
    for name, parameters in ((trips, {"spark.sql.sources.provider": "hudi"}), (plain, {})):
        place = f"{hive.warehouse}/{leads.namespace}.db/{name.table}"
        storage = StorageDescriptor(cols=[], location=place, serdeInfo=SerDeInfo(parameters={}))
        with hive.metastore.client() as client:
            entry = Table(name.table, name.namespace, sd=storage, parameters=dict(parameters))
            entry.tableType, entry.partitionKeys = "MANAGED_TABLE", []
            client.create_table(entry)
    return trips


def test_hudi_tables_are_told_apart_from_icebergs(hive: HiveCatalog, leads: TableName, trips: TableName) -> None:
    hudi = hive.entries_of("hudi")
    assert [name for name in hudi.tables() if name.namespace == leads.namespace] == [trips]
    assert [name for name in hive.tables() if name.namespace == leads.namespace] == [leads]
    assert hudi.location(trips) == f"{hive.warehouse}/{leads.namespace}.db/trips"
    assert (hudi.location(leads), hive.pointer(trips)) == (None, None)
    assert not hive.drop(trips, "2026-01-01")
    assert not hudi.drop(leads)


def test_a_hudi_table_that_was_the_metastores_own_is_dropped_without_moving_its_files(
    hive: HiveCatalog, leads: TableName, trips: TableName
) -> None:
    hudi = hive.entries_of("hudi")
    before = hudi.location(trips)
    assert hudi.drop(trips)
    assert (hudi.location(trips), trips in hudi.dropped(), trips in hive.dropped()) == (None, True, False)
    (kept,) = [place for place, was in hive.metastore.dropped_names("hudi") if was == trips]
    assert hive.metastore.entry(kept).sd.location == before
    assert not hive.undrop(trips), "it was not Iceberg's"
    assert hudi.undrop(trips)
    assert hudi.location(trips) == before


# ---- branches, kept aside ---------------------------------------------------------------------------------------


@pytest.fixture
def aside(hive: HiveCatalog, tmp_path: Path) -> BranchOverlay:
    database = open_database(tmp_path / "branches.db")
    return BranchOverlay(hive, SqlCatalog(database, hive.warehouse, io=hive.io, spark_io=hive.spark_io))


@pytest.fixture
def deals(leads: TableName) -> TableName:
    """A table that is not there."""
    return TableName(leads.namespace, "deals")


@pytest.fixture
def branch(aside: BranchOverlay, leads: TableName, deals: TableName) -> SqlCatalog:
    """A branch that has changed one table."""
    aside.fork("run_7", [leads, deals])
    here = aside.on("run_7")
    assert isinstance(here, SqlCatalog)
    append(here, leads)
    return here


def test_one_table_is_published_by_an_exchange_of_its_pointer(
    aside: BranchOverlay, hive: HiveCatalog, branch: SqlCatalog, leads: TableName
) -> None:
    assert not aside.capabilities.multi_table_publish
    wanted = branch.pointer(leads)
    assert (count(hive, leads), count(branch, leads)) == (2, 4)
    assert aside.publish("run_7", Commit(run="7"), "run_7")
    assert hive.pointer(leads) == wanted, "the same file: nothing is written anew"
    assert aside.published_by("7") == aside.log()[0]
    append(hive, leads)
    assert count(hive, leads) == 6


def test_a_new_table_is_published(aside: BranchOverlay, hive: HiveCatalog, leads: TableName, deals: TableName) -> None:
    for name in ("one", "two"):
        aside.fork(name, [deals])
        here = aside.on(name)
        here.ensure_namespace(deals.namespace)
        theirs(here).create_table(str(deals), schema=ROWS.schema).append(ROWS)
    assert aside.publish("one")
    assert count(hive, deals) == 2
    refused = aside.publish("two")
    assert (bool(refused), refused.conflicts) == (False, (deals,))


def test_a_table_dropped_on_a_branch_is_dropped_by_its_publish_and_comes_back(
    aside: BranchOverlay, hive: HiveCatalog, leads: TableName
) -> None:
    aside.fork("exp", [leads])
    aside.on("exp").drop(leads, "2026-01-01")
    assert count(hive, leads) == 2
    assert aside.publish("exp")
    assert hive.pointer(leads) is None
    assert aside.undrop(leads)
    assert count(hive, leads) == 2


def test_several_tables_are_refused_and_nothing_is_changed(
    aside: BranchOverlay, hive: HiveCatalog, branch: SqlCatalog, leads: TableName, deals: TableName
) -> None:
    theirs(branch).create_table(str(deals), schema=ROWS.schema)
    with pytest.raises(NotSupportedError, match="cannot change several tables at once") as refused:
        aside.publish("run_7")
    assert "nessie" in refused.value.hint
    assert (count(hive, leads), hive.pointer(deals), aside.branches(), aside.log()) == (2, None, ["run_7"], [])


def test_a_table_that_others_wrote_to_meanwhile_is_a_conflict(
    aside: BranchOverlay, hive: HiveCatalog, branch: SqlCatalog, leads: TableName
) -> None:
    append(hive, leads)
    assert aside.conflicts("run_7") == (leads,)
    assert aside.publish("run_7").conflicts == (leads,)
    assert (count(hive, leads), count(branch, leads), aside.log()) == (4, 4, [])


def test_a_run_killed_between_the_commit_and_the_note_has_published(
    aside: BranchOverlay, hive: HiveCatalog, branch: SqlCatalog, leads: TableName
) -> None:
    assert aside.published_by("7") is None
    assert hive.commit(aside.changes("run_7"))  # as a publisher does that is killed right after
    assert aside.log() == []
    entry = aside.published_by("7")
    assert entry
    assert [(change.table, change.after) for change in entry.tables] == [(leads, hive.pointer(leads))]
    assert (aside.branches(), [tag.name for tag in aside.tags()]) == ([], ["run_7"])


def test_a_publish_is_undone(aside: BranchOverlay, hive: HiveCatalog, branch: SqlCatalog, leads: TableName) -> None:
    before = hive.pointer(leads)
    done = aside.publish("run_7")
    assert aside.revert(done.entry, Commit())
    assert hive.pointer(leads) == before
    append(hive, leads)
    assert aside.revert(done.entry, Commit()).conflicts == (leads,)


# ---- the server -------------------------------------------------------------------------------------------------

UNREACHED = HiveCatalog("thrift://127.0.0.1:1", "s3://x/y")


def test_a_metastore_that_does_not_run_is_told_of() -> None:
    uri = f"thrift://127.0.0.1:{free_port()}"
    with pytest.raises(CatalogUnreachableError, match=uri) as refused:
        HiveCatalog(uri, "s3://x/y").ensure_ready()
    assert "lake up hive" in refused.value.hint


@pytest.mark.parametrize("uri", ["", "127.0.0.1:9083", "http://h:9083", "thrift://h"])
def test_an_address_that_is_none_is_refused(uri: str) -> None:
    with pytest.raises(BadSettingError, match="is not the address of a Hive Metastore"):
        HiveCatalog(uri, "s3://x/y")


def test_without_its_client_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "hive_metastore.ThriftHiveMetastore", None)
    with pytest.raises(NotInstalledError) as refused:
        UNREACHED.ensure_ready()
    assert "lakehouse[iceberg]" in refused.value.hint


@pytest.mark.spark
def test_spark_and_pyiceberg_write_the_same_tables(stack: Stack, hive: HiveCatalog, leads: TableName) -> None:
    lake = stack.lake("hive")

    def spark(sql: str) -> list[tuple[object, ...]]:
        return lake.sql(sql, engine="spark").rows()

    first, second = both_pointers(hive, leads)
    assert spark(f"SELECT count(*) AS n FROM {leads}") == [(4,)]
    spark(f"INSERT INTO {leads} VALUES (3)")
    assert count(hive, leads) == 5
    now = hive.pointer(leads)
    assert now
    assert hive.swap_pointer(leads, now, first)
    assert spark(f"SELECT count(*) AS n FROM {leads}") == [(2,)]
    spark(f"CREATE TABLE {leads.namespace}.t USING iceberg AS SELECT * FROM {leads}")
    assert count(hive, TableName(leads.namespace, "t")) == 2
    assert hive.drop(TableName(leads.namespace, "t"), "2026-01-01")
    assert hive.undrop(TableName(leads.namespace, "t"))
    assert spark(f"SELECT count(*) AS n FROM {leads.namespace}.t") == [(2,)]
    assert second


def test_a_table_that_changes_between_the_check_and_the_drop_stays(
    hive: HiveCatalog, leads: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hive_metastore.ThriftHiveMetastore import Client

    now, lock, pending = hive.pointer(leads), Client.lock, [True]

    def race(client: Client, request: object) -> object:
        if pending:
            pending.clear()
            append(hive, leads)
        return lock(client, request)

    monkeypatch.setattr(Client, "lock", race)
    assert not hive.commit([Change(leads, now, None)])
    assert count(hive, leads) == 4


# ---- other engines ----------------------------------------------------------------------------------------------


def test_what_lake_connect_prints_for_duckdb_reads_its_tables(stack: Stack, leads: TableName) -> None:
    names: dict[str, Any] = {}
    exec(snippet("duckdb", replace(stack.settings, profile="hive")), names)  # noqa: S102 - a test of what is printed
    assert sorted(names["table"](str(leads)).fetchall()) == [(1,), (2,)]
    names["connection"].close()
