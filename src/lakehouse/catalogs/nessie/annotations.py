"""What Nessie itself does not store: who created a branch or tag and when, where a run published, and dropped tables.

Both are on a branch of their own with an empty ancestor. No other branch sees them, they are as durable as everything else
in Nessie, and a search for files in use finds those of dropped tables like any others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from lakehouse.catalogs.nessie.api import Conflict, Content, Key, NessieApi, Reference, put, remove
from lakehouse.catalogs.nessie.contents import NAMESPACE, pointer_of, without_id
from lakehouse.core.errors import CatalogBusyError
from lakehouse.core.names import TableName
from lakehouse.core.refs import DISCARDED, Change, Commit, LogEntry
from lakehouse.core.tables import Drop
from lakehouse.core.when import iso_time

#: The branch. Its name is part of the stored format.
BRANCH = "lake__kept"
_ATTEMPTS = 20


class Annotations:
    """The notes and the dropped tables of one Nessie server."""

    def __init__(self, api: NessieApi) -> None:
        self._api = api

    # ---- notes of branches and tags -----------------------------------------------------------------------------

    def note(self, kind: str, name: str, note: Mapping[str, str]) -> None:
        """Store how a branch or tag was created; a note of an earlier one with that name is replaced."""
        key = (f"{kind} {name}",)
        self._change(lambda existing: [put(key, _note_content(key, note, existing.get(key)))], [key])

    def notes(self, kind: str) -> dict[str, Mapping[str, str]]:
        """Return the notes of all branches or tags by name."""
        notes = {}
        for (text, *_), content in self.entries(kind):
            notes[text.partition(" ")[2]] = content.get("properties") or {}
        return notes

    def note_of(self, kind: str, name: str) -> Mapping[str, str] | None:
        """Return one note; None if there is none."""
        key = (f"{kind} {name}",)
        content = self._api.contents(BRANCH, [key])[0].get(key) if self._api.find(BRANCH) else None
        return (content.get("properties") or {}) if content else None

    def remove_note(self, kind: str, name: str) -> None:
        """Remove the note of a branch or tag, and the tables that were dropped on that branch."""
        keys: list[Key] = [(f"{kind} {name}",)]
        if kind == "branch":
            keys += [key for key, branch, _ in self._dropped() if branch == name]
        self.remove(keys)

    # ---- dropped tables -----------------------------------------------------------------------------------------

    def store_dropped(self, branch: str, tables: Mapping[TableName, Content]) -> list[Key]:
        """Store tables that are about to be dropped, and return their keys."""
        if not tables:
            return []
        now = f"{time.time_ns():020}"
        keys = {(f"dropped {branch} {table} {now}",): content for table, content in tables.items()}
        self._change(lambda _: [put(key, without_id(content)) for key, content in keys.items()], keys)
        return list(keys)

    def dropped(self, branch: str) -> list[TableName]:
        """Return the tables that were dropped on a branch."""
        return sorted({table for _, where, table in self._dropped() if where == branch})

    def drops(self, branch: str) -> list[Drop]:
        """Return the tables that were dropped on a branch, with the ids and times of the drops."""
        keys = sorted((table, key) for key, where, table in self._dropped() if where == branch)
        return [Drop(table, _drop_id(key), time_of(key)) for table, key in keys]

    def newest_drop(self, branch: str, table: TableName, drop: str = "") -> tuple[Key, Content] | None:
        """Return the key and content of the table of a drop, or of the one that was dropped last under a name."""
        keys = [key for key, where, name in self._dropped() if (where, name) == (branch, table)]
        newest = max((key for key in keys if drop in ("", _drop_id(key))), default=None)
        return (newest, self._api.contents(BRANCH, [newest])[0][newest]) if newest else None

    def forget_before(self, before: Callable[[TableName], str]) -> list[TableName]:
        """Remove the tables that were dropped before a time of their own (ISO 8601), and return their names.

        What is known of dropped branches is removed at the same time.
        """
        expired = [(key, table) for key, _, table in self._dropped() if time_of(key) < before(table)]
        discarded = [
            (entry.id,) for entry in self.discarded() if all(entry.at < before(change.table) for change in entry.tables)
        ]
        self.remove([*(key for key, _ in expired), *discarded])
        return [table for _, table in expired]

    def remove(self, keys: Iterable[Key]) -> None:
        """Remove the contents of some keys, if they exist."""
        listed = list(keys)
        if listed:
            self._change(lambda existing: [remove(key) for key in listed if key in existing], listed)

    def _dropped(self) -> Iterable[tuple[Key, str, TableName]]:
        return [dropped_key(key) for key, _ in self.entries("dropped")]

    # ---- tables that only a dropped branch had ------------------------------------------------------------------

    def store_discarded(self, branch: str, changes: Iterable[Change]) -> None:
        """Store the pointers of the tables that go with a branch: it created them, and may have dropped them again."""
        by_name = {str(change.table): change for change in changes}
        tables = {name: change.after for name, change in by_name.items() if change.before is None and change.after}
        for key, content in self.entries("dropped"):
            _, where, table = dropped_key(key)
            if where == branch and str(table) not in by_name:
                tables[str(table)] = str(pointer_of(content))
        if tables:
            self.note("discarded", f"{branch} {time.time_ns():020}", tables)

    def discarded(self) -> list[LogEntry]:
        """Return what is known of dropped branches, as entries of a log."""
        return [
            LogEntry(
                key[0],
                time_of(key),
                DISCARDED,
                Commit("discard", message=f"branch {key[0].split(' ')[1]}"),
                tuple(Change(_table(name), pointer, None) for name, pointer in content["properties"].items()),
            )
            for key, content in self.entries("discarded")
        ]

    # ---- the branch ---------------------------------------------------------------------------------------------

    def entries(self, kind: str) -> Sequence[tuple[Key, Content]]:
        """Return the stored keys and contents of a kind: `branch`, `tag`, `run`, `dropped` or `discarded`."""
        return list(self._api.entries(BRANCH, f"{kind} ")) if self._api.find(BRANCH) else []

    def _change(self, work: Callable[[Mapping[Key, Content]], list[dict[str, object]]], keys: Iterable[Key]) -> None:
        """Commit the operations that `work` returns for the current contents; retry on a conflict."""
        listed = list(keys)
        self._ensure_branch()
        for _ in range(_ATTEMPTS):
            existing, seen = self._api.contents(BRANCH, listed)
            operations = work(existing)
            if not operations:
                return
            with suppress(Conflict):
                self._api.commit(Reference(BRANCH, seen), {"message": "notes of the lake"}, operations)
                return
        raise CatalogBusyError(f"Other clients changed {BRANCH} in Nessie {_ATTEMPTS} times in a row.", "Try again.")

    def _ensure_branch(self) -> None:
        if self._api.find(BRANCH) is None:
            with suppress(Conflict):  # another client created it at the same time
                self._api.create(BRANCH, "BRANCH", Reference("main", self._api.empty_hash()))


def dropped_key(key: Key) -> tuple[Key, str, TableName]:
    """Return a key, and the branch and name of the dropped table that it is of."""
    _, branch, name, _ = key[0].split(" ")
    return key, branch, _table(name)


def _table(name: str) -> TableName:
    """Return the table of a name; its namespace may have several levels."""
    namespace, _, table = name.rpartition(".")
    return TableName(namespace, table)


def time_of(key: Key) -> str:
    """Return the time (ISO 8601) at the end of a key."""
    return iso_time(int(_drop_id(key)))


def _drop_id(key: Key) -> str:
    return key[0].rpartition(" ")[2]


def _note_content(key: Key, note: Mapping[str, str], before: Content | None) -> dict[str, object]:
    content: dict[str, object] = {"type": NAMESPACE, "elements": list(key), "properties": dict(note)}
    return {**content, "id": before["id"]} if before else content
