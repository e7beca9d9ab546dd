"""Keeps what snapshots remember when they expire.

Ingests and runs store their state in the summaries of snapshots: which files a table has, how far a source was read, from
which inputs a table was built. They search a table's ancestors for it, so what an expired ancestor states is copied to the
oldest ancestor that stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

_PREFIX = "lake."
#: Lists of files that the table holds, separated by commas; a replace of all rows begins them anew.
_LISTS = ("sha256", "objects")
#: A JSON object; of two values for a key, the newer one counts.
_MAPS = ("fingerprints",)
#: The newest value counts.
_LATEST = ("inputs", "cursor", "fingerprint", "columns")
_BEGINS_ANEW = ("replace", "insert_overwrite")


def carry_notes(raw: dict[str, Any], gone: set[int]) -> None:
    """Copy the notes of snapshots that are about to go to the oldest ancestor that stays, for each branch of the table."""
    by_id = {each["snapshot-id"]: each for each in raw["snapshots"]}
    heads = {raw.get("current-snapshot-id"), *(each["snapshot-id"] for each in raw.get("refs", {}).values())}
    for head in sorted(each for each in heads if each in by_id):
        chain = list(_ancestors(by_id, head))
        # A snapshot that a tag holds may stay although younger ones go: each gap has its own last ancestor before it.
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
    summaries = [each.get("summary", {}) for each in older]
    for name in _LISTS:
        items = dict.fromkeys(item for each in _until_anew([notes, *summaries]) for item in _items(each, name))
        if items:
            notes[_PREFIX + name] = ",".join(items)
    for name in _MAPS:
        found = [json.loads(each[_PREFIX + name]) for each in [notes, *summaries] if _PREFIX + name in each]
        if found:
            notes[_PREFIX + name] = json.dumps({key: value for each in reversed(found) for key, value in each.items()})
    for name in _LATEST:
        latest = next((each[_PREFIX + name] for each in [notes, *summaries] if _PREFIX + name in each), None)
        if latest is not None:
            notes[_PREFIX + name] = latest


def _until_anew(summaries: list[dict[str, str]]) -> Iterator[dict[str, str]]:
    """Yield summaries, newest first, up to one that replaced all rows."""
    for each in summaries:
        yield each
        if each.get(f"{_PREFIX}mode", "") in _BEGINS_ANEW:
            return


def _items(notes: Mapping[str, str], name: str) -> list[str]:
    return [item for item in notes.get(_PREFIX + name, "").split(",") if item]
