"""Runs that Dagster did not start: a sensor reports what they built, so that Dagster shows it as built."""

# Dagster reads the annotations of the functions it decorates, so this module does not postpone their evaluation.

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta

import dagster as dg

from lakehouse.config.settings import Settings
from lakehouse.core.dataclass import dataclass
from lakehouse.lake.assemble import assemble
from lakehouse.orchestrate.assets import AUTHOR, add_partitions, check_results, evaluation, partition_events
from lakehouse.pipelines import Pipeline, Table
from lakehouse.runs.model import RunRecord, TableReport

#: Runs that one evaluation of the sensor reports at most.
_MOST_RUNS = 100
#: The record of a run may appear a little later than that of one that ended after it.
_OVERLAP = timedelta(minutes=10)


@dataclass(frozen=True)
class Cursor:
    """How far runs were reported."""

    since: str = ""
    """Runs that ended before are reported."""
    seen: tuple[str, ...] = ()
    """Those that ended later and are reported, too."""

    def after(self, reported: Sequence[RunRecord]) -> "Cursor":
        """Return the cursor after some more runs."""
        if not reported:
            return self
        last = max(datetime.fromisoformat(record.ended_at) for record in reported)
        since = max((last - _OVERLAP).isoformat(timespec="seconds"), self.since)
        return Cursor(since, (*self.seen, *(record.id for record in reported)))

    def new(self, records: Sequence[RunRecord]) -> list[RunRecord]:
        """Return the published runs that others than Dagster made and that are not reported yet, oldest first."""
        new = [
            record
            for record in records
            if record.state == "published" and record.author != AUTHOR
            if record.ended_at and record.ended_at >= self.since and record.id not in self.seen
        ]
        return sorted(new, key=lambda record: (record.ended_at, record.id))[:_MOST_RUNS]

    def without_old(self, records: Sequence[RunRecord]) -> "Cursor":
        """Return the same cursor, without runs that `since` covers."""
        recent = {record.id for record in records if record.ended_at >= self.since}
        return replace(self, seen=tuple(run for run in self.seen if run in recent))


def _source_reports(pipeline: Pipeline, reports: Sequence[TableReport]) -> list[TableReport]:
    """Return what the sources of tables gave, as if they were tables: Dagster shows a source as an asset, too."""
    tables = [(report, pipeline.table(report.table)) for report in reports]
    return [
        replace(report, table=source.name)
        for report, table in tables
        for source in (table.sources if isinstance(table, Table) else ())
    ]


def runs_sensor(settings: Settings, pipelines: Sequence[Pipeline]) -> dg.SensorDefinition:
    """Define the sensor. It starts no run, so it is on by default."""
    by_name = {pipeline.name: pipeline for pipeline in pipelines}

    @dg.sensor(
        name="lake_runs",
        minimum_interval_seconds=10,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Shows what `lake run` and Python built, partition by partition, with the results of rules and checks.",
    )
    def report_runs(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        cursor = Cursor(**json.loads(context.cursor)) if context.cursor else Cursor()
        cursor = replace(cursor, seen=tuple(cursor.seen))
        with assemble(settings) as lake:
            records = lake.runs()
        new = cursor.new(records)
        events: list[dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation] = []
        for record in new:
            pipeline = by_name.get(record.pipeline)
            if pipeline is None:
                continue
            declared = {table.name for table in pipeline.tables}
            reports = [report for report in record.tables if report.table in declared]
            add_partitions(pipeline, reports, context.instance)
            events += partition_events(record.id, [*reports, *_source_reports(pipeline, reports)])
            events += [evaluation(result) for result in check_results(pipeline, record.outcomes)]
        cursor = cursor.after(new).without_old(records)
        return dg.SensorResult(asset_events=events, cursor=json.dumps(asdict(cursor)))

    return report_runs
