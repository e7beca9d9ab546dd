"""What runs leave behind: their records set right after a crash, their branches and tags until they expire."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from lakehouse.core.catalog import Catalog
from lakehouse.core.errors import RunBlockedError
from lakehouse.core.refs import RUN_PREFIX
from lakehouse.core.requests import RunRequest
from lakehouse.runs.model import RunRecord
from lakehouse.runs.records import RunLog

#: Branches that ingests are written on; one that was killed may have left its own.
_INGESTS = "ingest_"


def known(catalog: Catalog, log: RunLog, run: str) -> RunRecord | None:
    """The record of a run, set right if its process died after it had published and before it could say so."""
    record = log.find(run)
    return reconcile(catalog, log, record) if record is not None else None


def reconcile(catalog: Catalog, log: RunLog, record: RunRecord) -> RunRecord:
    """A record that agrees with the catalog's log, which is written in the moment of publishing."""
    if record.state not in ("killed", "failed", "kept"):
        return record
    entry = catalog.published_by(record.id)
    if entry is None:
        return record
    return log.save(replace(record, state="published", commit=entry.id, ended_at=record.ended_at or entry.at, error={}))


def has_branch(catalog: Catalog, record: RunRecord) -> bool:
    """Whether what a run left is still there."""
    return any(ref.name == record.branch for ref in catalog.branch_refs())


def asked_again(record: RunRecord) -> RunRequest:
    """What a run was asked for, to go on with it."""
    if record.state == "kept":
        raise RunBlockedError(
            f"The run {record.id} ended well and was kept.", f"Publish it: lake branch merge {record.branch}"
        )
    return RunRequest(
        partitions=record.partitions,
        tables=record.only,
        light=record.light,
        id=record.id,
        author=record.author,
        message=record.message,
        resume=True,
    )


def expire(catalog: Catalog, log: RunLog, keep_days: int) -> list[str]:
    """Drop the branches that runs and ingests left, and the tags of those that were published, when they are old."""
    if not keep_days:
        return []
    oldest = (datetime.now(UTC) - timedelta(days=keep_days)).isoformat(timespec="milliseconds")
    gone = []
    for ref in catalog.branch_refs():
        if ref.name.startswith((RUN_PREFIX, _INGESTS)) and "" < ref.created_at < oldest and not _running(log, ref.name):
            catalog.drop_branch(ref.name)
            gone.append(ref.name)
    for ref in catalog.tags():
        if ref.name.startswith(RUN_PREFIX) and "" < ref.created_at < oldest:
            catalog.drop_tag(ref.name)
            gone.append(ref.name)
    return gone


def _running(log: RunLog, branch: str) -> bool:
    record = log.find(branch.removeprefix(RUN_PREFIX))
    return record is not None and record.state == "running"
