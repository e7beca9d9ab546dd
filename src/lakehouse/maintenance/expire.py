"""Expires snapshots: new metadata without the old ones. No file is deleted here; `sweep` removes what nothing needs."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from lakehouse.core.metadata_file import metadata_log
from lakehouse.maintenance.layout import ended_at_ms
from lakehouse.maintenance.policy import Policy
from lakehouse.maintenance.snapshot_notes import carry_notes

#: How many earlier metadata files a table lists after an expiry; Iceberg's own default is 100.
_LISTED_METADATA = 10


def expirable(raw: Mapping[str, Any], policy: Policy, now: datetime, held: Iterable[str] = ()) -> set[int]:
    """Return the ids of the snapshots that may expire.

    A snapshot counts as old from the time when another one replaced it, not from its own: a reader may have begun right
    before. The current snapshots of the branches and tags of the table, and of the catalog (`held`), stay.
    """
    ends = ended_at_ms(raw)
    kept = {ref["snapshot-id"] for ref in raw.get("refs", {}).values()} | {int(snapshot) for snapshot in held}
    by_age = sorted(ends, key=lambda snapshot: ends[snapshot], reverse=True)
    oldest = policy.oldest_kept(now).timestamp() * 1000
    limit = max(policy.max_snapshots, 1) - 1 if policy.max_snapshots else len(by_age)
    always = max(policy.keep_snapshots, 1) - 1  # the current snapshot is not in the list
    return {
        snapshot
        for place, snapshot in enumerate(by_age)
        if snapshot not in kept and (place >= limit or (place >= always and ends[snapshot] < oldest))
    }


def without_snapshots(raw: Mapping[str, Any], gone: set[int], pointer: str, now: datetime) -> dict[str, Any]:
    """Return the metadata without some snapshots; `pointer` is the file that the metadata was read from."""
    new = copy.deepcopy(dict(raw))
    carry_notes(new, gone)
    new["snapshots"] = [snapshot for snapshot in new["snapshots"] if snapshot["snapshot-id"] not in gone]
    new["snapshot-log"] = _log_without(raw.get("snapshot-log", []), gone)
    for name in ("statistics", "partition-statistics"):
        if name in raw:
            new[name] = [statistics for statistics in raw[name] if statistics["snapshot-id"] not in gone]
    kept = {snapshot["snapshot-id"] for snapshot in new["snapshots"]}
    new["refs"] = {name: ref for name, ref in raw.get("refs", {}).items() if ref["snapshot-id"] in kept}
    new["metadata-log"] = metadata_log(raw, pointer, _LISTED_METADATA)
    new["last-updated-ms"] = max(int(now.timestamp() * 1000), raw["last-updated-ms"])
    return new


def _log_without(log: list[dict[str, Any]], gone: set[int]) -> list[dict[str, Any]]:
    """Return the log after its last removed entry: time travel across a gap would resolve to a wrong snapshot."""
    kept: list[dict[str, Any]] = []
    for entry in log:
        if entry["snapshot-id"] in gone:
            kept.clear()
        else:
            kept.append(entry)
    return kept
