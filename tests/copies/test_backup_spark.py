"""Backups of what only Spark writes: position deletes, deletion vectors, views and Hudi tables."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.support.small_lake import opened

from lakehouse.config.load import load_settings
from lakehouse.config.settings import Settings
from lakehouse.core.errors import TableError
from lakehouse.core.files import local_path
from lakehouse.core.names import TableName
from lakehouse.core.state import CatalogState, TableEntry
from lakehouse.lake import Lake
from lakehouse.lake.backend import open_backend
from lakehouse.lake.copies import restore_lake

pytestmark = pytest.mark.spark

DELETES = "'write.delete.mode' = 'merge-on-read', 'format-version'"


def test_deletes_and_hudi_tables_are_the_same_after_a_restore(
    shared_lake: Lake, shared_settings: Settings, namespace: str, tmp_path: Path
) -> None:
    for table, version in (("positions", 2), ("vectors", 3)):
        name = f"{namespace}.{table}"
        shared_lake.sql(f"create table {name} (id int, name string) tblproperties ({DELETES} = '{version}')")
        shared_lake.sql(f"insert into {name} select id, cast(id as string) from range(50)")
        shared_lake.sql(f"delete from {name} where id % 7 = 3")
    hudi = f"{namespace}.visits"
    shared_lake.sql(
        f"create table {hudi} (id int, page string, at bigint) using hudi tblproperties (primaryKey = 'id')"
    )
    shared_lake.sql(f"insert into {hudi} values (1, 'home', 1), (2, 'shop', 1)")
    expected = [
        sorted(shared_lake.sql(f"select * from {namespace}.{table}").rows()) for table in ("positions", "vectors")
    ]
    assert [len(rows) for rows in expected] == [43, 43]

    # A lake of these tables alone: its Iceberg tables are in another lake's warehouse, a Hudi table can be copied.
    shared = open_backend(shared_settings).catalog
    tables = [TableName(namespace, table) for table in ("positions", "vectors")]
    pointers = shared.pointers(tables)
    with opened(tmp_path / "lake") as small:
        state = CatalogState(tuple(TableEntry(table, str(pointers[table])) for table in tables), {namespace: {}})
        small.catalog.load_state(state)
        folder = small.home / "warehouse" / namespace / "visits"
        shutil.copytree(local_path(shared_lake.describe(hudi).location), folder)
        small.lake.backup(tmp_path / "backups")
    restore_lake(load_settings({"home": tmp_path / "own"}, folder=tmp_path, environ={}), tmp_path / "backups")
    with opened(tmp_path / "own") as own:
        names = [f"{namespace}.{table}" for table in ("positions", "vectors")]
        answers = [sorted(own.lake.sql(f"select * from {name}", engine="duckdb").rows()) for name in names]
        assert answers == expected
        assert sorted(own.lake.sql(f"select id, page from {hudi}", engine="duckdb").rows()) == [
            (1, "home"),
            (2, "shop"),
        ]
        assert not own.lake.verify(deep=True).damage
        base = next(folder.parent.parent.parent.parent.joinpath("own/warehouse", namespace, "visits").glob("*.parquet"))
        base.write_bytes(base.read_bytes()[:-20])
        assert {finding.kind for finding in own.lake.verify(deep=True).damage} >= {"corrupt"}
        base.unlink()
        assert {finding.kind for finding in own.lake.verify().damage} >= {"missing"}
        with pytest.raises(TableError, match="its timeline states 1"):
            own.lake.sql(f"select id from {hudi}", engine="duckdb")
