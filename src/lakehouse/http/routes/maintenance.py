"""Maintenance of the lake from afar: health, maintain, verify."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, Field

from lakehouse.core.names import MAIN, TableName
from lakehouse.core.requests import MAINTENANCE_STEPS, MaintainRequest
from lakehouse.http.answers import plain
from lakehouse.http.registry import Routes
from lakehouse.http.routes.ingest import check_root
from lakehouse.http.service import CallContext

routes = Routes("maintenance")
Tables = Annotated[str, Query(description="Names of tables, with commas (default: all).", max_length=10_000)]
Deep = Annotated[bool, Query(description="Also read manifests and list files.")]


class MaintainBody(BaseModel):
    """What to maintain."""

    tables: list[str] = Field(
        default_factory=list, max_length=1000, description="Default: all that their policies enable."
    )
    dry_run: bool = Field(False, description="Report what would be done; change nothing.")
    only: list[str] = Field(
        default_factory=list,
        max_length=len(MAINTENANCE_STEPS),
        description=f"Some of the steps {', '.join(MAINTENANCE_STEPS)} (default: all).",
    )

    model_config = {"extra": "forbid", "json_schema_extra": {"example": {"dry_run": True}}}


class VerifyBody(BaseModel):
    """What to verify."""

    tables: list[str] = Field(default_factory=list, max_length=1000, description="Default: the whole lake.")
    deep: bool = Field(False, description="Also read all data.")
    against: str = Field(
        "", max_length=1000, description="A backup to compare with, below serve.roots (default: none)."
    )

    model_config = {"extra": "forbid", "json_schema_extra": {"example": {"deep": True}}}


@routes.operation()
def health(call: CallContext, tables: Tables = "", deep: Deep = False) -> dict[str, Any]:
    """The score of tables from 0 to 100 with reasons, the worst first."""
    lake = call.lake(MAIN)
    names = [call.table(name.strip()) for name in tables.split(",") if name.strip()]
    if deep:
        # It names the branches and tags that hold bytes.
        call.principal.check_everywhere("A deep look at health")
    if not names and call.principal.namespaces:
        names = [name for name in lake.table_names() if call.sees(name)]
        if not names:
            return {"tables": []}
    return {"tables": plain(lake.health(*names, deep=deep))}


@routes.operation(status_code=202)
def maintain(call: CallContext, body: MaintainBody) -> dict[str, Any]:
    """Compact tables, expire their snapshots and remove files that nothing needs, in a job. 202 with the job's address."""
    call.principal.check_change(MAIN)
    call.principal.check_everywhere("Maintenance")
    MaintainRequest(tuple(TableName.parse(name) for name in body.tables), body.dry_run, tuple(body.only))
    job = call.service.jobs.start("maintain", body.model_dump(), call.principal, MAIN)
    return {"job": job.shown(), "links": {"job": f"/jobs/{job.id}"}}


@routes.operation(status_code=202)
def verify(call: CallContext, body: VerifyBody) -> dict[str, Any]:
    """Check every file, branch, tag, log entry and run of the lake, in a job; nothing is changed. 202 with the job's address."""
    call.principal.check_everywhere("A verification")
    if body.against:
        check_root(body.against, call.service.settings.serve.roots)
    job = call.service.jobs.start("verify", body.model_dump(), call.principal, MAIN)
    return {"job": job.shown(), "links": {"job": f"/jobs/{job.id}"}}
