"""Watch the places where a lake of the developer may be: no test creates, opens or changes one there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
HOMES = (".lake", ".lake-demo")
"""The default home, and the one of `make demo`."""
_EVENTS = frozenset({"open", "os.mkdir", "os.listdir", "os.scandir", "os.remove", "os.rename", "sqlite3.connect"})
_OF_A_RUNNING_SPARK = frozenset({"run", "logs"})
"""The developer's own Spark, which `make demo` leaves running, writes there."""


def default_homes() -> set[Path]:
    """Every folder that a lake without a LAKE_HOME could be in."""
    return {folder / home for folder in (ROOT, Path.cwd(), Path.home()) for home in HOMES}


class HomeWatch:
    """Notices access to some folders: from this process at once, from others by what they leave."""

    def __init__(self, places: Iterable[Path]) -> None:
        self._places = {str(place) for place in places}
        self._opened: list[str] = []
        self._there = self._existing()
        self._files = self._changes_of_files()
        sys.addaudithook(self._hear)

    def found(self) -> list[str]:
        """What was opened or created since the last call."""
        opened, self._opened = self._opened, []
        before, self._there = self._there, self._existing()
        return opened + sorted(self._there - before)

    def changed(self) -> list[str]:
        """The files that were created, changed or removed since the watch began."""
        return sorted(dict(self._files ^ self._changes_of_files()))

    def _existing(self) -> set[str]:
        return {place for place in self._places if os.path.lexists(place)}

    def _changes_of_files(self) -> set[tuple[str, int]]:
        return {
            (str(file), file.lstat().st_mtime_ns)
            for place in map(Path, self._places)
            for file in place.rglob("*")
            if file.relative_to(place).parts[0] not in _OF_A_RUNNING_SPARK
            and not file.name.startswith("catalog.db-")
            and not file.is_dir()
        }

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _EVENTS or not isinstance(arguments[0], str | bytes | os.PathLike):
            return
        path = os.fsdecode(arguments[0])
        if ".lake" in path and any(f"{os.path.abspath(path)}/".startswith(f"{place}/") for place in self._places):
            self._opened.append(path)
