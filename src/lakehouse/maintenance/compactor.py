"""Compacts a table and merges its manifests: in this process where that is cheap, else on Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from lakehouse.core.dataclass import dataclass
from lakehouse.core.metadata_file import load_metadata
from lakehouse.core.names import TableName
from lakehouse.core.quoting import spark_text
from lakehouse.maintenance import compact as compaction
from lakehouse.maintenance.layout import layout_of
from lakehouse.maintenance.policy import Policy
from lakehouse.maintenance.report import Action
from lakehouse.maintenance.sorting import SORT_OVERLAP, is_decayed, overlap, sort_columns
from lakehouse.tables.rewrite import FileRewriter, LoadedTable, Replacement, StaleReplacementError, too_many_manifests
from lakehouse.tables.rewrite_rows import Group, rewrite_groups

#: Attempts to plan a compaction when the files to replace have changed.
_PLANS = 3
#: Bytes of input that one commit of a compaction replaces, and so the work that a conflict wastes.
_BATCH_BYTES = 256 * 2**20

#: Runs a statement on a branch with Spark.
RunSpark = Callable[[str, str], None]


@dataclass(frozen=True)
class Compactor:
    """Has files and manifests of tables rewritten, where that is worth it."""

    rewriter: FileRewriter
    run_spark: RunSpark

    def compact(self, table: TableName, policy: Policy, dry_run: bool, sort_all: bool = False) -> list[Action]:
        """Merge small files of a table and apply its deletes; sort all of it if its order has decayed, or if `sort_all`."""
        if not self._may_need(table, policy):
            return []
        for _ in range(_PLANS):
            loaded = self.rewriter.load(table)
            plan, target = self._plan(loaded, policy, sort_all) if loaded else (compaction.CompactionPlan(), 0)
            if loaded is None or not plan:
                return []
            action = _planned(table, loaded, plan)
            if dry_run:
                return [action]
            try:
                if plan.needs_spark:
                    return [self._on_spark(table, loaded, plan, target, policy)]
                return [self._local(table, loaded, plan, action)]
            except StaleReplacementError:
                continue
        return [Action(str(table), "compact", "skipped", "other writers changed its files all the time")]

    def _plan(self, loaded: LoadedTable, policy: Policy, sort_all: bool) -> tuple[compaction.CompactionPlan, int]:
        """Return what to rewrite, and the size of files to aim at."""
        target = layout_of(loaded.raw, 0, policy.target_file_size).target
        plan = compaction.plan_compaction(loaded.table, loaded.files, target, policy.largest_local)
        if not policy.sort:
            return plan, target
        share = overlap(loaded.table, loaded.files, sort_columns(policy.sort, loaded.table))
        if sort_all or is_decayed(share, loaded.raw):
            reason = f"files overlap by {share or 0:.0%} in the order {policy.sort}"
            return compaction.whole_table(loaded.files, target, reason), target
        return compaction.with_reason(plan, f"the policy sorts by {policy.sort}"), target

    def rewrite_manifests(self, table: TableName, dry_run: bool, forced: bool = False) -> list[Action]:
        """Merge the manifests of a table, if there are many more than it needs."""
        loaded = self.rewriter.load(table)
        if loaded is None or loaded.raw["format-version"] != 2:
            return []
        count = len(loaded.files.manifests)
        if not too_many_manifests(loaded.files) and not (forced and count > 1):
            return []
        detail = f"{count} manifests are merged"
        if dry_run:
            return [Action(str(table), "rewrite_manifests", "planned", detail, "local")]
        nothing = Replacement(frozenset(), (), merge_manifests=True)
        if self.rewriter.commit(table, loaded, nothing, f"merge {count} manifests of {table}"):
            return [Action(str(table), "rewrite_manifests", "done", detail, "local")]
        return [Action(str(table), "rewrite_manifests", "skipped", "other writers changed the table all the time")]

    # ---- local and Spark -------------------------------------------------------------------------------------------

    def _local(self, table: TableName, loaded: LoadedTable, plan: compaction.CompactionPlan, action: Action) -> Action:
        """Rewrite the groups in this process, and commit them in batches: what is committed stays if a later one fails."""
        done = failed = 0
        for batch in _batches(plan.groups):
            replacement = rewrite_groups(loaded.table, loaded.files, batch)
            count = len(replacement.removed)
            try:
                committed = self.rewriter.commit(table, loaded, replacement, f"compact {count} files of {table}", {})
            except StaleReplacementError:
                if not done and len(plan.groups) == len(batch):
                    raise
                committed = False
            done, failed = (done + count, failed) if committed else (done, failed + count)
        if not done:
            return _with(action, "skipped", "other writers changed its files all the time")
        left = f"; {failed} files were changed by others meanwhile and stay" if failed else ""
        now = self.rewriter.load(table)
        after = len(now.files.data) if now else action.files_after
        return _with(action, "done", f"{done} files were rewritten{left}", after)

    def _on_spark(
        self, table: TableName, loaded: LoadedTable, plan: compaction.CompactionPlan, target: int, policy: Policy
    ) -> Action:
        """Let Spark rewrite the files on a branch, and apply the same replacement to the newest state of the table."""
        action = _planned(table, loaded, plan)

        def rewrite(catalog: str, branch: str) -> None:
            self.run_spark(_rewrite_statement(catalog, table, target, policy, loaded, plan.everything), branch)

        with self.rewriter.on_spark(table, loaded, rewrite) as (replacement, after):
            if not replacement.removed:
                return _with(action, "skipped", "Spark found nothing to rewrite")
            count = len(replacement.removed)
            notes = _sort_notes(after, policy) if plan.everything else {}
            if not self.rewriter.commit(
                table, loaded, replacement, f"compact {count} files of {table} on Spark", notes
            ):
                return _with(action, "skipped", "other writers changed its files all the time")
            return _with(action, "done", f"{count} files were rewritten", len(after.files.data))

    def _may_need(self, table: TableName, policy: Policy) -> bool:
        """Whether a table may need a compaction, as far as its metadata file states it."""
        pointer = self.rewriter.catalog.pointer(table)
        if pointer is None:
            return False
        layout = layout_of(load_metadata(pointer, self.rewriter.files), 0, policy.target_file_size)
        return layout.data_files > 1 or layout.delete_files > 0


def _planned(table: TableName, loaded: LoadedTable, plan: compaction.CompactionPlan) -> Action:
    before, why = len(loaded.files.data), f" ({plan.needs_spark})" if plan.needs_spark else ""
    return Action(
        table=str(table),
        action="compact",
        state="planned",
        detail=f"{plan.files} files become about {plan.files_after}{why}",
        engine="spark" if plan.needs_spark else "local",
        files_before=before,
        files_after=before - plan.files + plan.files_after,
        bytes=plan.bytes,
    )


def _batches(groups: Sequence[Group]) -> list[list[Group]]:
    """Return the groups in batches of one commit each."""
    batches: list[list[Group]] = []
    size = 0
    for group in groups:
        if not batches or size + group.bytes > _BATCH_BYTES:
            batches.append([])
            size = 0
        batches[-1].append(group)
        size += group.bytes
    return batches


def _sort_notes(sorted_table: LoadedTable, policy: Policy) -> dict[str, str]:
    """Return the note that states how well the files of a snapshot are sorted."""
    share = overlap(sorted_table.table, sorted_table.files, sort_columns(policy.sort, sorted_table.table))
    return {SORT_OVERLAP: f"{share or 0:.3f}"}


def _rewrite_statement(
    catalog: str, table: TableName, target: int, policy: Policy, loaded: LoadedTable, everything: bool
) -> str:
    options = {
        "target-file-size-bytes": str(target),
        "remove-dangling-deletes": "true",
        "partial-progress.enabled": "false",
    }
    if loaded.files.deletes:
        options["delete-file-threshold"] = "1"
    # By default Spark rewrites no fewer than five files; the plan may hold fewer.
    options |= {"rewrite-all": "true"} if everything else {"min-input-files": "2"}
    listed = ", ".join(f"{spark_text(name)}, {spark_text(value)}" for name, value in options.items())
    order = f", strategy => 'sort', sort_order => {spark_text(policy.sort)}" if policy.sort else ""
    return (
        f"CALL {catalog}.system.rewrite_data_files(table => {spark_text(str(table))}{order}, options => map({listed}))"
    )


def _with(action: Action, state: str, detail: str, files_after: int | None = None) -> Action:
    after = action.files_after if files_after is None else files_after
    return replace(action, state=state, detail=detail, files_after=after if state == "done" else action.files_before)
