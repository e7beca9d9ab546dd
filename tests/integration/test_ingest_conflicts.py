"""`lake ingest` while somebody else writes: nothing of theirs is undone, nothing of ours is lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.desk import Desk

from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.config.settings import Settings
from lakehouse.core.names import TableName
from lakehouse.core.refs import Commit, Published
from lakehouse.core.requests import IngestRequest
from lakehouse.ingest.errors import CommitConflictError
from lakehouse.ingest.files import PlannedColumn
from lakehouse.ingest.hudi import HudiTarget
from lakehouse.ingest.schema import Evolution
from lakehouse.ingest.targets import Place
from lakehouse.lake import Lake

pytestmark = pytest.mark.spark


class Busy(SqlCatalog):
    """The lake's catalog, in which somebody writes a row to a table right before things are published."""

    def __init__(self, settings: Settings, lake: Lake, table: str, times: int) -> None:
        super().__init__(open_database(settings.home / "catalog.db"), f"file://{settings.home}/warehouse")
        self.lake, self.table, self.times = lake, table, times

    def publish(self, branch: str, commit: Commit | None = None, tag: str = "") -> Published:
        if self.times:
            self.times -= 1
            self.lake.sql(f"INSERT INTO {self.table} VALUES ('theirs', 1, 'x', 'x', current_timestamp())")
        return super().publish(branch, commit, tag)


@pytest.mark.parametrize("times", [1, 9], ids=["once", "again and again"])
def test_bad_rows_of_a_hudi_table_are_kept_though_others_write_there(
    desk: Desk, shared_settings: Settings, times: int
) -> None:
    desk.ingest("id,n\n1,10\n,5\n", "one.csv", key=("id",), format="hudi")
    rejected = f"{desk.table}__rejected"
    catalog = Busy(shared_settings, desk.lake, rejected, times)
    ingester = replace(desk.lake._components.ingester(""), catalog=catalog)
    wanted = IngestRequest((str(desk.file("two.csv", "id,n\n2,20\n,6\n")),), TableName.parse(desk.table))
    if times > 1:
        with pytest.raises(CommitConflictError, match="could not be kept"):
            ingester.run(wanted)
    else:
        ingester.run(wanted)
        ours = desk.lake.sql(f"SELECT count(*) FROM {rejected} WHERE file <> 'theirs'", engine="duckdb").rows()
        assert ours == [(2,)]
    assert desk.rows() == [(1, 10), (2, 20)]


def test_a_hudi_table_that_moved_is_not_written_anew_from_old_rows(
    desk: Desk, shared_settings: Settings, tmp_path: Path
) -> None:
    desk.ingest("id,n\n1,10\n", "one.csv", key=("id",), format="hudi")
    ingester, table = desk.lake._components.ingester(""), TableName.parse(desk.table)
    catalog = SqlCatalog(open_database(shared_settings.home / "catalog.db"), f"file://{shared_settings.home}/warehouse")
    info = desk.lake.describe(desk.table)
    target = HudiTarget(Place(ingester.tables, catalog, ingester.spark, ingester.duckdb, table, info, ""))
    to_text = PlannedColumn("n", "n", "string", recorded="bigint")
    target.open([to_text], (), IngestRequest((), table), Evolution(rewritten=(to_text,)), replace_all=False)
    target.insert(tmp_path, ["id", "n"], overwrite=False)
    desk.lake.sql(f"INSERT INTO {desk.table} VALUES (2, 20)")
    assert target.publish({}) is None
    assert (desk.rows(), desk.types()["n"]) == ([(1, 10), (2, 20)], "bigint")
