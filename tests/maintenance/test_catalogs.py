"""Maintenance on every kind of catalog and in a bucket: the same rows, branches and tags whole, only garbage removed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import cache_only
from tests.support.catalog_bench import Bench, bench, served_beside
from tests.support.damaged_tables import FUTURE_DAYS, T, append, create, delete, maintainer
from tests.support.light_runs import pyiceberg
from tests.support.servers.nessie import nessie_server
from tests.support.servers.s3 import S3Server

from lakehouse.catalogs.nessie import NessieCatalog
from lakehouse.config.load import load_settings
from lakehouse.core.files import LOCAL
from lakehouse.core.names import TableName
from lakehouse.core.requests import MaintainRequest
from lakehouse.lake.assemble import assemble
from lakehouse.maintenance.maintain import Maintainer
from lakehouse.maintenance.policy import MaintenanceSettings
from lakehouse.storage.s3 import S3Settings
from lakehouse.storage.warehouse import WarehouseStore
from lakehouse.tables.fork import Committer

__all__ = ["bench", "nessie_server", "served_beside"]

TABLE = TableName("shop", "t")


def maintained(catalog: Any, folder: Path, days: float, s3: S3Settings) -> Maintainer:
    def no_spark(*call: object) -> None:
        raise AssertionError(f"this needs no Spark: {call}")

    own = catalog if hasattr(catalog, "warehouse") else catalog.overlay
    files = getattr(catalog, "files", LOCAL)
    (folder / "home" / "run").mkdir(parents=True, exist_ok=True)
    return Maintainer(
        catalog=catalog,
        files=files,
        formats=(),
        settings=MaintenanceSettings(keep_snapshots=1, delete_after_hours=0, undrop_days=10_000),
        committer=Committer(catalog, files, lambda branch, commit: catalog.publish(branch, commit), "ada"),
        store=WarehouseStore(s3),
        warehouse=own.warehouse,
        folder=folder / "home",
        run_spark=no_spark,
        run_hudi=no_spark,
        now=lambda: datetime.now(UTC) + timedelta(days=days),
    )


def test_maintenance_keeps_what_refs_need(bench: Bench, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    on_nessie = isinstance(bench.catalog, NessieCatalog)
    s3 = request.getfixturevalue("nessie_server").s3.settings if on_nessie else S3Settings()
    bench.make(str(TABLE), 0)
    for number in range(1, 6):
        bench.add(str(TABLE), number)
    bench.catalog.create_tag("v1")
    bench.catalog.create_branch("exp")
    bench.writer().load_table(str(TABLE)).delete("id = 0")
    compacted = maintained(bench.catalog, tmp_path, 0, s3).run(MaintainRequest((TABLE,), only=("compact",)))
    assert [action.state for action in compacted.actions] == ["done"]
    assert bench.ids(str(TABLE)) == [1, 2, 3, 4, 5] and bench.ids(str(TABLE), "exp") == [0, 1, 2, 3, 4, 5]
    late = maintained(bench.catalog, tmp_path, FUTURE_DAYS, s3).run(MaintainRequest())
    known = "others" if any("cannot list" in action.detail for action in late.actions) else "all"
    if known == "others":
        assert late.sweep.removed_files == 0 and late.sweep.skipped
    else:
        assert [action.action for action in late.actions] == ["expire"] and late.sweep.removed_files > 0
    assert bench.ids(str(TABLE)) == [1, 2, 3, 4, 5] and bench.ids(str(TABLE), "exp") == [0, 1, 2, 3, 4, 5]
    bench.catalog.create_branch("from_tag", "v1")
    assert bench.ids(str(TABLE), "from_tag") == [0, 1, 2, 3, 4, 5]
    bench.add(str(TABLE), 9)
    assert bench.ids(str(TABLE)) == [1, 2, 3, 4, 5, 9]


@pytest.mark.slow
def test_maintenance_in_a_bucket(s3_server: S3Server, home: Path) -> None:
    bucket = s3_server.make_bucket()
    settings = load_settings(
        {"home": home, "warehouse": f"s3://{bucket}/one"}, environ={**cache_only(), **s3_server.environment}
    )
    with assemble(settings) as lake:
        create(lake)
        for number in range(6):
            append(lake, [number])
        delete(lake, "id == 0")
        other = s3_server.put(f"s3://{bucket}/two/shop/sales/data/theirs.parquet", "x")
        orphan = s3_server.put(f"s3://{bucket}/one/shop/sales/data/orphan.parquet", "x")
        assert lake.maintain(T).actions[0].state == "done"
        late = maintainer(lake, FUTURE_DAYS, keep_snapshots=1, delete_after_hours=0)
        assert late.run(MaintainRequest()).sweep.removed_files > 5
        rows = pyiceberg(lake).load_table(T).scan().to_arrow()
        assert sorted(rows.column("id").to_pylist()) == [1, 2, 3, 4, 5]
        stored = {file.uri for file in late.store.files(f"s3://{bucket}")}
        assert other in stored and orphan not in stored and len(stored) < 8
