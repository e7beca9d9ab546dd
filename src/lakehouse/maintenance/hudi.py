"""Maintains Hudi tables on Spark: merges log files, clusters small files, and cleans the files of old instants.

The timeline is never archived: history, and what ingests and runs have noted in commits, stay readable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import NotSupportedError
from lakehouse.core.format import TableFormat
from lakehouse.core.names import TableName
from lakehouse.core.quoting import spark_text
from lakehouse.core.requests import MaintainRequest
from lakehouse.core.tables import REPLACE, FileSlice, Snapshot
from lakehouse.formats.iceberg.references import normalized
from lakehouse.maintenance.compact import SMALL_SHARE, files_needed, is_worth
from lakehouse.maintenance.policy import Policy
from lakehouse.maintenance.report import Action
from lakehouse.storage.warehouse import WarehouseStore

#: Hudi's own default of `hoodie.parquet.max.file.size`.
DEFAULT_TARGET = 120 * 2**20
_TIMELINE = "/.hoodie/timeline/"
_INSTANT = re.compile(r"(\d{17})(_\d{17})?\.(?:(\w+)\.)?(\w+)")
#: Actions of writers. While one is pending, its files are not in any snapshot yet.
_WRITES = {"", "commit", "deltacommit", "replacecommit"}
#: A procedure must not clean or archive: maintenance does that by policy.
_NOTHING_ELSE = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}

#: Runs a call of a procedure for a table on Spark.
RunCall = Callable[[TableName, str], None]


@dataclass(frozen=True)
class HudiMaintainer:
    """Maintains the Hudi tables of one lake."""

    tables: TableFormat
    store: WarehouseStore
    run: RunCall
    now: Callable[[], datetime]

    def maintain(self, table: TableName, policy: Policy, request: MaintainRequest) -> list[Action]:
        """Do what a table needs, or say what would be done."""
        steps: dict[str, Callable[[TableName, Policy, bool], list[Action]]] = {
            "compact": self._compact,
            "expire": self._clean,
        }
        pending = self._pending(table)
        writer = next((instant for instant, action in pending.items() if action in _WRITES), "")
        if writer:
            reason = (
                f"the commit {writer} is not finished: a writer is at work, or was killed (the next write removes it)"
            )
            return [Action(str(table), "all", "skipped", reason)]
        return [
            action
            for name, step in steps.items()
            if request.does(name)
            for action in step(table, policy, request.dry_run)
        ]

    def _pending(self, table: TableName) -> dict[str, str]:
        """Return the instants that have begun and not ended, each with its action."""
        begun: dict[str, str] = {}
        ended: set[str] = set()
        for name in self._stored(table):
            match = _INSTANT.fullmatch(name.removeprefix(_TIMELINE[1:])) if name.startswith(_TIMELINE[1:]) else None
            if match and match[2]:
                ended.add(match[1])
            elif match:
                begun[match[1]] = begun.get(match[1]) or match[3] or ""
        return {instant: action for instant, action in begun.items() if instant not in ended}

    def _stored(self, table: TableName) -> dict[str, int]:
        """Return the files in the folder of a table with their sizes, by their paths in it."""
        place = normalized(self.tables.describe(table).location).rstrip("/") + "/"
        return {normalized(file.uri).removeprefix(place): file.size for file in self.store.files(place)}

    # ---- compaction and clustering ------------------------------------------------------------------------------

    def _compact(self, table: TableName, policy: Policy, dry_run: bool) -> list[Action]:
        actions = [self._merge_logs(table, dry_run), self._cluster(table, policy, dry_run)]
        return [action for action in actions if action is not None]

    def _merge_logs(self, table: TableName, dry_run: bool) -> Action | None:
        logged = [file_slice for file_slice in latest_slices(self.tables.file_slices(table)) if file_slice.log_files]
        count = sum(file_slice.log_files for file_slice in logged)
        if not count:
            return None
        files = count + len(logged)
        numbers = {"files_before": files, "files_after": len(logged), "bytes": total_bytes(logged)}
        detail = f"{count} log files are merged into {len(logged)} base files"
        if dry_run:
            return Action(str(table), "compact", "planned", detail, "spark", **numbers)
        options = {**_NOTHING_ELSE, "hoodie.compact.inline.max.delta.commits": "1"}
        self._execute("run_compaction", table, {"op": "scheduleAndExecute", "options": _listed(options)}, "compaction")
        left = sum(file_slice.log_files for file_slice in latest_slices(self.tables.file_slices(table)))
        if left >= count:
            return Action(str(table), "compact", "skipped", "Hudi found no log files to merge", "spark")
        return Action(str(table), "compact", "done", detail, "spark", **numbers)

    def _cluster(self, table: TableName, policy: Policy, dry_run: bool) -> Action | None:
        target = policy.target_file_size or DEFAULT_TARGET
        small = small_files(self.tables.file_slices(table), target)
        if not small:
            return None
        before = len(latest_slices(self.tables.file_slices(table)))
        files = [file_slice for group in small.values() for file_slice in group]
        after = sum(files_needed(total_bytes(group), target) for group in small.values())
        detail = f"{len(files)} files become about {after}"
        size = total_bytes(files)
        if dry_run:
            return Action(str(table), "cluster", "planned", detail, "spark", before, before - len(files) + after, size)
        known = {snapshot.id for snapshot in self.tables.history(table)}
        self._execute("run_clustering", table, _clustering(policy, target), "clustering")
        left = len(latest_slices(self.tables.file_slices(table)))
        # Others may have committed meanwhile, so only replacements count.
        done = [
            snapshot
            for snapshot in self.tables.history(table)
            if snapshot.id not in known and snapshot.operation == REPLACE
        ]
        if not done:
            return Action(str(table), "cluster", "skipped", "Hudi found no files to rewrite", "spark", before, before)
        if lost := sum((snapshot.rows_removed or 0) - (snapshot.rows_added or 0) for snapshot in done):
            detail = f"the new files have {lost} rows less than the old ones; restore them: lake rollback {table}"
            return Action(str(table), "cluster", "failed", detail, "spark", before, left, size)
        return Action(str(table), "cluster", "done", f"{len(files)} files were rewritten", "spark", before, left, size)

    def _execute(self, procedure: str, table: TableName, arguments: Mapping[str, str], action: str) -> None:
        """Run a procedure. A plan that a killed one left is executed first, so that its files are not left half written."""
        if action in self._pending(table).values():
            self.run(table, _call(procedure, table, {**arguments, "op": "execute"}))
        self.run(table, _call(procedure, table, arguments))

    # ---- cleaning -----------------------------------------------------------------------------------------------

    def _clean(self, table: TableName, policy: Policy, dry_run: bool) -> list[Action]:
        """Delete the files that only instants older than the policy keeps need."""
        history = self.tables.history(table)
        kept = kept_instants(history, policy, self.now())
        if kept == len(history):
            return []
        stored = self._stored(table)
        gone = _files_in(stored, unneeded_slices(self.tables.file_slices(table), history[-kept].id))
        if not gone:
            return []
        if self.tables.capabilities.sync:
            return [Action(str(table), "expire", "skipped", "a metastore registers it, so others may read any instant")]
        detail = f"{len(gone)} files that only instants before {history[-kept].id} need"
        size = sum(stored[path] for path in gone)
        if dry_run:
            return [Action(str(table), "expire", "planned", detail, "spark", len(gone), 0, size)]
        arguments: dict[str, str | int] = {"clean_policy": "KEEP_LATEST_COMMITS", "retain_commits": kept}
        self.run(table, _call("run_clean", table, arguments))
        left = len(_files_in(self._stored(table), unneeded_slices(self.tables.file_slices(table), history[-kept].id)))
        state = "done" if left < len(gone) else "skipped"
        snapshots = len(history) - kept if state == "done" else 0
        return [Action(str(table), "expire", state, detail, "spark", len(gone), left, size, snapshots)]


def latest_slices(slices: Sequence[FileSlice]) -> list[FileSlice]:
    """Return the file slices that the current snapshot reads."""
    return [file_slice for file_slice in slices if file_slice.is_latest]


def small_files(slices: Sequence[FileSlice], target: int) -> dict[str, list[FileSlice]]:
    """Return the small files of each partition where they are worth a rewrite. Hudi does not cluster slices with log files."""
    small: dict[str, list[FileSlice]] = {}
    for file_slice in latest_slices(slices):
        if not file_slice.log_files and file_slice.bytes < SMALL_SHARE * target:
            small.setdefault(file_slice.partition, []).append(file_slice)
    return {partition: group for partition, group in small.items() if is_worth(len(group), total_bytes(group))}


def kept_instants(history: Sequence[Snapshot], policy: Policy, now: datetime) -> int:
    """Return how many of the newest instants stay readable; an instant's age counts from the one that followed it."""
    oldest = policy.oldest_kept(now)
    young = 1 + sum(following.at >= oldest for following in history[1:])
    kept = max(young, policy.keep_snapshots, 1)
    return min(kept, policy.max_snapshots or kept, len(history))


