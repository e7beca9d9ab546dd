"""Every ingest writes on a branch of its own, which is dropped when the ingest fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pyarrow
import pytest
from pyiceberg.catalog.sql import SqlCatalog as PyIceberg
from pyiceberg.transforms import IdentityTransform

from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.config.load import load_settings
from lakehouse.core.errors import NotSupportedError
from lakehouse.core.names import TableName
from lakehouse.core.requests import IngestRequest
from lakehouse.ingest.iceberg_target import IcebergTarget, iceberg_target
from lakehouse.ingest.target import TargetContext
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble

ROWS = pyarrow.table({"id": [1, 2]})
NO_SPARK = cast(Any, None)


@pytest.fixture
def lake(home: Path) -> Iterator[Lake]:
    with assemble(load_settings({"home": home}, environ={})) as lake:
        yield lake


@pytest.fixture
def catalog(lake: Lake, home: Path) -> SqlCatalog:
    return SqlCatalog(open_database(home / "catalog.db"), f"file://{home}/warehouse")


def create_tables(catalog: SqlCatalog, *names: str) -> None:
    writer = PyIceberg("lake", **catalog.pyiceberg_properties())
    for name in names:
        writer.create_namespace_if_not_exists(name.split(".")[0])
        writer.create_table(name, schema=ROWS.schema).append(ROWS)
    writer.close()


@contextmanager
def target(lake: Lake, catalog: SqlCatalog, name: str) -> Iterator[IcebergTarget]:
    table = TableName.parse(name)
    context = TargetContext(
        lake._components.tables, catalog, NO_SPARK, lake._components.duckdb, table, lake.describe(name)
    )
    with iceberg_target(context) as opened:
        yield opened


def test_two_tables_never_share_a_branch(lake: Lake, catalog: SqlCatalog) -> None:
    create_tables(catalog, "a__b.c", "a.b__c")
    with target(lake, catalog, "a__b.c") as first, target(lake, catalog, "a.b__c"):
        assert [column.name for column in first.columns()] == ["id"], "the second one discarded the first one's branch"


def test_what_a_killed_ingest_still_writes_stays_out_of_the_next_one(lake: Lake, catalog: SqlCatalog) -> None:
    create_tables(catalog, "crm.leads")
    with target(lake, catalog, "crm.leads") as killed:
        spark = PyIceberg(killed._fork.branch, **catalog.pyiceberg_properties())
        still_running = spark.load_table("crm.leads")
        with target(lake, catalog, "crm.leads") as again:
            still_running.append(ROWS)
            spark.close()
            assert again._on_branch.describe(TableName("crm", "leads")).current.rows_total == 2  # type: ignore[union-attr]


def test_an_ingest_leaves_the_branch_of_an_ingest_on_another_host_alone(lake: Lake, catalog: SqlCatalog) -> None:
    create_tables(catalog, "crm.leads")
    catalog.fork("ingest_0123456789ab", [TableName("crm", "leads")])
    lake.ingest_rows([{"id": 3}], "crm.leads")
    assert [ref.name for ref in catalog.branch_refs()] == ["ingest_0123456789ab"]


def test_rejected_rows_are_not_lost_where_their_table_needs_spark(
    lake: Lake, catalog: SqlCatalog, tmp_path: Path
) -> None:
    file = tmp_path / "leads.csv"
    file.write_text("id,n\n1,1\n")
    request = IngestRequest((str(file),), TableName("crm", "leads"), light=True, key=("id",))
    lake.ingest_files(request)
    writer = PyIceberg("lake", **catalog.pyiceberg_properties())
    schema = pyarrow.schema(
        [
            ("file", pyarrow.string()),
            ("line", pyarrow.int64()),
            ("reason", pyarrow.string()),
            ("raw", pyarrow.string()),
            ("ingested_at", pyarrow.timestamp("us", "UTC")),
        ]
    )
    rejected = writer.create_table("crm.leads__rejected", schema=schema)
    with rejected.update_sort_order() as order:
        order.asc("line", IdentityTransform())
    file.write_text("id,n\n2,1\n,2\n")
    with pytest.raises(NotSupportedError, match=r"crm\.leads__rejected, which has a sort order, needs Spark"):
        lake.ingest_files(request)
    writer.close()
    assert lake.sql("select id from crm.leads").rows() == [(1,)], "nothing is published without its rejected rows"
    assert not catalog.branch_refs()
