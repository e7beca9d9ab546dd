"""Assemble what maintains a lake, and the methods of a lake for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from lakehouse.core.names import TableName
from lakehouse.core.refs import RUN_PREFIX
from lakehouse.core.requests import MaintainRequest, QueryRequest
from lakehouse.core.result import Explain, ListedRows, Result
from lakehouse.core.tables import Column
from lakehouse.lake.tables import TableMethods

if TYPE_CHECKING:
    from lakehouse.core.catalog import Catalog
    from lakehouse.lake.backend import Backend
    from lakehouse.maintenance.health import TableHealth
    from lakehouse.maintenance.maintain import Maintainer
    from lakehouse.maintenance.report import MaintenanceReport
    from lakehouse.query.route import EngineRunner
    from lakehouse.runs.branches import RunBranches
    from lakehouse.runs.records import RunLog
    from lakehouse.versioning.refs import Refs

#: A run in one of these states may still publish its branch.
_MAY_PUBLISH = ("running", "kept")


class MaintenanceMethods(TableMethods):
    """What a lake does to keep its tables fast."""

    def _maintenance_result(self, sql: str) -> Result | None:
        """Run a call of a maintenance procedure as `maintain` does; None if the statement is another one."""
        from lakehouse.maintenance.statements import parse_call

        call = parse_call(sql)
        if call is None:
            return None
        maintainer = self._components.maintainer()
        return _as_result(self.maintain_tables(call.request(maintainer.policy, maintainer.now())))

    def health(self, *tables: str, deep: bool = False) -> list[TableHealth]:
        """The score of tables from 0 to 100 with reasons, the worst first.

        Args:
            tables: default: all tables.
            deep: also read manifests and list files: partitions, sort order, bytes by what holds them.
        """
        maintainer = self._components.maintainer()
        names = tuple(TableName.parse(name) for name in tables)
        for name in names:
            self._tables().format_of(name)
        found = maintainer.health().tables(names)
        return maintainer.deepened(found) if deep else found

    def maintain(
        self,
        *tables: str,
        dry_run: bool = False,
        only: Sequence[str] = (),
        progress: Callable[[str], None] = lambda text: None,
    ) -> MaintenanceReport:
        """Compact tables, expire their old snapshots, and remove files that nothing needs.

        Args:
            tables: default: all tables that their policies enable.
            dry_run: report what would be done; change nothing.
            only: some of the steps compact, rewrite_manifests, expire, remove_files (default: all).
            progress: called with each step.
        """
        names = tuple(TableName.parse(name) for name in tables)
        return self.maintain_tables(MaintainRequest(names, dry_run, tuple(only)), progress)

    def maintain_tables(
        self, request: MaintainRequest, progress: Callable[[str], None] = lambda text: None
    ) -> MaintenanceReport:
        """Run a typed request; `maintain` builds one."""
        return self._components.maintainer().run(request, progress)


def _as_result(report: MaintenanceReport) -> Result:
    """Return the actions of a maintenance as the rows of a statement."""
    names = {"action": "string", "state": "string", "files_before": "int", "files_after": "int", "bytes": "bigint"}
    names |= {"snapshots": "int", "detail": "string"}
    rows = [tuple(getattr(each, name) for name in names) for each in report.actions]
    columns = tuple(Column(name, kind) for name, kind in names.items())
    return Result(columns, ListedRows(list(names), rows), Explain("maintenance", "as lake maintain does it"))


def open_maintainer(backend: Backend, refs: Refs[RunBranches], runs: RunLog, spark: EngineRunner) -> Maintainer:
    """What maintains the tables of a lake's main branch."""
    from lakehouse.maintenance.commit import Committer
    from lakehouse.maintenance.maintain import Maintainer
    from lakehouse.storage.warehouse import WarehouseStore

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
        run_spark=lambda sql, branch: _run(spark, sql, branch),
        run_hudi=lambda table, sql: _run_hudi(spark, table, sql),
        writers_since=lambda: _oldest_run(runs),
        holders=lambda table: _holders(catalog, runs, table),
    )


def _run(spark: EngineRunner, sql: str, branch: str) -> None:
    spark.run(QueryRequest(sql, arrow=False, branch=branch), "maintenance")


def _run_hudi(spark: EngineRunner, table: TableName, sql: str) -> None:
    spark.run(QueryRequest(sql, arrow=False, maintains=str(table)), "maintenance")


def _oldest_run(runs: RunLog) -> datetime | None:
    """Return when the oldest run that is still at work began."""
    begun = [datetime.fromisoformat(each.started_at) for each in runs.all() if each.state == "running"]
    return min(begun, default=None)


def _holders(catalog: Catalog, runs: RunLog, table: TableName) -> list[str]:
    """Return the branches with changes to a table that somebody may still publish."""
    return [
        ref.name
        for ref in catalog.branch_refs()
        if _may_be_published(ref.name, runs) and any(each.table == table for each in catalog.changes(ref.name))
    ]


def _may_be_published(branch: str, runs: RunLog) -> bool:
    """Whether a publish of the branch would fail if maintenance changed its tables. Ingests and failed runs start anew."""
    if branch.startswith(("ingest_", "maintain_")):
        return False
    if not branch.startswith(RUN_PREFIX):
        return True
    record = runs.find(branch.removeprefix(RUN_PREFIX))
    return record is None or record.state in _MAY_PUBLISH
