"""Branches of a lake, with the runs that created them: a run's branch is merged and dropped together with its record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakehouse.core.authorship import acting_author
from lakehouse.core.errors import RunBlockedError, RunConflictError
from lakehouse.core.refs import RUN_PREFIX, Commit, Published, Ref
from lakehouse.runs import recovery
from lakehouse.runs.model import RunRecord
from lakehouse.runs.records import RunLog
from lakehouse.versioning.branches import Branches


@dataclass(frozen=True, kw_only=True)
class RunBranches(Branches):
    """The branches and tags of a lake, with the runs that created them."""

    runs: RunLog

    def list(self) -> Sequence[tuple[Ref, RunRecord | None]]:
        """Every branch except main, with the run that created it, if one did."""
        return [(ref, self._run(ref.name)) for ref in self.catalog.branch_refs()]

    def drop(self, name: str) -> None:
        """Drop a branch and everything on it that was not published; the record of its run stays."""
        record = self._run(name)
        if record is not None and record.state == "running":
            raise RunBlockedError(f"Run {record.id} is still running.", "Stop it first.")
        super().drop(name)
        if record is not None and record.state == "kept":
            self.runs.save(replace(record, state="dropped"))

    def merge(self, name: str, message: str = "") -> Published:
        """Publish a branch to main: all its tables at once, or none if any of them has changed there."""
        record = self._run(name)
        return super().merge(name, message) if record is None else self._merge_run(record, message)

    def _merge_run(self, record: RunRecord, message: str) -> Published:
        if record.state != "kept":
            raise RunBlockedError(
                f"Run {record.id} is {record.state}: only a run that succeeded and was kept can be published.",
                f"Inspect it with: lake runs show {record.id}",
            )
        commit = Commit(
            "merge",
            acting_author() or record.author or self.author,
            message or record.message,
            record.id,
            record.pipeline,
        )
        done = self.publisher.publish(record.branch, commit, tag=record.branch)
        if not done:
            raise RunConflictError(
                f"Tables of run {record.id} have changed on main since: {', '.join(map(str, done.conflicts))}.",
                "Run the pipeline again on their current state.",
            )
        self.runs.save(replace(record, state="published", commit=done.entry))
        return done

    def _run(self, branch: str) -> RunRecord | None:
        branch = branch.lower()
        if not branch.startswith(RUN_PREFIX):
            return None
        return recovery.find_record(self.catalog, self.runs, branch.removeprefix(RUN_PREFIX))
