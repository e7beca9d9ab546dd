"""PyIceberg's own REST client on our catalog."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, NoSuchViewError, TableAlreadyExistsError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType
from pyiceberg.view.metadata import SQLViewRepresentation, ViewRepresentation, ViewVersion
from tests.support.servers.rest_catalog import Served

from lakehouse.core.names import TableName

pytestmark = pytest.mark.slow

SCHEMA = Schema(NestedField(1, "id", LongType(), required=False), NestedField(2, "note", StringType(), required=False))


def rows(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64()), "note": pa.array([f"n{number}" for number in numbers])})


def test_a_table_lives_from_creation_to_drop_and_back(served: Served) -> None:
    catalog = served.pyiceberg()
    catalog.create_namespace("crm")
    table = catalog.create_table("crm.leads", SCHEMA)
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table("crm.leads", SCHEMA)
    table.append(rows(1, 2))
    with table.update_schema() as change:
        change.add_column("score", LongType())
        change.rename_column("note", "remark")
    table.append(pa.table({"id": [3], "remark": ["n3"], "score": [9]}))
    assert sorted(catalog.load_table("crm.leads").scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    assert [field.name for field in catalog.load_table("crm.leads").schema().fields] == ["id", "remark", "score"]
    with table.update_spec() as spec:
        spec.add_identity("id")
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "v1").commit()
    assert "v1" in catalog.load_table("crm.leads").refs()
    catalog.rename_table("crm.leads", "crm.prospects")
    with pytest.raises(NoSuchTableError):
        catalog.load_table("crm.leads")
    catalog.drop_table("crm.prospects")
    assert catalog.list_tables("crm") == []
    assert served.catalog.undrop(TableName("crm", "prospects"))
    assert catalog.load_table("crm.prospects").scan().to_arrow().num_rows == 3


def test_what_is_written_here_is_what_the_sql_catalog_has_and_the_other_way_round(served: Served) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = served.pyiceberg()
    catalog.create_namespace("crm")
    catalog.create_table("crm.leads", SCHEMA).append(rows(1))
    beside = SqlCatalog("lake", **served.catalog.pyiceberg_properties())
    beside.load_table("crm.leads").append(rows(2))
    beside.create_table("crm.theirs", SCHEMA).append(rows(7))
    beside.close()
    assert sorted(catalog.load_table("crm.leads").scan().to_arrow()["id"].to_pylist()) == [1, 2]
    assert catalog.load_table("crm.theirs").scan().to_arrow()["id"].to_pylist() == [7]


def test_a_table_is_created_and_filled_in_one_commit(served: Served) -> None:
    catalog = served.pyiceberg()
    catalog.create_namespace("crm")
    with catalog.create_table_transaction("crm.leads", SCHEMA) as transaction:
        transaction.append(rows(1, 2, 3))
        with pytest.raises(NoSuchTableError):
            catalog.load_table("crm.leads")
    assert catalog.load_table("crm.leads").scan().to_arrow().num_rows == 3


def test_a_branch_is_read_and_written_by_its_prefix(served: Served) -> None:
    catalog = served.pyiceberg()
    catalog.create_namespace("crm")
    catalog.create_table("crm.leads", SCHEMA).append(rows(1))
    served.catalog.create_branch("audit")
    audit = served.pyiceberg(prefix="audit")
    audit.load_table("crm.leads").append(rows(2))
    assert audit.load_table("crm.leads").scan().to_arrow().num_rows == 2
    assert served.pyiceberg(warehouse="lake@audit").load_table("crm.leads").scan().to_arrow().num_rows == 2
    assert catalog.load_table("crm.leads").scan().to_arrow().num_rows == 1
    served.catalog.publish("audit")
    assert catalog.load_table("crm.leads").scan().to_arrow().num_rows == 2


def test_views_are_made_loaded_and_dropped(served: Served) -> None:
    catalog = served.pyiceberg()
    catalog.create_namespace("crm")
    version = ViewVersion(
        schema_id=0,
        representations=[ViewRepresentation(SQLViewRepresentation(type="sql", sql="select 1 as id", dialect="spark"))],
        default_namespace=("crm",),
    )
    made = catalog.create_view("crm.one", SCHEMA, version)
    assert catalog.load_view("crm.one").metadata == made.metadata
    assert made.metadata.versions[0].representations[0].root.sql == "select 1 as id"
    assert catalog.list_views("crm") == [("crm", "one")]
    assert catalog.list_tables("crm") == []
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table("crm.one", SCHEMA)
    catalog.drop_view("crm.one")
    with pytest.raises(NoSuchViewError):
        catalog.load_view("crm.one")


def test_appends_of_eight_writers_at_once_lose_nothing(served: Served) -> None:
    catalog = served.pyiceberg()
    catalog.create_namespace("crm")
    catalog.create_table("crm.leads", SCHEMA, properties={"commit.retry.num-retries": "40"})
    written: list[int] = []

    def work(number: int) -> None:
        own = served.pyiceberg()
        for turn in range(4):
            row = number * 100 + turn
            while True:
                try:
                    own.load_table("crm.leads").append(rows(row))
                except CommitFailedException:
                    continue  # refused, so it must not be there
                written.append(row)
                break

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(written) == 32
    table = catalog.load_table("crm.leads")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == sorted(written)
    assert len(table.snapshots()) == 32
