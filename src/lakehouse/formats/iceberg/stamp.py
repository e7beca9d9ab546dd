"""Add author and notes to the newest snapshot of a table on an unpublished branch.

Spark takes such notes from a DataFrame's writer, but not from MERGE or UPDATE. A snapshot's summary lives only in the
metadata file, so before a branch is published its newest metadata file is written once more with the notes in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakehouse.core.files import LOCAL, Files
from lakehouse.core.metadata_file import write_next
from lakehouse.formats.iceberg.metadata import read_metadata


def stamp(pointer: str, notes: Mapping[str, str], base: str | None, files: Files = LOCAL) -> str:
    """Add notes to the summary of the newest snapshot; returns the location of the new metadata.

    What happened since the metadata file `base` becomes one snapshot: nobody has seen the ones in between.
    """
    stored = read_metadata(pointer, files).raw
    current = next(entry for entry in stored["snapshots"] if entry["snapshot-id"] == stored["current-snapshot-id"])
    current = {**current, "summary": {**current["summary"], **notes}}
    replaced = {"metadata-file": pointer, "timestamp-ms": stored["last-updated-ms"]}
    raw = {**stored, "metadata-log": [*stored.get("metadata-log", []), replaced]}
    _make_one(raw, current, read_metadata(base, files).raw if base else {})
    return write_next(pointer, raw, files)


def _make_one(raw: dict[str, Any], current: dict[str, Any], before: dict[str, Any]) -> None:
    """Let `current` be the only snapshot since `before`."""
    newest = current["snapshot-id"]
    seen = {entry["snapshot-id"] for entry in before.get("snapshots", [])} | {newest}
    kept = [entry for entry in raw["snapshots"] if entry["snapshot-id"] in seen]
    raw["snapshots"] = [current if entry["snapshot-id"] == newest else entry for entry in kept]
    raw["snapshot-log"] = [entry for entry in raw["snapshot-log"] if entry["snapshot-id"] in seen]
    parent = before.get("current-snapshot-id")
    if parent in (None, -1):
        current.pop("parent-snapshot-id", None)
    else:
        current["parent-snapshot-id"] = parent
