"""The Hive catalog against a real metastore: Iceberg and Hudi side by side, pointers under its lock, no branches."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException
from tests.catalogs.apart import SparkApart
from tests.catalogs.threads import at_once
from tests.servers.ports import free_port
from tests.servers.stack import Stack

from lakehouse.catalogs.hive import DROPPED, HiveCatalog
from lakehouse.core.errors import (
    BadSettingError,
    CatalogUnreachableError,
    NotInstalledError,
    NotSupportedError,
    TableExistsError,
)
from lakehouse.core.names import TableName
from lakehouse.core.refs import Commit
from lakehouse.storage.access import for_pyiceberg, for_spark
from lakehouse.storage.s3 import S3Settings

pytestmark = pytest.mark.slow

ROWS = pyarrow.table({"id": [1, 2]})


@pytest.fixture(scope="session")
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


def theirs(hive: HiveCatalog) -> Catalog:
    return load_catalog("lake", **hive.pyiceberg_properties())


def append(hive: HiveCatalog, table: TableName) -> None:
    theirs(hive).load_table(str(table)).append(ROWS)


def count(hive: HiveCatalog, table: TableName) -> int:
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
    assert not hive.move(nothing, "s3://a", "s3://b")
    assert not hive.drop(nothing, "2026-01-01")
    assert not hive.undrop(nothing)


def test_the_pointer_follows_every_commit(hive: HiveCatalog, leads: TableName) -> None:
    state = hive.state()
    first, second = both_pointers(hive, leads)
    assert first != second == theirs(hive).load_table(str(leads)).metadata_location
    assert leads in hive.tables()
    assert hive.state() != state
    assert hive.pointers([leads, TableName("no_such_db", "t")]) == {leads: second, TableName("no_such_db", "t"): None}


def test_a_move_needs_the_table_to_be_where_it_was(hive: HiveCatalog, leads: TableName) -> None:
    first, second = both_pointers(hive, leads)
    assert not hive.move(leads, first, second)
    assert hive.move(leads, second, first)
    assert count(hive, leads) == 2
    append(hive, leads)
    assert count(hive, leads) == 4
    now = hive.pointer(leads)
    assert now
    assert hive.move(leads, now, None)
    assert hive.pointer(leads) is None


def test_moves_of_many_at_once_move_once(hive: HiveCatalog, leads: TableName) -> None:
    first, second = both_pointers(hive, leads)
    answers = at_once(lambda _: hive.move(leads, second, first), 4)
    assert sorted(answers, key=str) == [False] * 3 + [True]


def test_writers_at_once_lose_nothing_that_was_acknowledged(hive: HiveCatalog, leads: TableName) -> None:
    def write(_: int) -> None:
        append(hive, leads)

    answers = at_once(write, 3)
    assert all(answer is None or isinstance(answer, CommitFailedException) for answer in answers), answers
    done = sum(answer is None for answer in answers)
    assert done >= 1
    assert count(hive, leads) == 2 + 2 * done


def test_a_pinned_table_stays_where_it_was(hive: HiveCatalog, leads: TableName) -> None:
    pinned, before = hive.pinned([leads]), hive.pointer(leads)
    append(hive, leads)
    assert pinned.pointer(leads) == before != hive.pointer(leads)


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
    assert hive.undrop(leads)  # the newer of the two, which is empty
    assert count(hive, leads) == 0
    theirs(hive).rename_table(str(leads), f"{leads.namespace}.newer")
    assert hive.undrop(leads)
    assert hive.pointer(leads) == before
    assert leads not in hive.dropped()
    append(hive, leads)
    assert count(hive, leads) == 4


def test_hudi_tables_are_listed_beside_icebergs(hive: HiveCatalog, leads: TableName) -> None:
    from hive_metastore.ttypes import SerDeInfo, StorageDescriptor, Table

    trips, plain = TableName(leads.namespace, "trips"), TableName(leads.namespace, "plain")
    for name, parameters in ((trips, {"spark.sql.sources.provider": "hudi"}), (plain, {})):
        place = f"{hive.warehouse}/{leads.namespace}.db/{name.table}"
        storage = StorageDescriptor(cols=[], location=place, serdeInfo=SerDeInfo(parameters={}))
        with hive._client() as client:
            entry = Table(name.table, name.namespace, sd=storage, parameters={"EXTERNAL": "TRUE", **parameters})
            entry.tableType, entry.partitionKeys = "EXTERNAL_TABLE", []
            client.create_table(entry)
    found = {name: place for name, place in hive.hudi_tables().items() if name.namespace == leads.namespace}
    assert found == {trips: f"{hive.warehouse}/{leads.namespace}.db/trips"}
    assert [name for name in hive.tables() if name.namespace == leads.namespace] == [leads]
    assert hive.pointer(trips) is None
    assert not hive.drop(trips, "2026-01-01")


# ---- no branches ------------------------------------------------------------------------------------------------

UNREACHED = HiveCatalog("thrift://127.0.0.1:1", "s3://x/y")


@pytest.mark.parametrize(
    "attempt",
    [
        pytest.param(lambda: UNREACHED.on("dev"), id="on"),
        pytest.param(lambda: UNREACHED.create_branch("dev"), id="create_branch"),
        pytest.param(lambda: UNREACHED.fork("dev", []), id="fork"),
        pytest.param(lambda: UNREACHED.changes("dev"), id="changes"),
        pytest.param(lambda: UNREACHED.conflicts("dev"), id="conflicts"),
        pytest.param(lambda: UNREACHED.publish("dev"), id="publish"),
        pytest.param(lambda: UNREACHED.create_tag("dev"), id="create_tag"),
        pytest.param(lambda: UNREACHED.revert("dev", Commit()), id="revert"),
        pytest.param(UNREACHED.reachable, id="reachable"),
    ],
)
def test_what_needs_branches_is_refused_with_a_way_out(attempt: Callable[[], object]) -> None:
    with pytest.raises(NotSupportedError, match="The Hive Metastore has no branches") as refused:
        attempt()
    assert "nessie" in refused.value.hint


def test_what_can_be_said_of_no_branches_is_said() -> None:
    assert UNREACHED.on("main") is UNREACHED.on("") is UNREACHED
    assert (UNREACHED.branches(), UNREACHED.tags(), UNREACHED.log()) == ([], [], [])
    assert not UNREACHED.discard("dev")
    assert UNREACHED.published_by("r") is None


# ---- the server -------------------------------------------------------------------------------------------------


def test_a_metastore_that_does_not_run_is_told_of() -> None:
    uri = f"thrift://127.0.0.1:{free_port()}"
    with pytest.raises(CatalogUnreachableError, match=uri) as refused:
        HiveCatalog(uri, "s3://x/y").ready()
    assert "lake up hive" in refused.value.hint


@pytest.mark.parametrize("uri", ["", "127.0.0.1:9083", "http://h:9083", "thrift://h"])
def test_an_address_that_is_none_is_refused(uri: str) -> None:
    with pytest.raises(BadSettingError, match="is not the address of a Hive Metastore"):
        HiveCatalog(uri, "s3://x/y")


def test_without_its_client_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "hive_metastore.ThriftHiveMetastore", None)
    with pytest.raises(NotInstalledError) as refused:
        UNREACHED.ready()
    assert "lakehouse[iceberg]" in refused.value.hint


@pytest.mark.spark
def test_spark_and_pyiceberg_write_the_same_tables(
    hive: HiveCatalog, leads: TableName, spark_apart: SparkApart
) -> None:
    conf = hive.spark_conf()
    first, second = both_pointers(hive, leads)
    assert spark_apart.sql(f"SELECT count(*) AS n FROM lake.{leads}", conf) == [{"n": 4}]
    spark_apart.sql(f"INSERT INTO lake.{leads} VALUES (3)", conf)
    assert count(hive, leads) == 5
    now = hive.pointer(leads)
    assert now
    assert hive.move(leads, now, first)
    assert spark_apart.sql(f"SELECT count(*) AS n FROM lake.{leads}", conf) == [{"n": 2}]
    spark_apart.sql(f"CREATE TABLE lake.{leads.namespace}.t USING iceberg AS SELECT * FROM lake.{leads}", conf)
    assert count(hive, TableName(leads.namespace, "t")) == 2
    assert hive.drop(TableName(leads.namespace, "t"), "2026-01-01")
    assert hive.undrop(TableName(leads.namespace, "t"))
    assert spark_apart.sql(f"SELECT count(*) AS n FROM lake.{leads.namespace}.t", conf) == [{"n": 2}]
    assert second
