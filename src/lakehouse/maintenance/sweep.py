"""Removes files that nothing refers to any more.

A file is removed only if all of this holds: it is in the `data` or `metadata` folder of a table that this lake has or had,
below the lake's own warehouse; no table of another lake and no Hudi table is in that folder; its last change is older than
`orphan_days`; an inventory that was complete and taken after the listing does not need it; an earlier maintenance, at least
`delete_after_hours` ago, came to the same result; and the catalog's references are still the same right before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from pathlib import Path

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import LakeError
from lakehouse.core.metadata_file import load_metadata
from lakehouse.formats.iceberg.references import normalized
from lakehouse.maintenance.inventory import Inventories, Inventory
from lakehouse.maintenance.layout import utc_now
from lakehouse.process.files import write_whole
from lakehouse.storage.warehouse import StoredFile, WarehouseStore

_STATE_VERSION = 1
_CHUNK = 200
_OWN_FOLDERS = ("data/", "metadata/")
_METADATA_FILE = re.compile(r"^(.*)/metadata/[^/]+\.metadata\.json(?:\.gz)?$")
_HUDI = "/.hoodie/"
_UUID = re.compile(rb'"table-uuid"\s*:\s*"([0-9a-fA-F-]{36})"')
_UUID_BYTES = 16384


@dataclass(frozen=True)
class SweepReport:
    """What a sweep removed, and what it left."""

    removed_files: int = 0
    removed_bytes: int = 0
    waiting_files: int = 0
    """Nothing needs them; they are removed once `delete_after_hours` have passed."""
    waiting_bytes: int = 0
    skipped: tuple[str, ...] = ()
    """Folders that were left alone, each with the reason."""


@dataclass
class SweepState:
    """The results of earlier sweeps: the folders of this lake's tables, and since when nothing needs a file."""

    file: Path
    locations: dict[str, set[str]] = field(default_factory=dict)
    marks: dict[str, str] = field(default_factory=dict)

    def load(self) -> SweepState:
        """Read the state; without a readable file, every wait starts again."""
        try:
            stored = json.loads(self.file.read_text())
        except (OSError, ValueError):
            return self
        if stored.get("version") == _STATE_VERSION:
            self.locations = {place: set(uuids) for place, uuids in stored["locations"].items()}
            self.marks = stored["marks"]
        return self

    def save(self) -> None:
        """Write the state, complete or not at all."""
        known = {place: sorted(uuids) for place, uuids in self.locations.items()}
        stored = {"version": _STATE_VERSION, "locations": known, "marks": self.marks}
        write_whole(self.file, json.dumps(stored))

    def remember(self, locations: Mapping[str, set[str]]) -> None:
        """Add the folders of tables; those of tables that are gone stay known."""
        for place, uuids in locations.items():
            self.locations.setdefault(place, set()).update(uuids)


