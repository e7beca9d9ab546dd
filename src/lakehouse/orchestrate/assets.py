"""A pipeline as Dagster assets: one op that is one transaction, one asset for each table and source.

A run publishes all of its tables or none, so it is one op, and an asset is materialized only when its table is on main.
Dagster still chooses tables, partitions, time and retries.
"""

# Dagster reads the annotations of the functions it decorates, so this module does not postpone their evaluation.

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import dagster as dg

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import LakeError, Retryable
from lakehouse.core.requests import RunRequest
from lakehouse.lake import Lake
from lakehouse.pipelines import Days, FilesTable, Hours, Keys, Months, Pipeline, Table, Weeks
from lakehouse.quality.model import Check, Outcome, Rule
from lakehouse.runs.failure import user_code_errors
from lakehouse.runs.model import RunRecord, TableReport
from lakehouse.tables.report import report_page

_PREVIEWED_ROWS = 5
#: A run is retried after errors that may pass: a server that does not answer, a table that others change.
_RETRIES, _RETRY_AFTER_S = 2, 5


#: The resource key that assets require.
RESOURCE = "lakehouse"
#: The author of the runs that Dagster starts.
AUTHOR = "dagster"


@dataclass(frozen=True)
class LakeResource:
    """An open lake, and the author of the commits that Dagster makes."""

    lake: Lake
    author: str = AUTHOR


def asset_key(name: str) -> dg.AssetKey:
    """Return the asset key of a table: `silver.minute_aggs` is silver/minute_aggs."""
    return dg.AssetKey(name.split("."))


def dagster_name(name: str) -> str:
    """Return a name that Dagster allows: letters, digits and _."""
    return re.sub(r"\W", "_", name, flags=re.ASCII)


def partitions_of(pipeline: Pipeline) -> dg.PartitionsDefinition[Any] | None:
    """Return the Dagster partitions of a pipeline; those of a class that Dagster does not know are added as they are built."""
    match pipeline.partitions:
        case None:
            return None
        case Hours(start=start):
            return dg.HourlyPartitionsDefinition(start_date=start, fmt="%Y-%m-%dT%H")
        case Days(start=start):
            return dg.DailyPartitionsDefinition(start_date=start)
        case Weeks(start=start):
            return dg.WeeklyPartitionsDefinition(start_date=start, day_offset=1)
        case Months(start=start):
            return dg.MonthlyPartitionsDefinition(start_date=start, fmt="%Y-%m")
        case Keys(keys=keys):
            return dg.StaticPartitionsDefinition(list(keys))
    return dg.DynamicPartitionsDefinition(name=dagster_name(pipeline.name))


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


