"""The snapshot report as a Dagster asset, materialized by the job of the code location."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pyarrow
import pytest
from pyiceberg.catalog import load_catalog

from lakehouse.config.load import load_settings
from lakehouse.config.settings import Settings
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble
from lakehouse.orchestrate.definitions import build_definitions

pytestmark = pytest.mark.slow

ASSET = dg.AssetKey("iceberg_snapshot_report")


@pytest.fixture
def settings(home: Path, tmp_path: Path) -> Settings:
    return load_settings({"home": home}, tmp_path, {})


def add_rows(lake: Lake, table: str, *sizes: int) -> None:
    """Append one snapshot for each size."""
    catalog = lake.refs.branches.catalog
    catalog.ensure_namespace(table.partition(".")[0])
    pyiceberg = load_catalog("lake", **catalog.pyiceberg_properties())
    created = pyiceberg.create_table(table, schema=pyarrow.schema([("n", pyarrow.int64())]))
    for size in sizes:
        created.append(pyarrow.table({"n": list(range(size))}))
    pyiceberg.close()


def materialize(settings: Settings) -> dg.AssetMaterialization:
    job = build_definitions(settings).resolve_implicit_global_asset_job_def()
    done = job.execute_in_process(
        asset_selection=[ASSET], run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    )
    assert done.success
    (event,) = done.get_asset_materialization_events()
    return event.step_materialization_data.materialization


def test_the_report_has_every_existing_table_of_a_pipeline(settings: Settings) -> None:
    with assemble(settings) as lake:
        add_rows(lake, "gold.daily_bars", 2, 3)
        add_rows(lake, "crm.leads", 4)
        add_rows(lake, "mine.notes", 1)  # of no pipeline
    metadata = materialize(settings).metadata
    assert metadata["tables"].value == 2
    assert (metadata["gold.daily_bars"].value, metadata["crm.leads"].value) == (5, 4)
    page = Path(str(metadata["page"].value)).read_text()
    for table, rows, snapshots in (("gold.daily_bars", 5, 2), ("crm.leads", 4, 1)):
        assert f'<section id="{table}">' in page
        assert f"{rows} rows, {snapshots} snapshots" in page
    assert page.count('class="total"') == 3, "a bar for each snapshot"
    assert "mine.notes" not in page


def test_the_report_of_an_empty_lake_has_no_tables(settings: Settings) -> None:
    metadata = materialize(settings).metadata
    assert metadata["tables"].value == 0
    assert "There is no table yet." in Path(str(metadata["page"].value)).read_text()


def test_the_report_is_downstream_of_every_table_of_every_pipeline(settings: Settings) -> None:
    graph = build_definitions(settings).get_repository_def().asset_graph
    upstream = {key.to_user_string() for key in graph.get(ASSET).parent_keys}
    assert upstream >= {
        "gold/daily_bars",
        "gold/fct_daily_trips",
        "gold/user_activity",
        "crm/leads",
        "bronze/minute_aggs",
    }
