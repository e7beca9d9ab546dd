"""A lake in an object store takes rows without Spark: appended, updated and quarantined as in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import cache_only
from tests.support.servers.s3 import S3Server

from lakehouse.config.load import load_settings
from lakehouse.core.errors import StorageError
from lakehouse.core.names import TableName
from lakehouse.core.requests import IngestRequest
from lakehouse.ingest.report import IngestReport
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble
from lakehouse.tables.native import NativeWriter
from lakehouse.tables.write import StagedRows

pytestmark = pytest.mark.servers

FIRST = "id,city,day\n1,Zürich/é=x,2026-01-14\n2,a b%20c,2026-01-15\n3,,2026-01-15\n"
SECOND = "id,city,day\n2,moved,2026-01-15\n4,new,2026-01-16\n1,Zürich/é=x,2026-01-14\n"


@pytest.fixture
def lake(s3_server: S3Server, home: Path) -> Iterator[Lake]:
    own = {"home": home, "warehouse": f"s3://{s3_server.make_bucket()}/lake"}
    with assemble(load_settings(own, environ={**cache_only(), **s3_server.environment})) as lake:
        yield lake


def ingest(lake: Lake, file: Path, text: str, **options: object) -> IngestReport:
    file.write_text(text)
    request = IngestRequest((str(file),), TableName.parse("shop.sales"), light=True, **options)  # type: ignore[arg-type]
    report: IngestReport = lake._components.ingester("").run(request)
    return report


def rows(lake: Lake) -> list[tuple[object, ...]]:
    return [tuple(row) for row in lake.sql("select id, city from shop.sales order by id", engine="duckdb").rows()]


def test_rows_are_appended(lake: Lake, tmp_path: Path) -> None:
    assert ingest(lake, tmp_path / "a.csv", FIRST).inserted == 3
    assert ingest(lake, tmp_path / "b.csv", SECOND.replace("\n", ",x\n").replace("day,x", "day,note")).inserted == 3
    assert len(rows(lake)) == 6
    table = lake.describe("shop.sales")
    assert table.location.startswith("s3://") and table.current and table.current.files_total == 2


def test_rows_are_updated_by_their_key(lake: Lake, tmp_path: Path) -> None:
    ingest(lake, tmp_path / "a.csv", FIRST, key=("id",))
    report = ingest(lake, tmp_path / "b.csv", SECOND + ",no key,2026-01-17\n")
    assert (report.inserted, report.updated, report.unchanged, report.rejected) == (1, 1, 1, 1)
    assert rows(lake) == [(1, "Zürich/é=x"), (2, "moved"), (3, None), (4, "new")]
    # A wrong bound would make a reader skip the file that holds the row.
    answer = lake.sql("select id from shop.sales where day > date '2026-01-15'", engine="duckdb").rows()
    assert [tuple(row) for row in answer] == [(4,)]
    assert lake.sql("select reason from shop.sales__rejected", engine="duckdb").rows()


def test_a_table_in_partitions_has_files_of_each(lake: Lake, tmp_path: Path) -> None:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.transforms import DayTransform

    ingest(lake, tmp_path / "a.csv", "id,city,day\n0,Bern,2026-01-14\n", key=("id",))
    properties = lake._components.runner().catalog.pyiceberg_properties()
    with load_catalog("lake", **properties) as catalog:
        with catalog.load_table("shop.sales").update_spec() as spec:
            spec.add_field("day", DayTransform(), "day_of")
        assert ingest(lake, tmp_path / "b.csv", FIRST.replace("\n3,", "\n4,"), mode="append").inserted == 3
        files = [task.file for task in catalog.load_table("shop.sales").scan().plan_files()]
    assert len(files) == 3 and all(file.file_path.startswith("s3://") for file in files)
    assert len(rows(lake)) == 4


def test_a_store_that_refuses_is_named_without_its_keys(lake: Lake, tmp_path: Path) -> None:
    ingest(lake, tmp_path / "a.csv", FIRST)
    components = lake._components
    properties = {**components.runner().catalog.pyiceberg_properties(), "s3.secret-access-key": "not-the-key"}
    writer = NativeWriter(components.duckdb, "lake", properties, TableName.parse("shop.sales"))
    with pytest.raises(StorageError, match="object store of shop.sales failed") as caught:
        writer.append(StagedRows(tmp_path, ()), lake.describe("shop.sales").columns)
    assert "not-the-key" not in str(caught.value) and "lake doctor" in caught.value.hint
