"""What completion knows of a lake: names, columns and snapshots, fetched in the background and cached."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import LakeError
from lakehouse.core.names import MAIN

if TYPE_CHECKING:
    from lakehouse.client import RemoteLake
    from lakehouse.lake import Lake

#: Snapshots of a table that are offered, the newest.
_SNAPSHOTS = 50


@dataclass(frozen=True)
class Names:
    """Names in order, found by how they begin."""

    sorted: tuple[str, ...] = ()
    by_last_part: tuple[tuple[str, str], ...] = ()
    """(`leads`, `crm.leads`), so that the namespace need not be typed."""

    @classmethod
    def of(cls, names: Sequence[str]) -> Names:
        by_last_part = sorted((name.rpartition(".")[2], name) for name in names if "." in name)
        return cls(tuple(sorted(names)), tuple(by_last_part))

    def starting_with(self, prefix: str, most: int = 100) -> Iterator[str]:
        """The names, or names whose last part, begin with a prefix; each search takes a few comparisons."""
        start = bisect_left(self.sorted, prefix)
        for name in self.sorted[start : start + most]:
            if not name.startswith(prefix):
                break
            yield name
        if not prefix or "." in prefix:
            return
        start = bisect_left(self.by_last_part, (prefix, ""))
        for last, name in self.by_last_part[start : start + most]:
            if not last.startswith(prefix):
                break
            if not name.startswith(prefix):
                yield name


class Metadata:
    """The names of a lake on one branch. Reading never waits: what is missing is fetched for the next time."""

    def __init__(self, lake: Lake | RemoteLake) -> None:
        self.tables, self.branches, self.pipelines = Names(), Names.of([MAIN]), Names()
        self._lake, self._generation = lake, 0
        self._columns: dict[str, tuple[str, ...]] = {}
        self._snapshots: dict[str, tuple[tuple[str, str], ...]] = {}
        self._requested: set[tuple[str, str]] = set()
        self._jobs: SimpleQueue[tuple[int, Callable[[], None]]] = SimpleQueue()
        self._idle = threading.Event()
        threading.Thread(target=self._work, daemon=True, name="shell-metadata").start()
        self.refresh(lake)

    def refresh(self, lake: Lake | RemoteLake) -> None:
        """Fetch everything again, for a lake that may be on another branch; the old names serve until then."""
        self._lake, self._generation = lake, self._generation + 1
        self._idle.clear()
        self._jobs.put((self._generation, self._fetch_names))

    def wait(self, seconds: float) -> bool:
        """Wait until everything that was asked for has been fetched; False if it takes longer."""
        return self._idle.wait(seconds)

    def columns(self, table: str) -> tuple[str, ...]:
        """The columns of a table, if they are known already."""
        if table not in self._columns and table in self._known():
            self._request("columns", table, lambda: self._fetch_columns(table))
        return self._columns.get(table, ())

    def snapshots(self, table: str) -> tuple[tuple[str, str], ...]:
        """The newest snapshots of a table as (id, time), if they are known already."""
        if table not in self._snapshots:
            self._request("snapshots", table, lambda: self._fetch_snapshots(table))
        return self._snapshots.get(table, ())

    def _known(self) -> tuple[str, ...]:
        return self.tables.sorted

    def _request(self, what: str, table: str, fetch: Callable[[], None]) -> None:
        if (what, table) not in self._requested:
            self._requested.add((what, table))
            self._idle.clear()
            self._jobs.put((self._generation, fetch))

    def _work(self) -> None:
        while True:
            generation, fetch = self._jobs.get()
            # After a refresh, older requests are for another state or branch.
            if generation == self._generation:
                # Completion is an aid: a lake that does not answer is reported by the next statement.
                with suppress(LakeError, OSError):
                    fetch()
            if self._jobs.empty():
                self._idle.set()

    def _fetch_names(self) -> None:
        lake = self._lake
        self.tables = Names.of(lake.table_names())
        self._columns, self._snapshots, self._requested = {}, {}, set()
        self.branches = Names.of([MAIN, *lake.branches()])
        self.pipelines = Names.of(list(lake.pipelines()))

    def _fetch_columns(self, table: str) -> None:
        self._columns[table] = tuple(column.name for column in self._lake.describe(table).columns)

    def _fetch_snapshots(self, table: str) -> None:
        snapshots = list(self._lake.history(table))[-_SNAPSHOTS:]
        self._snapshots[table] = tuple(
            (snapshot.id, snapshot.at.isoformat(timespec="seconds")) for snapshot in reversed(snapshots)
        )
