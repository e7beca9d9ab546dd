"""`lake ingest` while other writers commit: neither side loses rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.ingest_fixture import IngestFixture

from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.config.settings import Settings
from lakehouse.core.errors import CommitConflictError
from lakehouse.core.names import TableName
from lakehouse.core.refs import Commit, Published
from lakehouse.core.requests import IngestRequest
from lakehouse.ingest.files import PlannedColumn
from lakehouse.ingest.hudi_target import HudiTarget
from lakehouse.ingest.schema import SchemaChanges
from lakehouse.lake import Lake

pytestmark = pytest.mark.spark


class ConcurrentlyWrittenCatalog(SqlCatalog):
    """The catalog of a lake in which another writer commits right before each publish."""

    def __init__(self, settings: Settings, lake: Lake, table: str, times: int) -> None:
        super().__init__(open_database(settings.home / "catalog.db"), f"file://{settings.home}/warehouse")
        self.lake, self.table, self.times = lake, table, times

    def publish(self, branch: str, commit: Commit | None = None, tag: str = "") -> Published:
        if self.times:
            self.times -= 1
            self.lake.sql(f"INSERT INTO {self.table} VALUES ('other', 1, 'x', 'x', current_timestamp())")
        return super().publish(branch, commit, tag)


@pytest.mark.parametrize("times", [1, 9], ids=["once", "again and again"])
def test_rejected_rows_of_a_hudi_table_are_kept_though_others_write_there(
    fixture: IngestFixture, shared_settings: Settings, times: int
) -> None:
    fixture.ingest("id,n\n1,10\n,5\n", "one.csv", key=("id",), format="hudi")
    rejected = f"{fixture.table}__rejected"
    catalog = ConcurrentlyWrittenCatalog(shared_settings, fixture.lake, rejected, times)
    ingester = replace(fixture.lake._components.ingester(""), catalog=catalog)
    request = IngestRequest((str(fixture.file("two.csv", "id,n\n2,20\n,6\n")),), TableName.parse(fixture.table))
    if times > 1:
        with pytest.raises(CommitConflictError, match="are not in"):
            ingester.run(request)
    else:
        ingester.run(request)
        own = fixture.lake.sql(f"SELECT count(*) FROM {rejected} WHERE file <> 'other'", engine="duckdb").rows()
        assert own == [(2,)]
    assert fixture.rows() == [(1, 10), (2, 20)]


def test_a_hudi_table_that_changed_is_not_rewritten_from_old_rows(fixture: IngestFixture, tmp_path: Path) -> None:
    fixture.ingest("id,n\n1,10\n", "one.csv", key=("id",), format="hudi")
    table = TableName.parse(fixture.table)
    target = HudiTarget(fixture.lake._components.ingester("")._context(table))
    to_text = PlannedColumn("n", "n", "string", recorded="bigint")
    target.open([to_text], (), IngestRequest((), table), SchemaChanges(rewritten=(to_text,)), replace_all=False)
    target.insert(tmp_path, ["id", "n"], overwrite=False)
    fixture.lake.sql(f"INSERT INTO {fixture.table} VALUES (2, 20)")
    assert target.publish({}) is None
    assert (fixture.rows(), fixture.types()["n"]) == ([(1, 10), (2, 20)], "bigint")
