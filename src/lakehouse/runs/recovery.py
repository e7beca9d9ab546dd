"""Recovery after runs: reconcile records with the catalog, resume runs, expire old branches and tags."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from lakehouse.core.catalog import Catalog
from lakehouse.core.errors import RunBlockedError
from lakehouse.core.refs import RUN_PREFIX, acting_author
from lakehouse.core.requests import RunRequest
from lakehouse.runs.model import RunRecord
from lakehouse.runs.records import RunLog

#: The branches of ingests; an ingest that was killed leaves its branch.
_INGEST_PREFIX = "ingest_"


@dataclass(frozen=True)
class RecordedRuns:
    """The runs that created branches, by their records."""

    catalog: Catalog
    log: RunLog

    def of_branch(self, branch: str) -> RunRecord | None:
        """The run that created a branch; None if a user created it."""
        if not branch.startswith(RUN_PREFIX):
            return None
        return find_record(self.catalog, self.log, branch.removeprefix(RUN_PREFIX))

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
        if (
            ref.name.startswith((RUN_PREFIX, _INGEST_PREFIX))
            and "" < ref.created_at < oldest
            and not _running(log, ref.name)
        ):
            catalog.drop_branch(ref.name)
            dropped.append(ref.name)
    for ref in catalog.tags():
        if ref.name.startswith(RUN_PREFIX) and "" < ref.created_at < oldest:
            catalog.drop_tag(ref.name)
            dropped.append(ref.name)
    return dropped


def _running(log: RunLog, branch: str) -> bool:
    record = log.find(branch.removeprefix(RUN_PREFIX))
    return record is not None and record.state == "running"