@dataclass(frozen=True)
class Sweeper:
    """Finds and removes what nothing needs.

    Args:
        warehouse: the URI of the warehouse; nothing outside of it is touched.
        since: log entries before this time (ISO 8601) hold no files.
        writers_since: returns when the oldest run that is still at work began, or None.
    """

    inventories: Inventories
    store: WarehouseStore
    warehouse: str
    state_file: Path
    since: str
    orphan_days: float
    delete_after_hours: float
    now: Callable[[], datetime] = utc_now
    writers_since: Callable[[], datetime | None] = lambda: None

    def find(self) -> tuple[list[StoredFile], list[str], Inventory]:
        """Return the files that nothing needs, the folders that were left alone, and the inventory that says so."""
        # The listing comes before the inventory, so that a file that is committed in between counts as needed.
        before = self.inventories.take(self.since)
        known = SweepState(self.state_file).load()
        known.remember(before.locations())
        listed, skipped = self._list(known.locations, before)
        inventory = self.inventories.take(self.since)
        cutoff = self._cutoff()
        unneeded = [file for file in listed if file.modified < cutoff and not inventory.needs(file.uri)]
        return unneeded, skipped, inventory

    def remember(self) -> None:
        """Store the folders of all tables that there are now, so that they are known when the tables are gone."""
        state = SweepState(self.state_file).load()
        state.remember(self.inventories.take(self.since).locations())
        state.save()

    def sweep(self, dry_run: bool = False) -> SweepReport:
        """Mark what nothing needs, and remove what was marked long enough ago."""
        unneeded, skipped, inventory = self.find()
        if not inventory.complete:
            reason = inventory.reason or f"{len(inventory.problems)} references cannot be read: lake verify"
            return SweepReport(skipped=(f"nothing was removed: {reason}",))
        state, now = SweepState(self.state_file).load(), self.now()
        state.remember(inventory.locations())
        marks = {normalized(file.uri): state.marks.get(normalized(file.uri), now.isoformat()) for file in unneeded}
        state.marks = marks
        limit = (now - timedelta(hours=self.delete_after_hours)).isoformat()
        due = [file for file in unneeded if marks[normalized(file.uri)] <= limit]
        if dry_run:
            removed = due
        else:
            state.save()
            removed = self._remove(due, inventory)
            for file in removed:
                state.marks.pop(normalized(file.uri), None)
            state.save()
        gone = {file.uri for file in removed}
        waiting = [file for file in unneeded if file.uri not in gone]
        return SweepReport(len(removed), _bytes(removed), len(waiting), _bytes(waiting), tuple(skipped))

    def _remove(self, due: Sequence[StoredFile], inventory: Inventory) -> list[StoredFile]:
        """Remove files, each only if the references right before still do not need it."""
        removed: list[StoredFile] = []
        # Metadata files first, so that what a kill leaves does not look like a table.
        ordered = sorted(due, key=lambda file: (not file.uri.endswith(".json"), file.uri))
        for start in range(0, len(ordered), _CHUNK):
            inventory = self.inventories.take(self.since, previous=inventory)
            if not inventory.complete:
                break
            for file in ordered[start : start + _CHUNK]:
                if not inventory.needs(file.uri):
                    self.store.remove(file.uri)
                    removed.append(file)
        return removed

    def _cutoff(self) -> datetime:
        """Return the time before which a file must have been written: a writer at work may commit what is younger."""
        cutoff = self.now() - timedelta(days=self.orphan_days)
        working = self.writers_since()
        return min(cutoff, working - timedelta(hours=1)) if working else cutoff

    # ---- folders ------------------------------------------------------------------------------------------------

    def _list(self, locations: Mapping[str, set[str]], inventory: Inventory) -> tuple[list[StoredFile], list[str]]:
        root = normalized(self.warehouse).rstrip("/") + "/"
        hudi = {normalized(folder.location).rstrip("/") + "/" for folder in inventory.hudi}
        listed: list[StoredFile] = []
        skipped: list[str] = []
        for place, uuids in sorted(locations.items()):
            if not f"{place}/".startswith(root):
                skipped.append(f"{place}: it is outside the warehouse of this lake")
                continue
            files = list(self.store.files(place))
            reason, not_ours = self._foreign(place, uuids, files, inventory)
            if reason:
                skipped.append(f"{place}: {reason}")
                continue
            excluded = hudi | _other_roots(place, files) | {f"{other}/" for other in locations if other != place}
            own = [file for file in files if normalized(file.uri) not in not_ours]
            listed += [file for file in own if _is_own(place, normalized(file.uri), excluded)]
        return listed, skipped

    def _foreign(
        self, place: str, uuids: set[str], files: Sequence[StoredFile], inventory: Inventory
    ) -> tuple[str, set[str]]:
        """Return why a folder is not only this lake's, empty if it is; and the metadata files that are not.

        A metadata file without snapshots needs no other file: an attempt to create a table that existed leaves one. It stays,
        because it may be the empty table of another lake.
        """
        if any(normalized(file.uri).startswith(f"{place}{_HUDI}") for file in files):
            return "a Hudi table is in the same folder", set()
        empty: set[str] = set()
        for file in files:
            uri = normalized(file.uri)
            match = _METADATA_FILE.match(uri)
            if not match or match[1] != place or inventory.needs(uri) or self._uuid(uri) in uuids:
                continue
            if self._has_snapshots(uri):
                return f"{uri.rpartition('/')[2]} is of a table that this lake does not know", set()
            empty.add(uri)
        return "", empty

    def _uuid(self, uri: str) -> str:
        """Return the UUID of the table that a metadata file is of; empty if it is unknown."""
        try:
            match = _UUID.search(self.store.start(uri, _UUID_BYTES))
            return match[1].decode() if match else str(load_metadata(uri, self.inventories.files).get("table-uuid", ""))
        except (LakeError, OSError):
            return ""

    def _has_snapshots(self, uri: str) -> bool:
        """Whether a metadata file lists snapshots, or cannot be read."""
        try:
            return bool(load_metadata(uri, self.inventories.files).get("snapshots"))
        except FileNotFoundError:
            return False
        except (LakeError, OSError):
            return True


def _is_own(place: str, uri: str, excluded: set[str]) -> bool:
    """Whether a file is in a folder that only tables of this lake write."""
    inside = uri.removeprefix(f"{place}/")
    return inside.startswith(_OWN_FOLDERS) and not any(
        uri.startswith(other) and other.startswith(f"{place}/") for other in excluded
    )


def _other_roots(place: str, files: Sequence[StoredFile]) -> set[str]:
    """Return the folders of other tables below a folder: whatever has a `metadata` or `.hoodie` folder of its own."""
    roots: set[str] = set()
    for file in files:
        uri = normalized(file.uri)
        match = _METADATA_FILE.match(uri)
        if match and match[1] != place:
            roots.add(f"{match[1]}/")
        if _HUDI in uri:
            roots.add(uri.partition(_HUDI)[0] + "/")
    return roots


def _bytes(files: Sequence[StoredFile]) -> int:
    return sum(file.size for file in files)
