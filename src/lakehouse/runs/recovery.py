"""Recovery after runs: reconcile records with the catalog, resume runs, expire old branches and tags."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from lakehouse.core.catalog import Catalog
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BranchExistsError, RunBlockedError, RunConflictError
from lakehouse.core.refs import BranchOwner, Commit, InternalBranch, acting_author
from lakehouse.core.requests import RunRequest
from lakehouse.process.pids import current_process, has_ended
from lakehouse.runs.model import RunRecord
from lakehouse.runs.records import RunLog

#: The number of log entries that are searched for the revert of a run.
_SEARCHED_ENTRIES = 10_000


@dataclass(frozen=True)
class RecordedRuns:
    """The runs that created branches, by their records."""

    catalog: Catalog
    log: RunLog

    def of_branch(self, branch: str) -> RunRecord | None:
        """The run that created a branch; None if a user created it."""
        internal = InternalBranch.parse(branch)
        if internal is None or internal.kind != "run":
            return None
        return find_record(self.catalog, self.log, internal.id)

    def set_state(self, run: str, state: str, commit: str = "") -> None:
        """Record that the branch of a run was published or dropped."""
        self.log.save(replace(self.log.get(run), state=state, commit=commit))


def find_record(catalog: Catalog, log: RunLog, run: str) -> RunRecord | None:
    """The record of a run; published, if its process died between the publish and the record of it."""
    record = log.find(run)
    return reconcile(catalog, log, record) if record is not None else None


def reconcile(catalog: Catalog, log: RunLog, record: RunRecord) -> RunRecord:
    """A record that agrees with the catalog's log, which is written in the transaction of the publish."""
    if record.state not in ("killed", "failed", "kept"):
        return record
    entry = catalog.published_by(record.id)
    if entry is None:
        return record
    return log.save(replace(record, state="published", commit=entry.id, ended_at=record.ended_at or entry.at, error={}))


def is_done(catalog: Catalog, record: RunRecord) -> bool:
    """Whether a run need not be done again under its id; one that was reverted is to be, and its tag is dropped for it."""
    if record.state != "published" or catalog.published_by(record.id) is not None:
        return record.state in ("published", "nothing")
    # A catalog that was restored may lack the publish, too: only a revert says that it is undone.
    entries = catalog.log(limit=_SEARCHED_ENTRIES)
    is_reverted = any(entry.commit.kind == "revert" and entry.commit.run == record.id for entry in entries)
    if is_reverted:
        catalog.drop_tag(record.branch)
    return not is_reverted


def has_branch(catalog: Catalog, record: RunRecord) -> bool:
    """Whether a run's branch still exists."""
    return any(ref.name == record.branch for ref in catalog.branch_refs())


def resume_request(record: RunRecord) -> RunRequest:
    """The request that continues a run."""
    if record.state == "kept":
        raise RunBlockedError(
            f"Run {record.id} succeeded and was kept.", f"Publish it: lake branch merge {record.branch}"
        )
    return RunRequest(
        partitions=record.partitions,
        tables=record.only,
        light=record.light,
        accept_code=record.accept_code,
        id=record.id,
        author=acting_author() or record.author,
        message=record.message,
        resume=True,
    )


def expire(catalog: Catalog, log: RunLog, keep_days: int) -> list[str]:
    """Drop old branches of runs and ingests, and old tags of published runs; returns their names."""
    if not keep_days:
        return []
    oldest = (datetime.now(UTC) - timedelta(days=keep_days)).isoformat(timespec="milliseconds")
    dropped = []
    for ref in catalog.branch_refs():
        internal = InternalBranch.parse(ref.name)
        # Branches of maintenance had a name that users could choose; those without an owner stay.
        may_go = internal is not None and (internal.kind != "maintain" or ref.owner is not None)
        if internal and may_go and "" < ref.created_at < oldest and not _running(log, internal):
            catalog.drop_branch(ref.name)
            dropped.append(ref.name)
    for ref in catalog.tags():
        internal = InternalBranch.parse(ref.name)
        if internal and internal.kind == "run" and "" < ref.created_at < oldest:
            catalog.drop_tag(ref.name)
            dropped.append(ref.name)
    return dropped


def _running(log: RunLog, branch: InternalBranch) -> bool:
    record = log.find(branch.id) if branch.kind == "run" else None
    return record is not None and record.state == "running"


def release_branch(catalog: Catalog, branch: str, earlier: RunRecord | None) -> None:
    """Drop what an earlier attempt at a run left; RunConflictError if its process may still be at work.

    Args:
        earlier: the record of that attempt; None if this lake's home has none, as on another host.
    """
    ref = next((ref for ref in catalog.branch_refs() if ref.name == branch), None)
    if ref is None:
        return
    if ref.owner is not None and not _is_over(ref.owner, earlier):
        raise RunConflictError(
            f"Process {ref.owner.pid} on {ref.owner.host} works on {branch}.",
            f"If it has ended: lake branch drop {branch}",
        )
    catalog.drop_branch(branch)


def _is_over(owner: BranchOwner, earlier: RunRecord | None) -> bool:
    """Whether an owner is done with its branch: it is this process, its record says so, or it has ended on this host."""
    this = current_process()
    if owner == this:
        return True
    recorded = earlier is not None and (earlier.pid, earlier.process_started) == (owner.pid, owner.started)
    if recorded and earlier is not None and earlier.state != "running":
        return True
    return owner.host == this.host and has_ended(owner)


def create_branch(catalog: Catalog, branch: str, commit: Commit) -> None:
    """Create the branch of a run, owned by this process; RunConflictError if another one was first."""
    owned = current_process().sign(commit)
    try:
        catalog.create_branch(branch, commit=owned)
    except BranchExistsError:
        release_branch(catalog, branch, None)  # of an earlier attempt of this process
        catalog.create_branch(branch, commit=owned)
