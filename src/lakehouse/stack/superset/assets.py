"""Dashboards as data, and the files of Superset's import format that describe them.

Every object has an identifier that follows from its name, so that an import replaces what an earlier one created and
touches nothing else.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any
from uuid import UUID, uuid5

from lakehouse.core.dataclass import dataclass

#: Identifiers of our objects are derived from it; another one would leave those of older versions behind.
_NAMESPACE = UUID("b7a3c2de-6f0e-4a55-9d0e-0a4f7a1c5e28")
_VERSION = "1.0.0"
DUCKDB_URI = "duckdb:///:memory:lakehouse"


@dataclass(frozen=True)
class Metric:
    """A named aggregate of a dataset."""

    name: str
    label: str
    expression: str
    number_format: str = ",d"


@dataclass(frozen=True)
class Dataset:
    """The rows of a statement, which Superset calls a virtual dataset."""

    name: str
    sql: str
    columns: Mapping[str, str]
    """The type of each column; what has the type DATE or TIMESTAMP is a time."""
    metrics: tuple[Metric, ...]
    time: str = ""
    """The column by which it is filtered in time."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What the pages call a column (default: its name)."""


@dataclass(frozen=True)
class Chart:
    """A picture or table of one dataset."""

    title: str
    dataset: Dataset
    kind: str
    """Superset's `viz_type`."""
    options: Mapping[str, Any]
    width: int
    """Of 12 columns."""
    description: str = ""


@dataclass(frozen=True)
class Filter:
    """A filter of a whole dashboard: by the values of a column, or by time without one."""

    title: str
    dataset: Dataset
    column: str = ""


@dataclass(frozen=True)
class Dashboard:
    """A page of charts in rows."""

    slug: str
    title: str
    tables: tuple[str, ...]
    """The tables of the lake that it needs."""
    rows: tuple[tuple[int, tuple[Chart, ...]], ...]
    """The height of each row, and its charts."""
    filters: tuple[Filter, ...] = ()

    @property
    def charts(self) -> list[Chart]:
        return [chart for _, charts in self.rows for chart in charts]


def bundle(dashboards: Iterable[Dashboard], duckdb: bool, trino_uri: str) -> dict[str, dict[str, Any]]:
    """The files of an import: connections, and the dashboards with their datasets and charts."""
    files: dict[str, dict[str, Any]] = {"metadata.yaml": {"version": _VERSION, "type": "assets"}}
    if duckdb:
        files["databases/lake.yaml"] = _database("Lake", DUCKDB_URI)
    if trino_uri:
        files["databases/lake_trino.yaml"] = _database("Lake (Trino)", trino_uri)
    for dashboard in dashboards:
        files[f"dashboards/{dashboard.slug}.yaml"] = _dashboard(dashboard)
        for chart in dashboard.charts:
            files[f"charts/{identifier('chart', chart.title)}.yaml"] = _chart(chart)
            dataset = chart.dataset
            files[f"datasets/lake/{identifier('dataset', dataset.name)}.yaml"] = _dataset(dataset)
    return files


