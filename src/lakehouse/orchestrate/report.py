"""The snapshot report as an asset: after the tables, one page on how they grew."""

# Dagster looks at the annotations of what it decorates, so they must not be texts here.

from collections.abc import Sequence
from typing import Any

import dagster as dg

from lakehouse.orchestrate.assets import asset_key
from lakehouse.orchestrate.resource import RESOURCE, LakeResource
from lakehouse.pipelines import Pipeline
from lakehouse.query.report import report_page


def snapshot_report(pipelines: Sequence[Pipeline]) -> dg.AssetsDefinition:
    """One asset below every table of every pipeline."""
    names = [table.name for pipeline in pipelines for table in pipeline.tables]

    @dg.asset(
        name="iceberg_snapshot_report",
        deps=[asset_key(name) for name in names],
        required_resource_keys={RESOURCE},
        group_name="report",
        kinds={"html"},
        description="Snapshots of every table with their growth, as one page.",
    )
    def make(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
        door: LakeResource = getattr(context.resources, RESOURCE)
        there = {str(info.name) for info in door.lake.tables()}
        reports = [door.lake.report(name) for name in names if name in there]
        file = door.lake.folder / "reports" / "snapshots.html"
        file.parent.mkdir(exist_ok=True)
        file.write_text(report_page(reports))
        metadata: dict[str, Any] = {"page": dg.MetadataValue.path(str(file)), "tables": len(reports)}
        metadata |= {report.table: report.rows_total for report in reports}
        return dg.MaterializeResult(metadata=metadata)

    return make
