"""The snapshot report as a Dagster asset: a page on the growth of every table."""

# Dagster reads the annotations of the functions it decorates, so this module does not postpone their evaluation.

from collections.abc import Sequence
from typing import Any

import dagster as dg

from lakehouse.orchestrate.assets import asset_key
from lakehouse.orchestrate.resource import RESOURCE, LakeResource
from lakehouse.pipelines import Pipeline
from lakehouse.tables.report import report_page


def snapshot_report(pipelines: Sequence[Pipeline]) -> dg.AssetsDefinition:
    """Define one asset downstream of every table of every pipeline."""
    names = [table.name for pipeline in pipelines for table in pipeline.tables]

    @dg.asset(
        name="iceberg_snapshot_report",
        deps=[asset_key(name) for name in names],
        required_resource_keys={RESOURCE},
        group_name="report",
        kinds={"html"},
        description="A page with the snapshots of every table and their growth.",
    )
    def write_report(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
        resource: LakeResource = getattr(context.resources, RESOURCE)
        existing = {str(info.name) for info in resource.lake.tables()}
        reports = [resource.lake.report(name) for name in names if name in existing]
        file = resource.lake.folder / "reports" / "snapshots.html"
        file.parent.mkdir(exist_ok=True)
        file.write_text(report_page(reports))
        metadata: dict[str, Any] = {"page": dg.MetadataValue.path(str(file)), "tables": len(reports)}
        metadata |= {report.table: report.rows_total for report in reports}
        return dg.MaterializeResult(metadata=metadata)

    return write_report
