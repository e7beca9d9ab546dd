"""The Dagster code location: assets, checks, schedules and sensors of every pipeline. `dagster dev -m lakehouse.orchestrate.definitions`."""

# Dagster reads the annotations of the functions it decorates, so this module does not postpone their evaluation.

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import dagster as dg

from lakehouse.config.load import load_settings
from lakehouse.config.settings import Settings
from lakehouse.core.errors import LakeError
from lakehouse.ingest.files import discover
from lakehouse.lake.assemble import all_pipelines, assemble
from lakehouse.orchestrate.assets import (
    RESOURCE,
    LakeResource,
    dagster_name,
    pipeline_assets,
    snapshot_report,
    source_readers,
)
from lakehouse.orchestrate.dbt import find_project, manifest_of
from lakehouse.orchestrate.dbt_assets import dbt_models
from lakehouse.orchestrate.maintenance import health_checks, maintenance_job, maintenance_schedules
from lakehouse.orchestrate.outside_runs import runs_sensor
from lakehouse.pipelines import FilesTable, Hours, Months, Pipeline, Weeks

_DAILY, _HOURLY = "30 6 * * *", "0 * * * *"
#: Default schedules by the partitions of a pipeline: after the end of each; others daily.
_SCHEDULES = {type(None): _HOURLY, Hours: "10 * * * *", Weeks: "30 6 * * 1", Months: "0 7 5 * *"}


def build_definitions(settings: Settings) -> dg.Definitions:
    """Build the Dagster definitions of a lake. A module that cannot be loaded is logged, and the other pipelines are defined."""
    known = all_pipelines(settings)
    pipelines = list(known.values())
    for problem in getattr(known, "problems", {}).values():
        dg.get_dagster_logger("lakehouse").error(f"{problem.message} {problem.hint}")
    return dg.Definitions(
        assets=[
            *_pipeline_assets(pipelines),
            *_dbt_assets(settings),
            snapshot_report(pipelines),
        ],
        resources={RESOURCE: _lake_resource(settings)},
        # A step in a process of its own would load this code location again: seconds for each pipeline and each health check.
        executor=dg.in_process_executor,
        asset_checks=health_checks(pipelines),
        jobs=[*(_job(pipeline) for pipeline in pipelines), maintenance_job],
        schedules=[*(_schedule(pipeline) for pipeline in pipelines), *maintenance_schedules(settings.maintenance)],
        sensors=[
            runs_sensor(settings, pipelines),
            *(
                _folder_sensor(settings, pipeline, table)
                for pipeline in pipelines
                for table in pipeline.tables
                if isinstance(table, FilesTable)
            ),
        ],
    )


def _pipeline_assets(pipelines: list[Pipeline]) -> list[dg.AssetsDefinition]:
    """Define the assets of every pipeline; a source that several read is an asset of the first."""
    assets: list[dg.AssetsDefinition] = []
    known = {table.name for pipeline in pipelines for table in pipeline.tables}
    for pipeline in pipelines:
        assets.append(pipeline_assets(pipeline, known))
        known |= set(source_readers(pipeline))
    return assets


def _dbt_assets(settings: Settings) -> list[dg.AssetsDefinition]:
    """Define the models of the lake's dbt project."""
    project = find_project(settings)
    with assemble(settings) as lake:
        return [dbt_models(manifest_of(lake, project), project)]


def _lake_resource(settings: Settings) -> dg.ResourceDefinition:
    """Define a resource that is an open lake while a step runs."""

    @dg.resource(description="The lake of these settings.")
    def lake_resource(_: dg.InitResourceContext) -> Iterator[LakeResource]:
        with assemble(settings) as lake:
            yield LakeResource(lake)

    return lake_resource


def _job(pipeline: Pipeline) -> Any:
    return dg.define_asset_job(
        f"{dagster_name(pipeline.name)}_job",
        selection=dg.AssetSelection.groups(dagster_name(pipeline.name)),
        description=f"Run {pipeline.name} on what is new, as one transaction.",
    )


def _schedule(pipeline: Pipeline) -> dg.ScheduleDefinition:
    # No partition is given, so a run takes what is new or changed at the source, late corrections included.
    return dg.ScheduleDefinition(
        name=f"{dagster_name(pipeline.name)}_schedule",
        cron_schedule=_SCHEDULES.get(type(pipeline.partitions), _DAILY),
        target=dg.AssetSelection.groups(dagster_name(pipeline.name)),
        execution_timezone="UTC",
        description=f"Runs {pipeline.name} on what is new or changed, as one transaction.",
        default_status=dg.DefaultScheduleStatus.STOPPED,
    )


def _folder_sensor(settings: Settings, pipeline: Pipeline, table: FilesTable) -> dg.SensorDefinition:
    @dg.sensor(
        name=f"{table.name.replace('.', '_')}_folder",
        target=dg.AssetSelection.groups(dagster_name(pipeline.name)),
        minimum_interval_seconds=30,
        description=f"Runs {pipeline.name} when a file arrives.",
    )
    def check_folder(context: dg.SensorEvaluationContext) -> Iterator[Any]:
        folder = settings.sources.get(pipeline.name, {}).get(table.folder, "")
        if not folder or "://" in folder:
            yield dg.SkipReason(f"sources.{pipeline.name}.{table.folder} is not a local folder.")
            return
        try:
            files = [f"{file.name} {file.size}" for file in discover([folder])]
        except LakeError as exc:
            yield dg.SkipReason(exc.message)
            return
        # The same files give the same key, and Dagster starts one run per key.
        yield dg.RunRequest(run_key=sha256("\n".join(files).encode()).hexdigest())

    return check_folder


@dg.definitions
def defs() -> dg.Definitions:
    """The definitions of the lake of the working folder. Dagster calls it; importing this module opens no lake."""
    return build_definitions(load_settings())
