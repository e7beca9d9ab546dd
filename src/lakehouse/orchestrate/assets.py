"""A pipeline as Dagster assets: one op that is one transaction, one asset for each table and source.

A run publishes all of its tables or none, so it is one op, and an asset is materialized only when its table is on main.
Dagster still chooses tables, partitions, time and retries.
"""

# Dagster reads the annotations of the functions it decorates, so this module does not postpone their evaluation.

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from lakehouse.core.errors import LakeError, Retryable
from lakehouse.core.requests import RunRequest
from lakehouse.lake import Lake
from lakehouse.pipelines import Days, FilesTable, Pipeline, Table
from lakehouse.pipelines.partitions import Partitions
from lakehouse.quality.model import Check, Outcome, Rule
from lakehouse.runs.model import RunRecord, TableReport
from lakehouse.tables.report import report_page

_PREVIEWED_ROWS = 5
#: A run is retried after errors that may pass: a server that does not answer, a table that others change.
_RETRIES, _RETRY_AFTER_S = 2, 5


#: The resource key that assets require.
RESOURCE = "lakehouse"


@dataclass(frozen=True)
class LakeResource:
    """An open lake, and the author of the commits that Dagster makes."""

    lake: Lake
    author: str = "dagster"


def asset_key(name: str) -> dg.AssetKey:
    """Return the asset key of a table: `silver.minute_aggs` is silver/minute_aggs."""
    return dg.AssetKey(name.split("."))


def partitions_of(partitions: Partitions | None) -> dg.PartitionsDefinition[Any] | None:
    """Return the Dagster partitions of a pipeline's days or months."""
    if partitions is None:
        return None
    if isinstance(partitions, Days):
        return dg.DailyPartitionsDefinition(start_date=partitions.start)
    return dg.MonthlyPartitionsDefinition(start_date=partitions.start, fmt="%Y-%m")


#: Options of a run that Dagster itself does not have.
_CONFIG = {
    "partitions": dg.Field(
        [str], default_value=[], description="Partitions to rebuild (default: what is new or changed)."
    ),
    "publish": dg.Field(
        bool, default_value=True, description="Publish to main (default: true); otherwise keep the branch."
    ),
    "light": dg.Field(bool, default_value=False, description="Run without Spark; tables that need Spark are skipped."),
    "message": dg.Field(str, default_value="", description="Commit message, shown by `lake log`."),
    "run_id": dg.Field(str, default_value="", description="Id of the run; a published run is not repeated."),
}


def pipeline_assets(pipeline: Pipeline) -> dg.AssetsDefinition:
    """Define one op for the whole pipeline, of which any tables can be selected."""

    @dg.multi_asset(
        name=pipeline.name,
        specs=[*_source_specs(pipeline), *(_table_spec(pipeline, table) for table in pipeline.tables)],
        check_specs=[spec for table in pipeline.tables for spec in _check_specs(table)],
        partitions_def=partitions_of(pipeline.partitions),
        # A backfill of many partitions is one run, hence one transaction; several at once replay on each other's results.
        backfill_policy=dg.BackfillPolicy.single_run() if pipeline.partitions else None,
        can_subset=True,
        required_resource_keys={RESOURCE},
        config_schema=_CONFIG,
        description=pipeline.description,
    )
    def run_pipeline(context: dg.AssetExecutionContext) -> Iterator[Any]:
        resource: LakeResource = getattr(context.resources, RESOURCE)
        config = context.op_execution_context.op_config
        selected = [table.name for table in pipeline.tables if asset_key(table.name) in context.selected_asset_keys]
        dagster_partitions = context.has_partition_key or context.has_partition_key_range
        partitions = tuple(context.partition_keys if dagster_partitions else config["partitions"])
        run_id = config["run_id"] or f"dagster_{context.run.run_id.replace('-', '')[:16]}"
        request = RunRequest(
            partitions=partitions,
            tables=tuple(selected),
            publish=config["publish"],
            light=config["light"],
            id=run_id,
            author=resource.author,
            message=config["message"],
        )
        try:
            record = resource.lake.run_pipeline(pipeline, request, context.log.info)
        except LakeError as exc:
            if isinstance(exc, Retryable):
                raise dg.RetryRequested(max_retries=_RETRIES, seconds_to_wait=_RETRY_AFTER_S) from exc
            yield from _check_results(pipeline, resource.lake.run_record(run_id).outcomes, context)
            raise dg.Failure(f"{exc.message} {exc.hint}") from exc
        yield from _materializations(pipeline, record, resource.lake, context)
        yield from _check_results(pipeline, record.outcomes, context)

    return run_pipeline