def pipeline_assets(pipeline: Pipeline, foreign: Collection[str] = ()) -> dg.AssetsDefinition:
    """Define one op for the whole pipeline, of which any tables can be selected.

    Args:
        foreign: the names of sources that the assets of another pipeline include.
    """
    partitions_def = partitions_of(pipeline)

    @dg.multi_asset(
        name=dagster_name(pipeline.name),
        specs=[*_source_specs(pipeline, foreign), *(_table_spec(pipeline, table) for table in pipeline.tables)],
        check_specs=[spec for table in pipeline.tables for spec in _check_specs(table)],
        partitions_def=partitions_def,
        # A backfill of many partitions is one run, hence one transaction; several at once replay on each other's results.
        backfill_policy=dg.BackfillPolicy.single_run() if partitions_def else None,
        can_subset=True,
        required_resource_keys={RESOURCE},
        config_schema=_CONFIG,
        description=pipeline.description,
    )
    def run_pipeline(context: dg.AssetExecutionContext) -> Iterator[Any]:
        resource: LakeResource = getattr(context.resources, RESOURCE)
        config = context.op_execution_context.op_config
        selected = _tables_to_build(pipeline, context.selected_asset_keys)
        dagster_partitions = context.has_partition_key or context.has_partition_key_range
        # Dagster looks for the partition of each result's inputs, and fails in a run that has none.
        can_yield = dagster_partitions or partitions_def is None
        partitions = tuple(context.partition_keys if dagster_partitions else config["partitions"])
        run_id = config["run_id"] or f"dagster_{context.run.run_id.replace('-', '')[:16]}"
        request = RunRequest(
            partitions=partitions,
            # All of them are no request for each: a table that is up to date is left as it is.
            tables=tuple(selected) if len(selected) < len(pipeline.tables) else (),
            publish=config["publish"],
            light=config["light"],
            id=run_id,
            author=resource.author,
            message=config["message"],
        )
        try:
            with user_code_errors(pipeline.name, run_id):
                record = resource.lake.run_pipeline(pipeline, request, context.log.info)
        except LakeError as exc:
            if isinstance(exc, Retryable):
                raise dg.RetryRequested(max_retries=_RETRIES, seconds_to_wait=_RETRY_AFTER_S) from exc
            outcomes = resource.lake.run_record(run_id).outcomes
            yield from _reported(_check_results(pipeline, outcomes, context), context, can_yield)
            raise dg.Failure(f"{exc.message}\n{exc.hint}") from exc
        _report_unrequested(pipeline, record, partitions if dagster_partitions else (), context)
        if can_yield:
            yield from _materializations(pipeline, record, resource.lake, context)
        yield from _reported(_check_results(pipeline, record.outcomes, context), context, can_yield)

    return run_pipeline


def _table_spec(pipeline: Pipeline, table: Table | FilesTable) -> dg.AssetSpec:
    inputs = table.inputs if isinstance(table, Table) else ()
    names = [source if isinstance(source, str) else source.name for source in inputs]
    return dg.AssetSpec(
        asset_key(table.name),
        deps=[asset_key(name) for name in names],
        description=table.description or None,
        group_name=dagster_name(pipeline.name),
        kinds={"spark", "iceberg"},
        skippable=True,  # a run may find nothing new
    )


def _source_specs(pipeline: Pipeline, foreign: Collection[str]) -> list[dg.AssetSpec]:
    return [
        dg.AssetSpec(
            asset_key(name),
            description=f"Rows from outside the lake, read by {', '.join(readers)}.",
            group_name=dagster_name(pipeline.name),
            kinds={"file"},
            skippable=True,
        )
        for name, readers in sorted(source_readers(pipeline).items())
        if name not in foreign
    ]


def source_readers(pipeline: Pipeline) -> dict[str, list[str]]:
    """Return the sources of a pipeline by name, each with the tables that read it."""
    readers: dict[str, list[str]] = {}
    for table in pipeline.tables:
        for source in table.sources if isinstance(table, Table) else ():
            readers.setdefault(source.name, []).append(table.name)
    return readers


def check_names(table: Table | FilesTable) -> dict[str, str]:
    """Return Dagster's name of each rule and check of a table; `amount_at_least_-100` is amount_at_least__100."""
    names: dict[str, str] = {}
    for rule in _rules_and_checks(table):
        name, number = dagster_name(rule.name), 2
        while name in names.values():
            name, number = f"{dagster_name(rule.name)}_{number}", number + 1
        names[rule.name] = name
    return names


def _rules_and_checks(table: Table | FilesTable) -> list[Rule | Check]:
    return [*(table.rules if isinstance(table, Table) else ()), *table.checks]


def _check_specs(table: Table | FilesTable) -> list[dg.AssetCheckSpec]:
    names, key = check_names(table), asset_key(table.name)
    return [
        dg.AssetCheckSpec(names[rule.name], asset=key, blocking=rule.severity == "block", description=rule.name)
        for rule in _rules_and_checks(table)
    ]


def _tables_to_build(pipeline: Pipeline, selected: Collection[dg.AssetKey]) -> list[str]:
    """Return the selected tables, and those that read a selected source: a source is read only to build a table."""
    sources = source_readers(pipeline).items()
    reading = {table for source, readers in sources if asset_key(source) in selected for table in readers}
    return [table.name for table in pipeline.tables if table.name in reading or asset_key(table.name) in selected]


