"""What Nessie itself does not keep: who made a branch or tag and when, where a run published, and the dropped tables.

Both lie on a branch of their own that starts from nothing, so that no other branch sees them, they are as safe as all
else in Nessie, and whoever asks which files are still needed finds the dropped tables' like any others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from lakehouse.catalogs.nessie.api import Conflict, Content, Key, NessieApi, Reference, put, remove
from lakehouse.catalogs.nessie.contents import NAMESPACE, new
from lakehouse.core.errors import CatalogBusyError
from lakehouse.core.names import TableName

KEPT = "lake__kept"
_TRIES = 20


class Kept:
    """The notes and the dropped tables of one Nessie."""

    def __init__(self, api: NessieApi) -> None:
        self._api = api

    # ---- notes of branches and tags -----------------------------------------------------------------------------

    def note(self, kind: str, name: str, facts: Mapping[str, str]) -> None:
        """Write down how a branch or tag was made; what an earlier one of that name left is exchanged."""
        key = (f"{kind} {name}",)
        self._change(lambda found: [put(key, _noted(key, facts, found.get(key)))], [key])

    def notes(self, kind: str) -> dict[str, Mapping[str, str]]:
        """How the branches or tags were made, by their names."""
        found = {}
        for (text, *_), content in self._entries(kind):
            found[text.partition(" ")[2]] = content.get("properties") or {}
        return found

    def note_of(self, kind: str, name: str) -> Mapping[str, str] | None:
        """One note; None if there is none."""
        key = (f"{kind} {name}",)
        found = self._api.contents(KEPT, [key])[0].get(key) if self._api.find(KEPT) else None
        return (found.get("properties") or {}) if found else None

    def forget(self, kind: str, name: str) -> None:
        """Forget how a branch or tag was made, and what was dropped on that branch."""
        gone: list[Key] = [(f"{kind} {name}",)]
        if kind == "branch":
            gone += [key for key, branch, _ in self._dropped() if branch == name]
        self.remove(gone)

    # ---- dropped tables -----------------------------------------------------------------------------------------

    def keep(self, branch: str, tables: Mapping[TableName, Content]) -> list[Key]:
        """Remember tables that are about to be dropped; gives the keys by which to take that back."""
        if not tables:
            return []
        now = f"{time.time_ns():020}"
        keys = {(f"dropped {branch} {table} {now}",): content for table, content in tables.items()}
        self._change(lambda _: [put(key, new(content)) for key, content in keys.items()], keys)
        return list(keys)

    def dropped(self, branch: str) -> list[TableName]:
        """The tables that were dropped on a branch."""
        return sorted({table for _, where, table in self._dropped() if where == branch})

    def newest(self, branch: str, table: TableName) -> tuple[Key, Content] | None:
        """What was dropped last under a name."""
        found = max((key for key, where, name in self._dropped() if (where, name) == (branch, table)), default=None)
        return (found, self._api.contents(KEPT, [found])[0][found]) if found else None

    def remove(self, keys: Iterable[Key]) -> None:
        """Take away what is under some keys, if it is there."""
        wanted = list(keys)
        if wanted:
            self._change(lambda found: [remove(key) for key in wanted if key in found], wanted)

    def _dropped(self) -> Iterable[tuple[Key, str, TableName]]:
        for key, _ in self._entries("dropped"):
            _, branch, name, _ = key[0].split(" ")
            namespace, _, table = name.rpartition(".")
            yield key, branch, TableName(namespace, table)

    # ---- the branch ---------------------------------------------------------------------------------------------

    def _entries(self, kind: str) -> Sequence[tuple[Key, Content]]:
        return list(self._api.entries(KEPT, f"{kind} ")) if self._api.find(KEPT) else []

    def _change(self, work: Callable[[Mapping[Key, Content]], list[dict[str, object]]], keys: Iterable[Key]) -> None:
        """Commit what `work` makes of what is there, again if others were faster."""
        wanted = list(keys)
        self._ready()
        for _ in range(_TRIES):
            found, seen = self._api.contents(KEPT, wanted)
            operations = work(found)
            if not operations:
                return
            with suppress(Conflict):
                self._api.commit(Reference(KEPT, seen), {"message": "notes of the lake"}, operations)
                return
        raise CatalogBusyError(f"Others kept changing {KEPT} in Nessie.", "Try again.")

    def _ready(self) -> None:
        if self._api.find(KEPT) is None:
            with suppress(Conflict):  # others made it in the same moment
                self._api.create(KEPT, "BRANCH", Reference("main", self._api.nothing()))


def _noted(key: Key, facts: Mapping[str, str], before: Content | None) -> dict[str, object]:
    content: dict[str, object] = {"type": NAMESPACE, "elements": list(key), "properties": dict(facts)}
    return {**content, "id": before["id"]} if before else content
