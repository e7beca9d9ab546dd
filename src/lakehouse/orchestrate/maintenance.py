"""Maintenance in Dagster: one job for all tables, its schedule, and a check of the health of each pipeline's tables."""

# Dagster reads the annotations of the functions it decorates, so this module does not postpone their evaluation.

from collections.abc import Sequence

import dagster as dg

from lakehouse.core.errors import LakeError
from lakehouse.maintenance.policy import MaintenanceSettings
from lakehouse.orchestrate.assets import RESOURCE, asset_key, dagster_name
from lakehouse.pipelines import Pipeline

#: Below this score, a check warns.
LOWEST_SCORE = 60


@dg.op(name="maintain_tables", required_resource_keys={RESOURCE})
def _maintain(context: dg.OpExecutionContext) -> None:
    """Maintain all tables as their policies say."""
    lake = getattr(context.resources, RESOURCE).lake
    report = lake.maintain(progress=context.log.info)
    for action in report.actions:
        context.log.info(f"{action.table}: {action.action} {action.state}, {action.detail}")
    context.log.info(f"{report.sweep.removed_files} files removed, {report.sweep.removed_bytes} bytes freed")
    if report.failed:
        raise dg.Failure(description="Maintenance of some tables failed; their messages are in the log.")


@dg.job(name="maintenance_job", description="lake maintain --all: compact, expire, remove files that nothing needs.")
def maintenance_job() -> None:
    """Maintain all tables."""
    _maintain()


def maintenance_schedules(settings: MaintenanceSettings) -> list[dg.ScheduleDefinition]:
    """Return the schedule of maintenance; none if maintenance.schedule is not set."""
    if not settings.schedule:
        return []
    return [
        dg.ScheduleDefinition(
            name="maintenance_schedule",
            cron_schedule=settings.schedule,
            job=maintenance_job,
            execution_timezone="UTC",
            description="Maintains every table, as maintenance.schedule says.",
            default_status=dg.DefaultScheduleStatus.RUNNING,
        )
    ]


def health_checks(pipelines: Sequence[Pipeline]) -> list[dg.AssetChecksDefinition]:
    """Return a check of each pipeline's tables: their score by metadata alone."""
    return [_health_check(pipeline) for pipeline in pipelines if pipeline.tables]


def _health_check(pipeline: Pipeline) -> dg.AssetChecksDefinition:
    keys = {table.name: asset_key(table.name) for table in pipeline.tables}
    description = f"The score of the table's files, by its metadata alone, as `lake health` shows it; below {LOWEST_SCORE} it warns."
    specs = [dg.AssetCheckSpec("health", asset=key, description=description) for key in keys.values()]

    # Dagster runs the checks of an asset with it: without `can_subset`, no single asset could be materialized.
    @dg.multi_asset_check(
        name=f"{dagster_name(pipeline.name)}_health", specs=specs, required_resource_keys={RESOURCE}, can_subset=True
    )
    def check(context: dg.AssetCheckExecutionContext):  # type: ignore[no-untyped-def] # Dagster reads the annotation
        lake = getattr(context.resources, RESOURCE).lake
        selected = {check.asset_key for check in context.selected_asset_check_keys}
        for name, key in keys.items():
            if key not in selected:
                continue
            try:
                health = lake.health(name)[0]
                score, text = health.score, "; ".join(reason.text for reason in health.reasons)
            except LakeError as exc:
                score, text = 100, str(exc)  # not built yet
            yield dg.AssetCheckResult(
                asset_key=key,
                check_name="health",
                passed=score >= LOWEST_SCORE,
                severity=dg.AssetCheckSeverity.WARN,
                metadata={"score": score, "reasons": text},
            )

    return check