def _report_unrequested(
    pipeline: Pipeline, record: RunRecord, requested: Collection[str], context: dg.AssetExecutionContext
) -> None:
    """Report what has no result of its own: partitions that Dagster did not request, as in a scheduled run, and tables that it did not select."""
    if record.state != "published":
        return
    reports = []
    for report in record.tables:
        if asset_key(report.table) in context.selected_asset_keys:
            partitions = set(report.partitions) - set(requested)
            reports += [replace(report, partitions=tuple(partitions))] if partitions else []
        else:
            reports.append(report)
    add_partitions(pipeline, reports, context.instance)
    for event in partition_events(record.id, reports):
        context.log_event(event)


def add_partitions(pipeline: Pipeline, reports: Sequence[TableReport], instance: dg.DagsterInstance) -> None:
    """Add the partitions that tables have to a pipeline whose partitions Dagster cannot list."""
    definition = partitions_of(pipeline)
    if isinstance(definition, dg.DynamicPartitionsDefinition) and definition.name:
        instance.add_dynamic_partitions(
            definition.name, sorted({key for report in reports for key in report.partitions})
        )


def partition_events(run: str, reports: Sequence[TableReport]) -> list[dg.AssetMaterialization]:
    """Return a materialization for each partition that a run wrote, or for the whole table."""
    return [
        dg.AssetMaterialization(
            asset_key(report.table),
            partition=key,
            metadata={"run": run, "snapshot": report.snapshot, "rows_written": report.rows},
        )
        for report in reports
        for key in _keys(report)
        if report.snapshot and not report.note
    ]


def _keys(report: TableReport) -> Sequence[str | None]:
    """Return the partitions that a run wrote; None stands for a table without partitions."""
    return sorted(report.partitions) or [None]


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
        if asset_key(report.table) in context.selected_asset_keys:
            yield dg.MaterializeResult(
                asset_key=asset_key(report.table), metadata=_table_metadata(lake, record, report)
            )


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
    selected = {(key.asset_key, key.name) for key in context.selected_asset_check_keys}
    results = check_results(pipeline, outcomes)
    return (result for result in results if (result.asset_key, result.check_name) in selected)


def check_results(pipeline: Pipeline, outcomes: Sequence[Outcome]) -> Iterator[dg.AssetCheckResult]:
    """Return one result for each rule and check that the pipeline has; the outcomes of partitions that were built one by one are added up."""
    by_check: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        by_check.setdefault((outcome.table, outcome.name), []).append(outcome)
    names = {(table.name, rule): name for table in pipeline.tables for rule, name in check_names(table).items()}
    for (table, rule), same in by_check.items():
        name = names.get((table, rule))
        if name is None:
            continue  # a run of an earlier version of the pipeline
        severity = dg.AssetCheckSeverity.ERROR if same[0].severity == "block" else dg.AssetCheckSeverity.WARN
        yield dg.AssetCheckResult(
            asset_key=asset_key(table),
            check_name=name,
            passed=all(outcome.passed for outcome in same),
            severity=severity,
            description="; ".join(outcome.detail for outcome in same if outcome.detail) or None,
            metadata={"broken": sum(outcome.broken for outcome in same), "severity": same[0].severity},
        )


def _reported(
    results: Iterator[dg.AssetCheckResult], context: dg.AssetExecutionContext, can_yield: bool
) -> Iterator[dg.AssetCheckResult]:
    """Return the results of checks, or log them where they cannot be returned."""
    if can_yield:
        yield from results
        return
    for result in results:
        context.log_event(evaluation(result))


def evaluation(result: dg.AssetCheckResult) -> dg.AssetCheckEvaluation:
    """Return the event of a check's result, for where no asset is being materialized."""
    assert result.asset_key is not None and result.check_name is not None
    return dg.AssetCheckEvaluation(
        asset_key=result.asset_key,
        check_name=result.check_name,
        passed=result.passed,
        metadata=result.metadata,
        severity=result.severity,
        description=result.description,
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