def _table_spec(pipeline: Pipeline, table: Table | FilesTable) -> dg.AssetSpec:
    inputs = table.inputs if isinstance(table, Table) else ()
    names = [source if isinstance(source, str) else source.name for source in inputs]
    return dg.AssetSpec(
        asset_key(table.name),
        deps=[asset_key(name) for name in names],
        description=table.description or None,
        group_name=pipeline.name,
        kinds={"spark", "iceberg"},
        skippable=True,  # a run may find nothing new
    )


def _source_specs(pipeline: Pipeline) -> list[dg.AssetSpec]:
    sources = {source.name for table in pipeline.tables if isinstance(table, Table) for source in table.sources}
    return [
        dg.AssetSpec(asset_key(name), group_name=pipeline.name, kinds={"file"}, skippable=True)
        for name in sorted(sources)
    ]


def _check_specs(table: Table | FilesTable) -> list[dg.AssetCheckSpec]:
    rules: list[Rule | Check] = [*(table.rules if isinstance(table, Table) else ()), *table.checks]
    return [
        dg.AssetCheckSpec(rule.name, asset=asset_key(table.name), blocking=rule.severity == "block") for rule in rules
    ]


def _materializations(
    pipeline: Pipeline, record: RunRecord, lake: Lake, context: dg.AssetExecutionContext
) -> Iterator[dg.MaterializeResult[Any]]:
    if record.state == "kept":
        context.log.info("The run was not published, so no asset is materialized.")
        return
    for report in record.tables:
        if report.note or not report.snapshot:
            continue
        table = pipeline.table(report.table)
        for source in table.sources if isinstance(table, Table) else ():
            if asset_key(source.name) in context.selected_asset_keys:
                yield dg.MaterializeResult(asset_key=asset_key(source.name), metadata=_source_metadata(lake, report))
        yield dg.MaterializeResult(asset_key=asset_key(report.table), metadata=_table_metadata(lake, record, report))


def _source_metadata(lake: Lake, report: TableReport) -> dict[str, Any]:
    notes = next((snapshot.notes for snapshot in lake.history(report.table) if snapshot.id == report.snapshot), {})
    return {name: notes[name] for name in ("source", "bytes", "sha256", "cursor") if name in notes}


def _table_metadata(lake: Lake, record: RunRecord, report: TableReport) -> dict[str, Any]:
    current = lake.describe(report.table).current
    preview = lake.travel(report.table, report.snapshot, limit=_PREVIEWED_ROWS)
    return {
        "snapshot": report.snapshot,
        "run": record.id,
        "dagster/row_count": (current.rows_total or 0) if current else 0,
        "rows_written": report.rows,
        "rows_rejected": report.rejected,
        "partitions": ", ".join(report.partitions),
        "seconds": report.seconds,
        "preview": dg.MetadataValue.md(_markdown([column.name for column in preview.columns], preview.rows())),
    }


def _markdown(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def _check_results(
    pipeline: Pipeline, outcomes: Sequence[Outcome], context: dg.AssetExecutionContext
) -> Iterator[dg.AssetCheckResult]:
    """Return one result for each rule and check; the outcomes of partitions that were built one by one are added up."""
    by_check: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        by_check.setdefault((outcome.table, outcome.name), []).append(outcome)
    selected = {(key.asset_key, key.name) for key in context.selected_asset_check_keys}
    for (table, name), same in by_check.items():
        if (asset_key(table), name) not in selected:
            continue
        severity = dg.AssetCheckSeverity.ERROR if same[0].severity == "block" else dg.AssetCheckSeverity.WARN
        yield dg.AssetCheckResult(
            asset_key=asset_key(table),
            check_name=name,
            passed=all(outcome.passed for outcome in same),
            severity=severity,
            description="; ".join(outcome.detail for outcome in same if outcome.detail) or None,
            metadata={"broken": sum(outcome.broken for outcome in same), "severity": same[0].severity},
        )


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