def zipped(files: Mapping[str, Mapping[str, Any]]) -> bytes:
    """The files as an archive; JSON is YAML."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(f"lakehouse/{name}", json.dumps(content))
    return buffer.getvalue()


def identifier(kind: str, name: str) -> str:
    """The identifier of one of our objects in every Superset."""
    return str(uuid5(_NAMESPACE, f"{kind}/{name}"))


def _database(name: str, uri: str) -> dict[str, Any]:
    return {
        "database_name": name,
        "sqlalchemy_uri": uri,
        "uuid": identifier("database", name),
        "expose_in_sqllab": True,
        "allow_run_async": False,
        "allow_ctas": False,
        "allow_cvas": False,
        "allow_dml": False,
        "allow_csv_upload": False,
        "extra": {"allows_virtual_table_explore": True, "disable_data_preview": False, "allow_multi_catalog": True},
        "is_managed_externally": True,
        "version": _VERSION,
    }


def _dataset(dataset: Dataset) -> dict[str, Any]:
    times = {name for name, kind in dataset.columns.items() if kind in ("DATE", "TIMESTAMP")}
    return {
        "table_name": dataset.name,
        "sql": dataset.sql,
        "main_dttm_col": dataset.time or None,
        "schema": "main",  # where DuckDB looks for names without a schema; ours have one
        "catalog": None,
        "filter_select_enabled": True,
        "uuid": identifier("dataset", dataset.name),
        "database_uuid": identifier("database", "Lake"),
        "columns": [
            {
                "column_name": name,
                "verbose_name": dataset.labels.get(name),
                "type": kind,
                "is_dttm": name in times,
                "groupby": True,
                "filterable": True,
            }
            for name, kind in dataset.columns.items()
        ],
        "metrics": [
            {
                "metric_name": metric.name,
                "verbose_name": metric.label,
                "expression": metric.expression,
                "d3format": metric.number_format,
            }
            for metric in dataset.metrics
        ],
        "version": _VERSION,
    }


def _chart(chart: Chart) -> dict[str, Any]:
    return {
        "slice_name": chart.title,
        "description": chart.description or None,
        "viz_type": chart.kind,
        "params": {"viz_type": chart.kind, **chart.options},
        "uuid": identifier("chart", chart.title),
        "dataset_uuid": identifier("dataset", chart.dataset.name),
        "is_managed_externally": True,
        "version": _VERSION,
    }


def _dashboard(dashboard: Dashboard) -> dict[str, Any]:
    return {
        "dashboard_title": dashboard.title,
        "slug": dashboard.slug,
        "published": True,
        "uuid": identifier("dashboard", dashboard.slug),
        "position": _layout(dashboard),
        "metadata": {
            "native_filter_configuration": [_filter(dashboard, position) for position in range(len(dashboard.filters))],
            "cross_filters_enabled": True,
            "filter_bar_orientation": "HORIZONTAL",
            "refresh_frequency": 0,
            "color_scheme": "supersetColors",
        },
        "is_managed_externally": True,
        "version": _VERSION,
    }


def _layout(dashboard: Dashboard) -> dict[str, Any]:
    """The grid of a dashboard. The order of the parents is what Superset's pages expect."""
    rows = [f"ROW-{number}" for number, _ in enumerate(dashboard.rows)]
    layout: dict[str, Any] = {
        "DASHBOARD_VERSION_KEY": "v2",
        "ROOT_ID": {"id": "ROOT_ID", "type": "ROOT", "children": ["GRID_ID"]},
        "GRID_ID": {"id": "GRID_ID", "type": "GRID", "parents": ["ROOT_ID"], "children": rows},
        "HEADER_ID": {"id": "HEADER_ID", "type": "HEADER", "meta": {"text": dashboard.title}},
    }
    for row, (height, charts) in zip(rows, dashboard.rows, strict=True):
        parents = ["ROOT_ID", "GRID_ID"]
        identifiers = [identifier("chart", chart.title) for chart in charts]
        layout[row] = {
            "id": row,
            "type": "ROW",
            "parents": parents,
            "children": [f"CHART-{unique}" for unique in identifiers],
            "meta": {"background": "BACKGROUND_TRANSPARENT"},
        }
        for chart, unique in zip(charts, identifiers, strict=True):
            meta = {"uuid": unique, "chartId": 0, "sliceName": chart.title, "width": chart.width, "height": height}
            entry = {"id": f"CHART-{unique}", "type": "CHART", "parents": [*parents, row], "children": [], "meta": meta}
            layout[f"CHART-{unique}"] = entry
    return layout


def _filter(dashboard: Dashboard, position: int) -> dict[str, Any]:
    wanted = dashboard.filters[position]
    target = {"datasetUuid": identifier("dataset", wanted.dataset.name), "column": {"name": wanted.column}}
    return {
        "id": f"NATIVE_FILTER-{identifier('filter', f'{dashboard.slug}/{wanted.title}')}",
        "name": wanted.title,
        "type": "NATIVE_FILTER",
        "filterType": "filter_select" if wanted.column else "filter_time",
        "targets": [target] if wanted.column else [{}],
        "scope": {"rootPath": ["ROOT_ID"], "excluded": []},
        "cascadeParentIds": [],
        "defaultDataMask": {"extraFormData": {}, "filterState": {}, "ownState": {}},
        "controlValues": {"multiSelect": True, "enableEmptyFilter": False, "searchAllOptions": False}
        if wanted.column
        else {"enableEmptyFilter": False},
    }
