"""Assemble what maintains a lake."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from lakehouse.core.names import TableName
from lakehouse.core.refs import InternalBranch
from lakehouse.core.requests import QueryRequest

if TYPE_CHECKING:
    from lakehouse.core.catalog import Catalog
    from lakehouse.lake.backend import Backend
    from lakehouse.maintenance.maintain import Maintainer
    from lakehouse.query.route import EngineRunner
    from lakehouse.runs.records import RunLog
    from lakehouse.versioning.branches import Refs

#: A run in one of these states may still publish its branch.
_MAY_PUBLISH = ("running", "kept")


def open_maintainer(backend: Backend, refs: Refs, runs: RunLog, spark: EngineRunner) -> Maintainer:
    """What maintains the tables of a lake's main branch."""
    from lakehouse.maintenance.maintain import Maintainer
    from lakehouse.storage.warehouse import WarehouseStore
    from lakehouse.tables.fork import Committer

    def run(request: QueryRequest) -> None:
        spark.run(request, "maintenance")

    catalog, settings = backend.catalog, backend.settings
    return Maintainer(
        catalog=catalog,
        files=backend.files,
        formats=list(backend.formats.values()),
        settings=settings.maintenance,
        committer=Committer(catalog, backend.files, refs.publisher.publish, refs.author),
        store=WarehouseStore(settings.s3),
        warehouse=backend.warehouse,
        folder=backend.home.folder,
        run_spark=lambda sql, branch: run(QueryRequest(sql, arrow=False, branch=branch)),
        run_hudi=lambda table, sql: run(QueryRequest(sql, arrow=False, maintains=str(table))),
        writers_since=lambda: _oldest_run(runs),
        holders=lambda table: _holders(catalog, runs, table),
    )


def _oldest_run(runs: RunLog) -> datetime | None:
    """Return when the oldest run that is still at work began."""
    begun = [datetime.fromisoformat(run.started_at) for run in runs.all() if run.state == "running"]
    return min(begun, default=None)


def _holders(catalog: Catalog, runs: RunLog, table: TableName) -> list[str]:
    """Return the branches with changes to a table that somebody may still publish."""
    return [
        ref.name
        for ref in catalog.branch_refs()
        if _may_be_published(ref.name, runs) and any(change.table == table for change in catalog.changes(ref.name))
    ]


def _may_be_published(branch: str, runs: RunLog) -> bool:
    """Whether a publish of the branch would fail if maintenance changed its tables. Ingests and failed runs start anew."""
    internal = InternalBranch.parse(branch)
    if internal is None:
        return True
    if internal.kind != "run":
        return False
    record = runs.find(internal.id)
    return record is None or record.state in _MAY_PUBLISH
