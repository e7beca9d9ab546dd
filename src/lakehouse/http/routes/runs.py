"""Pipelines and runs: list, start, follow, cancel, resume."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path
from pydantic import BaseModel, Field

from lakehouse.core.names import MAIN, TableName
from lakehouse.core.refs import run_branch
from lakehouse.core.when import new_id
from lakehouse.http.answers import page, plain
from lakehouse.http.registry import PageSize, PageToken, Routes
from lakehouse.http.service import Call, CallContext
from lakehouse.pipelines import Pipeline
from lakehouse.pipelines.registry import by_name
from lakehouse.runs.model import RunRecord

routes = Routes("pipelines")
PipelineName = Annotated[str, Path(description="Name of the pipeline.", max_length=128)]
RunId = Annotated[str, Path(description="The id of a run, or a unique prefix.", max_length=128)]


class RunBody(BaseModel):
    """How to run a pipeline."""

    partitions: list[str] = Field(
        default_factory=list, max_length=10_000, description="Default: what is new or changed."
    )
    tables: list[str] = Field(default_factory=list, max_length=1000, description="Default: all tables.")
    publish: bool = Field(True, description="False keeps the branch and leaves main unchanged.")
    light: bool = Field(False, description="Build without Spark, for tables that can be built so.")
    id: str = Field("", max_length=100, pattern=r"^[a-z0-9_]*$", description="Makes the run idempotent.")
    message: str = Field("", max_length=1000)

    model_config = {"extra": "forbid", "json_schema_extra": {"example": {"partitions": ["2026-01-14"]}}}


@routes.operation()
def pipelines(call: CallContext) -> dict[str, Any]:
    """List the pipelines with their tables and the settings of their sources, and the modules that cannot be loaded."""
    known = call.service.lake.pipelines()
    visible = [pipeline for pipeline in known.values() if _sees(call, pipeline)]
    # They name files of the server and lines of its code.
    problems = getattr(known, "problems", {}) if call.principal.is_owner else {}
    return {
        "pipelines": [_shown(pipeline) for pipeline in visible],
        "problems": [{"module": module, **problem.as_dict()} for module, problem in problems.items()],
    }


@routes.operation(status_code=202)
def start_run(call: CallContext, pipeline: PipelineName, body: RunBody) -> dict[str, Any]:
    """Run a pipeline as a transaction, in a job: 202 with the job's address and the run's id."""
    declared = by_name(call.service.lake.pipelines(), pipeline)
    _check(call, declared, body.publish)
    # With an Idempotency-Key, a run that is started twice is one run.
    run = body.id or call.stable_id or new_id()
    request = {
        **body.model_dump(),
        "pipeline": declared.name,
        "id": run,
        "namespaces": sorted({table.table_name.namespace for table in declared.tables}),
    }
    job = call.service.jobs.start("run", request, call.principal, MAIN if body.publish else run_branch(run))
    return {"job": job.shown(), "run": run, "links": {"job": f"/jobs/{job.id}", "run": f"/runs/{run}"}}


@routes.operation()
def runs(call: CallContext, page_size: PageSize = 0, page_token: PageToken = "") -> dict[str, Any]:
    """List the runs, newest first."""
    records = [record for record in call.service.lake.runs() if _sees_run(call, record)]
    return page("runs", records, page_size, page_token)


@routes.operation()
def run_record(call: CallContext, run: RunId) -> Any:
    """The record of a run: state, tables, rows, outcomes of rules and checks."""
    return plain(_record(call, run))


@routes.operation()
def run_log(call: CallContext, run: RunId) -> dict[str, Any]:
    """The log of a run: its steps and, for a key without limits, what Spark logged meanwhile, also for others."""
    record = _record(call, run)
    lines = call.service.lake.run_log(record.id)
    return {"lines": plain([line for line in lines if line.source != "spark" or not call.principal.is_limited])}


@routes.operation(status_code=202)
def resume_run(call: CallContext, run: RunId) -> dict[str, Any]:
    """Continue a run that failed or was killed, in a job."""
    record = _record(call, run)
    _check(call, by_name(call.service.lake.pipelines(), record.pipeline), True)
    request = {"run": record.id, "pipeline": record.pipeline, "id": record.id}
    job = call.service.jobs.start("resume", request, call.principal, MAIN)
    return {"job": job.shown(), "run": record.id, "links": {"job": f"/jobs/{job.id}", "run": f"/runs/{record.id}"}}


def _record(call: Call, run: str) -> RunRecord:
    record = call.service.lake.run_record(run)
    if not _uses_run(call, record):
        call.principal.check_everywhere("A run")
    call.principal.check_tables(TableName.parse(table.table) for table in record.tables)
    return record


def _sees_run(call: Call, record: RunRecord) -> bool:
    return _uses_run(call, record) and all(call.sees(table.table) for table in record.tables)


def _uses_run(call: Call, record: RunRecord) -> bool:
    """Whether the run is of a branch of the caller: its own one, or main, which it publishes to.

    A run that names no table, such as one of dbt, may be of any namespace.
    """
    if call.principal.namespaces and not record.tables and record.author != call.principal.author:
        return False
    return call.principal.uses(MAIN) or call.principal.uses(record.branch)


def _sees(call: Call, pipeline: Pipeline) -> bool:
    return all(call.principal.sees(table.table_name) for table in pipeline.tables)


def _check(call: Call, pipeline: Pipeline, publish: bool) -> None:
    if publish:
        call.principal.check_change(MAIN)
    call.principal.check_tables(table.table_name for table in pipeline.tables)
    if not pipeline.tables or call.principal.branches:
        call.principal.check_everywhere("A run")


def _shown(pipeline: Pipeline) -> dict[str, Any]:
    partitions = pipeline.partitions
    return {
        "name": pipeline.name,
        "description": pipeline.description,
        "partitions": {
            "kind": type(partitions).__name__.lower(),
            "column": partitions.column,
            "start": partitions.start,
        }
        if partitions
        else None,
        "tables": [
            {
                "name": table.name,
                "made_from": [
                    source if isinstance(source, str) else source.name for source in getattr(table, "inputs", ())
                ],
                "key": list(getattr(table, "key", ())),
                "partitioned_by": getattr(table, "partition_by", ""),
                "description": table.description,
            }
            for table in pipeline.tables
        ],
        "settings": dict(pipeline.known_settings),
    }
