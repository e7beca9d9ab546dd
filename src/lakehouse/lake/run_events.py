"""Report runs and ingests as events: turns records and reports into what `events` sends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lakehouse.core.errors import LakeError
from lakehouse.core.requests import IngestRequest, RunRequest
from lakehouse.events.emitter import Events
from lakehouse.events.lines import RotatingLines
from lakehouse.events.openlineage import Dataset, Work
from lakehouse.lake.interface import Progress
from lakehouse.pipelines.model import FilesTable, Pipeline, Table

if TYPE_CHECKING:
    from lakehouse.core.tables import TableInfo
    from lakehouse.ingest.report import IngestReport
    from lakehouse.runs.model import RunRecord

#: States of a run that built something or had nothing to do.
_SUCCEEDED = ("published", "kept", "nothing")
#: The names of `fresh` checks end so.
_FRESH = "_fresh"


class Observer:
    """Reports what a lake does."""

    def __init__(self, events: Events, tables: str, describe: Callable[[str], TableInfo]) -> None:
        """
        Args:
            tables: the namespace of the lake's tables in OpenLineage: the address of the warehouse.
            describe: describes a table of main.
        """
        self._events, self._namespace, self._describe = events, tables, describe

    @property
    def log(self) -> RotatingLines:
        """The lake's log."""
        return self._events.lines

    # ---- questions ----------------------------------------------------------------------------------------------

    def model_used(self, model: str, outcome: str, **facts: Any) -> None:
        """Log what a question cost at a model: requests, tokens and seconds; not what was asked."""
        level = "info" if outcome in ("proposed", "refused") else "warning"
        self._events.log("model_used", "", level, model=model, outcome=outcome, **facts)

    # ---- ingests ------------------------------------------------------------------------------------------------

    def ingest(self, request: IngestRequest, run: str, work: Callable[[], IngestReport]) -> IngestReport:
        """Do an ingest and report its start and its end."""
        job, table = f"ingest.{request.table}", str(request.table)
        inputs = [Dataset("file", source) for source in request.sources]
        begun = Work(job, run, inputs, [Dataset(self._namespace, table)])
        facts: dict[str, Any] = {"table": table, "branch": request.branch or "main"}
        self._events.lineage("START", begun)
        try:
            with self._events.span("lake.ingest", {"lake.run": run, "lake.table": table}):
                report = work()
        except BaseException as exc:
            kind, message = _failure(exc)
            self._events.lineage(kind, Work(job, run, begun.inputs, begun.outputs, error=message))
            self._events.log("ingest_failed", run, "error", **facts, error=message)
            raise
        output = self._dataset(table, report.snapshot, report.inserted + report.updated)
        files = [Dataset("file", name) for name in report.files] or inputs
        self._events.lineage("COMPLETE", Work(job, run, files, [output]))
        facts |= {"snapshot": report.snapshot, "files": len(report.files), "inserted": report.inserted}
        self._events.log("ingested", run, **facts, updated=report.updated, rejected=report.rejected)
        return report

    # ---- runs ---------------------------------------------------------------------------------------------------

    def run(
        self, pipeline: Pipeline, request: RunRequest, work: Callable[[Progress], RunRecord], progress: Progress
    ) -> RunRecord:
        """Do a run and report its start, its steps, its end and that of each table, and alert if it failed or a table is stale."""
        tables = pipeline.select(request.tables)
        job, run = pipeline.name, request.id
        outputs = [Dataset(self._namespace, table.name) for table in tables]
        begun = Work(job, run, self._inputs_of(pipeline, tables), outputs)
        self._events.lineage("START", begun)
        self._events.log("run_started", run, pipeline=job, partitions=list(request.partitions))
        try:
            with self._events.span("lake.run", {"lake.run": run, "lake.pipeline": job}):
                record = work(lambda text: self._step(run, text, progress))
        except BaseException as exc:
            kind, message = _failure(exc)
            self._events.lineage(kind, Work(job, run, begun.inputs, begun.outputs, error=message))
            self._events.log("run_failed", run, "error", pipeline=job, error=message)
            self._events.alert("run_failed", run=run, pipeline=job, message=message, hint=getattr(exc, "hint", ""))
            raise
        self._report_end(pipeline, record, begun)
        return record

    def _step(self, run: str, text: str, progress: Progress) -> None:
        self._events.log("run_step", run, text=text)
        progress(text)

    def _report_end(self, pipeline: Pipeline, record: RunRecord, begun: Work) -> None:
        written = {report.table: report for report in record.tables if not report.note and report.snapshot}
        outputs = []
        for table in pipeline.tables:
            if (report := written.get(table.name)) is None:
                continue
            output = self._dataset(table.name, report.snapshot, report.rows, is_on_main=record.state == "published")
            outputs.append(output)
            part = Work(
                f"{pipeline.name}.{table.name}",
                record.id,
                self._inputs_of(pipeline, [table], within=True),
                [output],
                parent=(pipeline.name, record.id),
            )
            self._events.lineage("START", part)
            self._events.lineage("COMPLETE", part)
        tags = {"state": record.state, "commit": record.commit, "branch": record.branch}
        end = "COMPLETE" if record.state in _SUCCEEDED else "FAIL"
        self._events.lineage(end, Work(pipeline.name, record.id, begun.inputs, outputs, tags=tags))
        self._events.log(
            "run_ended",
            record.id,
            pipeline=pipeline.name,
            state=record.state,
            rows=record.rows,
            rejected=record.rejected,
        )
        for outcome in record.outcomes:
            if not outcome.passed and outcome.name.endswith(_FRESH):
                facts = {"table": outcome.table, "check": outcome.name, "detail": outcome.detail}
                self._events.log("table_stale", record.id, "warning", pipeline=pipeline.name, **facts)
                self._events.alert("table_stale", run=record.id, pipeline=pipeline.name, **facts)

    def _inputs_of(
        self, pipeline: Pipeline, tables: Sequence[Table | FilesTable], within: bool = False
    ) -> list[Dataset]:
        """The inputs of tables.

        Args:
            within: also those that the pipeline builds itself.
        """
        built = set() if within else {table.name for table in pipeline.tables}
        datasets: dict[tuple[str, str], Dataset] = {}
        for table in tables:
            names = (
                [(self._namespace, name) for name in table.upstream if name not in built]
                if isinstance(table, Table)
                else []
            )
            sources = [source.name for source in table.sources] if isinstance(table, Table) else [table.folder]
            for namespace, name in (*names, *((f"source.{pipeline.name}", source) for source in sources)):
                datasets[(namespace, name)] = Dataset(namespace, name)
        return list(datasets.values())

    def _dataset(self, name: str, snapshot: str, rows: int, is_on_main: bool = True) -> Dataset:
        columns: list[tuple[str, str]] = []
        if is_on_main:
            # The schema is an extra: what was done is done, whether or not it can be read now.
            with suppress(LakeError, OSError):
                columns = [(column.name, column.type) for column in self._describe(name).columns]
        return Dataset(self._namespace, name, columns, snapshot, rows)


def _failure(exc: BaseException) -> tuple[str, str]:
    """The kind of event and the message for an error; Ctrl-C is an abort."""
    if isinstance(exc, KeyboardInterrupt):
        return "ABORT", "stopped by the user"
    message = exc.message if isinstance(exc, LakeError) else type(exc).__name__
    return "FAIL", message
