"""Maintains tables: compacts, merges manifests, expires snapshots, and removes files that nothing needs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from lakehouse.core.cancel import is_interrupt
from lakehouse.core.catalog import Catalog
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import LakeError, MaintenanceRunningError, NoSuchTableError, NotSupportedError
from lakehouse.core.files import Files
from lakehouse.core.format import TableFormat
from lakehouse.core.metadata_file import load_metadata
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.progress import report
from lakehouse.core.requests import MaintainRequest
from lakehouse.maintenance.compactor import Compactor, RunSpark
from lakehouse.maintenance.expire import expirable, without_snapshots
from lakehouse.maintenance.health import HealthCheck, TableHealth
from lakehouse.maintenance.hudi import HudiMaintainer, RunCall
from lakehouse.maintenance.inventory import Inventories
from lakehouse.maintenance.layout import utc_now
from lakehouse.maintenance.policy import MaintenanceSettings, Policy, policy_for, special_policies
from lakehouse.maintenance.report import Action, MaintenanceReport
from lakehouse.maintenance.statistics import StatisticsWriter
from lakehouse.maintenance.sweep import Sweeper, SweepReport
from lakehouse.maintenance.unnamed_files import UnnamedFiles
from lakehouse.process.files import try_locked
from lakehouse.storage.warehouse import WarehouseStore
from lakehouse.tables.fork import Committer, drop_abandoned
from lakehouse.tables.rewrite import FileRewriter

_ATTEMPTS = 5
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Maintainer:
    """Maintains the tables of one lake.

    Args:
        warehouse: the URI of the warehouse.
        folder: the lake's folder on this machine: locks are in `run`, the state of removals in `maintenance`.
        run_spark: runs a statement on a branch with Spark.
        run_hudi: runs a call of one of Hudi's procedures for a table with Spark.
        writers_since: returns when the oldest run that is still at work began, or None.
        holders: returns the branches with unpublished changes to a table.
    """

    catalog: Catalog
    files: Files
    formats: Sequence[TableFormat]
    settings: MaintenanceSettings
    committer: Committer
    store: WarehouseStore
    warehouse: str
    folder: Path
    run_spark: RunSpark
    run_hudi: RunCall
    writers_since: Callable[[], datetime | None] = lambda: None
    holders: Callable[[TableName], Sequence[str]] = lambda table: ()
    now: Callable[[], datetime] = utc_now
    inventories: Inventories = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inventories", Inventories(self.catalog, self.files, self.formats))

    def run(self, request: MaintainRequest, progress: Progress = lambda text: None) -> MaintenanceReport:
        """Do what the tables need, or say what would be done."""
        special_policies(self.settings)  # raises for an invalid policy, whichever tables are maintained
        names = self._names(request)
        with self._locked(request.dry_run):
            actions: list[Action] = []
            inputs = self._inputs() if request.does("expire") else set()
            for number, table in enumerate(names):
                report(number, len(names), "tables")
                progress(f"Maintaining {table}")
                actions += self._attempt(table, "all", partial(self._table, table, request, inputs))
            sweep = SweepReport()
            if request.does("remove_files"):
                progress("Looking for files that nothing needs")
                actions += self._forget(request)
                sweep = self.sweeper().sweep(request.dry_run)
            return MaintenanceReport(tuple(actions), sweep, request.dry_run)

    def policy(self, table: TableName) -> Policy:
        """Return the policy of a table."""
        return policy_for(self.settings, table)

    def health(self) -> HealthCheck:
        """Return what scores the tables."""
        unnamed = UnnamedFiles(self.store, self.files.read, self.catalog.reachable)
        return HealthCheck(self.catalog, self.files, self.settings, unnamed, self.formats, self.now)

    def deepened(self, tables: Sequence[TableHealth]) -> list[TableHealth]:
        """Return the health of tables with what manifests and listings add."""
        from lakehouse.maintenance.deep_health import deepen

        return deepen(tables, self.catalog, self.inventories, self.sweeper(), self.policy)

    def sweeper(self) -> Sweeper:
        """Return what finds and removes files that nothing needs."""
        policies = [policy_for(self.settings), *special_policies(self.settings)]
        # At least as long as orphans stay: otherwise the data of a log entry could be removed before its metadata file,
        # and a revert would restore a table without data.
        keep_days = max(max(policy.keep_days, policy.orphan_days) for policy in policies)
        return Sweeper(
            inventories=self.inventories,
            store=self.store,
            warehouse=self.warehouse,
            state_file=self.folder / "maintenance" / "files.json",
            since=(self.now() - timedelta(days=keep_days)).isoformat(timespec="milliseconds"),
            orphan_days=max(policy.orphan_days for policy in policies),
            delete_after_hours=self.settings.delete_after_hours,
            now=self.now,
            writers_since=self.writers_since,
        )

    def _names(self, request: MaintainRequest) -> list[TableName]:
        known = set(self.catalog.tables())
        hudi = self._hudi()
        known |= set(hudi.tables.tables()) if hudi else set()
        for table in request.tables:
            if table not in known:
                raise NoSuchTableError(str(table))
        if request.tables:
            return list(request.tables)
        return [table for table in sorted(known) if policy_for(self.settings, table).enabled]

    @contextmanager
    def _locked(self, dry_run: bool) -> Iterator[None]:
        """Hold the lock of maintenance. It only avoids double work: concurrent maintenance is safe."""
        if dry_run:
            yield
            return
        with try_locked(self.folder / "run" / "maintain.lock") as held:
            if not held:
                raise MaintenanceRunningError(
                    "Another `lake maintain` is at work on this lake.", "Run it again when the other one is done."
                )
            drop_abandoned(self.catalog, "maintain")
            yield

    # ---- one table ----------------------------------------------------------------------------------------------

    def _table(self, table: TableName, request: MaintainRequest, inputs: set[str]) -> list[Action]:
        policy = _with_request(policy_for(self.settings, table), request)
        hudi = self._hudi()
        if hudi and hudi.tables.has(table):
            return self._attempt(table, "all", lambda: hudi.maintain(table, policy, request))
        held_by = self.holders(table)
        if held_by:
            named = ", ".join(held_by[:3])
            reason = f"branch {named} has unpublished changes to it, which could then not be published"
            return [Action(str(table), "all", "skipped", f"{reason}: lake branch merge or drop it first")]
        actions: list[Action] = []
        compactor = Compactor(FileRewriter(self.catalog, self.files, self.committer, self.now), self.run_spark)
        statistics = StatisticsWriter(self.catalog, self.files, self.committer, self.run_spark)
        steps: dict[str, Callable[[], list[Action]]] = {
            "compact": lambda: compactor.compact(table, policy, request.dry_run, sort_all=bool(request.sort)),
            "rewrite_manifests": lambda: compactor.rewrite_manifests(table, request.dry_run, forced=request.forced),
            "statistics": lambda: statistics.write(table, request.dry_run) if policy.statistics else [],
            "expire": lambda: self._expire(table, policy, request.dry_run, inputs),
        }
        for name, step in steps.items():
            if request.does(name):
                actions += self._attempt(table, name, step)
        return actions

    def _attempt(self, table: TableName, name: str, step: Callable[[], list[Action]]) -> list[Action]:
        try:
            return step()
        except (LakeError, OSError) as exc:
            return [Action(str(table), name, "failed", f"{exc}")]
        except Exception as exc:
            # Damaged files raise anything, and the other tables need their turn.
            if is_interrupt(exc):
                raise
            return [Action(str(table), name, "failed", f"{type(exc).__name__}: {exc}")]

    def _hudi(self) -> HudiMaintainer | None:
        """Return what maintains Hudi tables; None if the lake has no place for them."""
        hudi = next((table_format for table_format in self.formats if table_format.name == "hudi"), None)
        return HudiMaintainer(hudi, self.store, self.run_hudi, self.now) if hudi else None

    def _expire(self, table: TableName, policy: Policy, dry_run: bool, inputs: set[str]) -> list[Action]:
        """Expire the old snapshots of a table, except those that another table was built from (`inputs`)."""
        try:
            references = self.catalog.reachable()
        except NotSupportedError as exc:
            return [Action(str(table), "expire", "skipped", str(exc))]
        for _ in range(_ATTEMPTS):
            pointer = self.catalog.pointer(table)
            if pointer is None:
                return []
            raw = load_metadata(pointer, self.files)
            gone = expirable(raw, policy, self.now(), self._held(raw, references) | inputs)
            if not gone:
                return []
            detail = f"{len(gone)} of {len(raw['snapshots'])} snapshots"
            if dry_run:
                return [Action(str(table), "expire", "planned", detail, snapshots=len(gone))]
            new = without_snapshots(raw, gone, pointer, self.now())
            if self.committer.commit(table, pointer, new, f"expire {len(gone)} snapshots of {table}"):
                return [Action(str(table), "expire", "done", detail, snapshots=len(gone))]
            references = self.catalog.reachable()
        return [Action(str(table), "expire", "skipped", "other writers changed the table all the time")]

    def _inputs(self) -> set[str]:
        """Return the snapshots from which other tables were last built: runs use them to find what changed since."""
        inputs: set[str] = set()
        for pointer in self.catalog.pointers(self.catalog.tables()).values():
            with suppress(LakeError, OSError, KeyError, TypeError, ValueError, AttributeError):  # of a damaged table
                snapshots = load_metadata(pointer, self.files).get("snapshots", []) if pointer else []
                summaries = [snapshot.get("summary", {}) for snapshot in snapshots]
                notes = [summary["lake.inputs"] for summary in summaries if "lake.inputs" in summary]
                inputs |= {str(value) for value in json.loads(notes[-1]).values()} if notes else set()
        return {snapshot for snapshot in inputs if snapshot.isdecimal()}

    def _held(self, raw: Mapping[str, Any], references: Sequence[Any]) -> set[str]:
        """Return the current snapshots of this table on branches and tags: `lake travel` finds them in main's metadata."""
        held: set[str] = set()
        for reference in references:
            if reference.by == MAIN or reference.by.startswith("log "):
                continue
            with suppress(LakeError, OSError):
                metadata = self.inventories.references.metadata(reference.pointer)
                if metadata.uuid == str(raw.get("table-uuid")) and metadata.current:
                    held.add(metadata.current)
        return held

    def _forget(self, request: MaintainRequest) -> list[Action]:
        """Forget dropped tables whose time for `undrop` is over."""
        if request.dry_run or request.tables:
            return []

        def before(table: TableName) -> str:
            days = policy_for(self.settings, table).undrop_days
            return (self.now() - timedelta(days=days)).isoformat()

        # The sweep must know their folders as this lake's own before nothing refers to them any more.
        self.sweeper().remember()
        return [
            Action(str(table), "forget", "done", "dropped longer ago than undrop_days: it cannot be restored any more")
            for table in self.catalog.forget_dropped(before)
        ]


def _with_request(policy: Policy, request: MaintainRequest) -> Policy:
    """Return the policy with what a statement asks for."""
    changed: dict[str, Any] = {}
    if request.keep_days is not None:
        changed["keep_days"] = request.keep_days
    if request.keep_snapshots is not None:
        changed["keep_snapshots"] = request.keep_snapshots
    if request.sort:
        changed["sort"] = request.sort
    return replace(policy, **changed)
