"""A pipeline as Dagster's assets: one step that is one transaction, one asset for each table and source.

One step, because a run publishes all of its tables or none: Dagster is told that a table was materialised only when it
is on main. Dagster still chooses which tables and partitions, when, and what to do if it fails.
"""

# Dagster looks at the annotations of what it decorates, so they must not be texts here.

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg

from lakehouse.core.errors import LakeError, Retryable
from lakehouse.orchestrate.resource import RESOURCE, LakeResource
from lakehouse.pipelines import Days, FilesTable, Pipeline, Table
from lakehouse.pipelines.partitions import Partitions
from lakehouse.quality.model import Check, Outcome, Rule
from lakehouse.runs.model import RunRecord, TableReport

_PREVIEWED_ROWS = 5
#: For errors that may go away: a server that does not answer, others who change the same tables.
_RETRIES, _RETRY_AFTER_S = 2, 5


def asset_key(name: str) -> dg.AssetKey:
    """`silver.minute_aggs` as Dagster writes it."""
    return dg.AssetKey(name.split("."))


def partitions_of(partitions: Partitions | None) -> dg.PartitionsDefinition[Any] | None:
    """Our days and months as Dagster's."""
    if partitions is None:
        return None
    if isinstance(partitions, Days):
        return dg.DailyPartitionsDefinition(start_date=partitions.start)
    return dg.MonthlyPartitionsDefinition(start_date=partitions.start, fmt="%Y-%m")


#: What may be asked of a run beside Dagster's own partitions.
_CONFIG = {
    "partitions": dg.Field([str], default_value=[], description="Partitions to make anew; none: what is new."),
    "publish": dg.Field(bool, default_value=True, description="Otherwise the result stays on the run's branch."),
    "light": dg.Field(bool, default_value=False, description="Without Spark, as far as tables can be made so."),
    "message": dg.Field(str, default_value="", description="What the run is for; the log shows it."),
    "run_id": dg.Field(str, default_value="", description="A run that was published under this id is not repeated."),
}


def pipeline_assets(pipeline: Pipeline) -> dg.AssetsDefinition:
    """One step for the whole pipeline, of which any tables can be chosen."""

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
    def make(context: dg.AssetExecutionContext) -> Iterator[Any]:
        door: LakeResource = getattr(context.resources, RESOURCE)
        config = context.op_execution_context.op_config
        chosen = [table.name for table in pipeline.tables if asset_key(table.name) in context.selected_asset_keys]
        chosen_by_dagster = context.has_partition_key or context.has_partition_key_range
        partitions = tuple(context.partition_keys if chosen_by_dagster else config["partitions"])
        say = door.say or context.log.info
        run = config["run_id"] or f"dagster_{context.run.run_id.replace('-', '')[:16]}"
        try:
            record = door.lake.run(
                pipeline,
                *partitions,
                tables=tuple(chosen),
                publish=config["publish"],
                light=config["light"],
                id=run,
                author=door.author,
                message=config["message"],
                say=say,
            )
        except LakeError as exc:
            door.error = exc
            if isinstance(exc, Retryable):
                raise dg.RetryRequested(max_retries=_RETRIES, seconds_to_wait=_RETRY_AFTER_S) from exc
            yield from _checks(pipeline, door.lake.run_record(run).outcomes, context)
            raise dg.Failure(f"{exc.message} {exc.hint}") from exc
        except Exception as exc:
            door.error = exc  # a transformation's own; whoever runs in process is told it
            raise
        door.records.append(record)
        door.error = None  # an earlier try's
        yield from _materialised(pipeline, record, door, context)
        yield from _checks(pipeline, record.outcomes, context)

    return make


def _table_spec(pipeline: Pipeline, table: Table | FilesTable) -> dg.AssetSpec:
    inputs = table.inputs if isinstance(table, Table) else ()
    names = [each if isinstance(each, str) else each.name for each in inputs]
    return dg.AssetSpec(
        asset_key(table.name),
        deps=[asset_key(name) for name in names],
        description=table.description or None,
        group_name=pipeline.name,
        kinds={"spark", "iceberg"},
        skippable=True,  # there may be nothing new
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


def _materialised(
    pipeline: Pipeline, record: RunRecord, door: LakeResource, context: dg.AssetExecutionContext
) -> Iterator[dg.MaterializeResult[Any]]:
    if record.state == "kept":
        context.log.info("Not published, so nothing counts as materialised.")
        return
    for report in record.tables:
        if report.note or not report.snapshot:
            continue
        table = pipeline.table(report.table)
        for source in table.sources if isinstance(table, Table) else ():
            if asset_key(source.name) in context.selected_asset_keys:
                yield dg.MaterializeResult(asset_key=asset_key(source.name), metadata=_origin(door, report))
        yield dg.MaterializeResult(asset_key=asset_key(report.table), metadata=_metadata(door, record, report))


def _origin(door: LakeResource, report: TableReport) -> dict[str, Any]:
    notes = next((each.notes for each in door.lake.history(report.table) if each.id == report.snapshot), {})
    return {name: notes[name] for name in ("source", "bytes", "sha256", "cursor") if name in notes}


def _metadata(door: LakeResource, record: RunRecord, report: TableReport) -> dict[str, Any]:
    total = door.lake.describe(report.table).current
    preview = door.lake.travel(report.table, report.snapshot, limit=_PREVIEWED_ROWS)
    return {
        "snapshot": report.snapshot,
        "run": record.id,
        "dagster/row_count": (total.rows_total or 0) if total else 0,
        "rows_written": report.rows,
        "rows_rejected": report.rejected,
        "partitions": ", ".join(report.partitions),
        "seconds": report.seconds,
        "preview": dg.MetadataValue.md(_markdown([column.name for column in preview.columns], preview.rows())),
    }


def _markdown(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def _checks(
    pipeline: Pipeline, outcomes: Sequence[Outcome], context: dg.AssetExecutionContext
) -> Iterator[dg.AssetCheckResult]:
    """One result for each rule and check: partitions that were made one by one are added up."""
    found: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault((outcome.table, outcome.name), []).append(outcome)
    chosen = {(key.asset_key, key.name) for key in context.selected_asset_check_keys}
    for (table, name), same in found.items():
        if (asset_key(table), name) not in chosen:
            continue
        severity = dg.AssetCheckSeverity.ERROR if same[0].severity == "block" else dg.AssetCheckSeverity.WARN
        yield dg.AssetCheckResult(
            asset_key=asset_key(table),
            check_name=name,
            passed=all(outcome.passed for outcome in same),
            severity=severity,
            description="; ".join(outcome.told for outcome in same if outcome.told) or None,
            metadata={"broken": sum(outcome.broken for outcome in same), "severity": same[0].severity},
        )
