"""Keeps the notes in the summaries of snapshots that expire.

Ingests and runs store their state in the summaries of snapshots: which files a table has, how far a source was read, from
which inputs a table was built. They search a table's ancestors for it, so what an expired ancestor states is copied to the
oldest ancestor that stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

_PREFIX = "lake."
#: Lists of files that the table holds, separated by commas; a replacement of all rows starts a new list.
_LISTS = ("sha256", "objects")
#: A JSON object; of two values for a key, the newer one counts.
_MAPS = ("fingerprints", "codes")
#: The newest value counts.
_LATEST = ("inputs", "cursor", "fingerprint", "columns", "code")
_REPLACING_MODES = ("replace", "insert_overwrite")


def carry_notes(raw: dict[str, Any], gone: set[int]) -> None:
    """Copy the notes of the snapshots in `gone` to the oldest ancestor that stays, for each branch of the table."""
    by_id = {snapshot["snapshot-id"]: snapshot for snapshot in raw["snapshots"]}
    heads = {raw.get("current-snapshot-id"), *(ref["snapshot-id"] for ref in raw.get("refs", {}).values())}
    for head in sorted(head for head in heads if head in by_id):
        chain = list(_ancestors(by_id, head))
        # A tag may hold a snapshot that is older than some that expire, so a chain may have several gaps.
        for place, snapshot in enumerate(chain):
            following = chain[place + 1 :]
            if snapshot["snapshot-id"] not in gone and following and following[0]["snapshot-id"] in gone:
                _carry(snapshot, following)


def _ancestors(by_id: Mapping[int, dict[str, Any]], head: int) -> Iterator[dict[str, Any]]:
    current: dict[str, Any] | None = by_id[head]
    while current is not None:
        yield current
        current = by_id.get(current.get("parent-snapshot-id") or -1)


def _carry(into: dict[str, Any], older: list[dict[str, Any]]) -> None:
    """Add the notes of older snapshots, newest first, to a snapshot."""
    notes: dict[str, str] = into.setdefault("summary", {})
    summaries = [notes, *(snapshot.get("summary", {}) for snapshot in older)]
    for name in _LISTS:
        items = dict.fromkeys(item for summary in _until_replaced(summaries) for item in _items(summary, name))
        if items:
            notes[_PREFIX + name] = ",".join(items)
    for name in _MAPS:
        maps = [json.loads(summary[_PREFIX + name]) for summary in summaries if _PREFIX + name in summary]
        if maps:
            notes[_PREFIX + name] = json.dumps(
                {key: value for values in reversed(maps) for key, value in values.items()}
            )
    for name in _LATEST:
        latest = next((summary[_PREFIX + name] for summary in summaries if _PREFIX + name in summary), None)
        if latest is not None:
            notes[_PREFIX + name] = latest


def _until_replaced(summaries: list[dict[str, str]]) -> Iterator[dict[str, str]]:
    """Yield summaries, newest first, up to one that replaced all rows."""
    for summary in summaries:
        yield summary
        if summary.get(f"{_PREFIX}mode", "") in _REPLACING_MODES:
            return


def _items(notes: Mapping[str, str], name: str) -> list[str]:
    return [item for item in notes.get(_PREFIX + name, "").split(",") if item]