def unneeded_slices(slices: Sequence[FileSlice], earliest: str) -> list[FileSlice]:
    """Return the slices that no instant from `earliest` on needs, as Hudi's cleaner decides.

    Of each file group it keeps one version before `earliest` as well. Of a group that was replaced it removes nothing until the
    replacement itself is older than `earliest`, then all versions.
    """
    newest_before: dict[str, str] = {}
    for file_slice in slices:
        if file_slice.instant < earliest:
            newest_before[file_slice.group] = max(file_slice.instant, newest_before.get(file_slice.group, ""))
    return [
        file_slice
        for file_slice in slices
        if (
            file_slice.replaced_at < earliest
            if file_slice.replaced_at
            else file_slice.instant < newest_before.get(file_slice.group, "")
        )
    ]


def _files_in(stored: Mapping[str, int], slices: Sequence[FileSlice]) -> list[str]:
    return [path for file_slice in slices for path in file_slice.files if path in stored]


def total_bytes(slices: Sequence[FileSlice]) -> int:
    """Return the bytes of file slices."""
    return sum(file_slice.bytes for file_slice in slices)


def _clustering(policy: Policy, target: int) -> dict[str, str]:
    """Return the arguments of `run_clustering`: files of the target size, in the order that the policy states."""
    strategy = "hoodie.clustering.plan.strategy"
    options = {
        **_NOTHING_ELSE,
        f"{strategy}.small.file.limit": str(int(SMALL_SHARE * target)),
        f"{strategy}.target.file.max.bytes": str(target),
        f"{strategy}.max.bytes.per.group": str(max(2 * 2**30, target)),
        f"{strategy}.max.num.groups": "100000",
        f"{strategy}.single.group.clustering.enabled": "false",
    }
    arguments = {"op": "scheduleAndExecute"}
    if policy.sort:
        zorder = re.fullmatch(r"\s*zorder\s*\((.*)\)\s*", policy.sort, re.IGNORECASE)
        columns = [column.strip() for column in (zorder[1] if zorder else policy.sort).split(",")]
        if not all(re.fullmatch(r"\w+", column) for column in columns):
            raise NotSupportedError(
                f"Hudi cannot sort by {policy.sort!r}.", "Name columns, or zorder(column, …): maintenance.sort"
            )
        arguments["order"] = ",".join(columns)
        options |= {"hoodie.layout.optimize.strategy": "z-order"} if zorder else {}
    return {**arguments, "options": _listed(options)}


def _listed(options: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in options.items())


def _call(procedure: str, table: TableName, arguments: Mapping[str, str | int]) -> str:
    listed = {"table": str(table), **arguments}
    parts = [f"{name} => {value if isinstance(value, int) else spark_text(value)}" for name, value in listed.items()]
    return f"CALL {procedure}({', '.join(parts)})"
