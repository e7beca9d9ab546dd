"""The files of an import: complete, consistent, and the same every time."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from lakehouse.stack.superset.assets import Dashboard, Dataset, bundle, zipped
from lakehouse.stack.superset.dashboards import DASHBOARDS, MARKET

DOCS = Path(__file__).parents[3] / "docs" / "pipelines"
TRINO = "trino://lake@127.0.0.1:8085/rest"


def of_kind(files: dict[str, dict[str, Any]], folder: str) -> dict[str, dict[str, Any]]:
    return {content["uuid"]: content for name, content in files.items() if name.startswith(f"{folder}/")}


def datasets() -> list[Dataset]:
    return list({chart.dataset.name: chart.dataset for dashboard in DASHBOARDS for chart in dashboard.charts}.values())


def test_two_imports_have_the_same_objects() -> None:
    first, second = bundle(DASHBOARDS, True, TRINO), bundle(DASHBOARDS, True, TRINO)
    assert first == second
    identifiers = [content["uuid"] for content in first.values() if "uuid" in content]
    assert len(identifiers) == len(set(identifiers)) > 20


def test_connections_are_those_that_work() -> None:
    def connections(**choice: Any) -> list[str]:
        return [database["sqlalchemy_uri"] for database in of_kind(bundle([], **choice), "databases").values()]

    assert connections(duckdb=True, trino_uri=TRINO) == ["duckdb:///:memory:lakehouse", TRINO]
    assert connections(duckdb=True, trino_uri="") == ["duckdb:///:memory:lakehouse"]
    assert connections(duckdb=False, trino_uri=TRINO) == [TRINO]


def test_connections_change_nothing() -> None:
    for database in of_kind(bundle([], True, TRINO), "databases").values():
        assert not any(database[right] for right in ("allow_dml", "allow_ctas", "allow_cvas", "allow_csv_upload"))


def test_every_reference_leads_to_an_object_of_the_same_import() -> None:
    files = bundle(DASHBOARDS, True, "")
    charts, tables = of_kind(files, "charts"), of_kind(files, "datasets")
    assert {chart["dataset_uuid"] for chart in charts.values()} == set(tables)
    assert {table["database_uuid"] for table in tables.values()} <= set(of_kind(files, "databases"))
    shown = set[str]()
    for page in of_kind(files, "dashboards").values():
        layout = page["position"]
        entries = [entry for entry in layout.values() if isinstance(entry, dict)]
        assert {child for entry in entries for child in entry.get("children", ())} <= set(layout)
        shown |= {entry["meta"]["uuid"] for entry in entries if entry["type"] == "CHART"}
        filters = page["metadata"]["native_filter_configuration"]
        assert {field["datasetUuid"] for filtered in filters for field in filtered["targets"] if field} <= set(tables)
    assert shown == set(charts)


@pytest.mark.parametrize("page", DASHBOARDS, ids=lambda page: page.slug)
def test_charts_use_columns_and_metrics_that_their_dataset_has(page: Dashboard) -> None:
    for chart in page.charts:
        options, columns = chart.options, set(chart.dataset.columns)
        metrics = {metric.name for metric in chart.dataset.metrics}
        used = {options.get("metric"), *options.get("metrics", ())} - {None}
        assert used <= metrics, chart.title
        named = {options.get("x_axis"), *options.get("groupby", ()), *options.get("all_columns", ())} - {None}
        named |= {json.loads(order)[0] for order in options.get("order_by_cols", ())}
        assert named <= columns, chart.title
        assert {options.get("x_axis_sort")} - {None} <= columns | used, chart.title
        assert set(options.get("column_config", ())) <= columns, chart.title
    assert all(sum(chart.width for chart in charts) == 12 for _, charts in page.rows)


@pytest.mark.parametrize("dataset", datasets(), ids=lambda dataset: dataset.name)
def test_columns_are_those_of_the_tables(dataset: Dataset) -> None:
    """As the page of the pipeline lists them; what a dataset computes is named after AS."""
    pages = "\n".join(page.read_text() for page in DOCS.glob("*.md"))
    known = set(re.findall(r" AS (\w+),? ", dataset.sql))
    for table in re.findall(r"lake\.(gold\.\w+)", dataset.sql):
        (listed,) = re.findall(rf"^(?:\| `{table}` \||\*\*{table}\*\*:)((?:[^\n]|\n(?!\n|\|))*)", pages, re.MULTILINE)
        known |= set(re.findall(r"`(\w+)`", listed))
    assert set(dataset.columns) <= known


def test_a_dashboard_names_the_tables_that_its_datasets_read() -> None:
    for page in DASHBOARDS:
        read = {table for chart in page.charts for table in re.findall(r"lake\.(gold\.\w+)", chart.dataset.sql)}
        assert read == set(page.tables)


def test_the_archive_has_the_files_below_one_folder() -> None:
    files = bundle([MARKET], True, "")
    with zipfile.ZipFile(io.BytesIO(zipped(files))) as archive:
        assert {name.removeprefix("lakehouse/") for name in archive.namelist()} == set(files)
        assert json.loads(archive.read("lakehouse/metadata.yaml")) == {"version": "1.0.0", "type": "assets"}
