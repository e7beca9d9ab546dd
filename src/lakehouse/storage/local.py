"""The local folder of an embedded lake: created once, checked on opening, private to its owner."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident

from lakehouse.core.errors import DiskFullError, HomeError
from lakehouse.process.files import try_locked

LEAST_FREE_BYTES = 64 * 1024 * 1024
_MARKER = "lake.version"
_PRIVATE = 0o700
#: With the bit that gives new files the folder's group.
_SHARED = 0o2770
_SHARED_UMASK = 0o007
_LAYOUT_VERSION = "1"
#: Exists while a lake is being restored into a folder. Nobody else may open it.
RESTORING = "restoring.json"
_restoring: set[Path] = set()

#: PyIceberg cuts a path at ? and #, and DuckDB at a quote; both change control characters. Rows written there would be lost.
_UNUSABLE = re.compile(r"[?#\"\x00-\x1f\x7f]")

#: What a lake's folder may contain; some folders are created on first use.
_FOLDERS = ("warehouse", "run", "logs", "dropped", "raw", "runs", "reports", "dbt", "dagster", "maintenance")


class LocalHome:
    """`LAKE_HOME`: the catalog file, the warehouse folder, the logs and the socket of one embedded lake."""

    def __init__(self, folder: Path, shared: bool = False) -> None:
        """
        Args:
            shared: the folder's group reads and writes the lake, too; else only its owner does.
        """
        self._mode = _SHARED if shared else _PRIVATE
        self.folder = folder.expanduser().absolute()
        self.catalog_file = self.folder / "catalog.db"
        self.warehouse = self.folder / "warehouse"
        self.dropped = self.folder / "dropped"
        self.run = self.folder / "run"
        self.logs = self.folder / "logs"

    def ready(self) -> LocalHome:
        """Create what is missing. A folder with other contents or a newer layout is refused, unchanged."""
        self._refuse_an_unusable_name()
        self._refuse_half_a_lake()
        marker = self.folder / _MARKER
        try:
            layout = marker.read_text().strip() if marker.is_file() else ""
            if not layout:
                self._refuse_a_foreign_folder()
                self._create_folder(self.folder)
            elif layout != _LAYOUT_VERSION:
                raise HomeError(
                    f"{self.folder} is a lake of layout {layout!r}; this lakehouse knows {_LAYOUT_VERSION!r}.",
                    "Use the version of lakehouse that created it, or another LAKE_HOME.",
                )
            if layout and not os.access(self.folder, os.W_OK):
                return self  # a lake that this user may only read
            self._create_parts(is_new=not layout)
            if not layout:
                # Written atomically: an empty marker would make the lake unusable.
                temporary = self.run / f"{_MARKER}.{os.getpid()}.{get_ident()}"
                temporary.write_text(_LAYOUT_VERSION + "\n")
                temporary.replace(marker)
        except OSError as exc:
            raise _explain(exc, self.folder) from exc
        return self

    def _create_parts(self, is_new: bool) -> None:
        if not is_new and stat.S_IMODE(self.folder.stat().st_mode) == _SHARED:
            self._mode = _SHARED  # as it was created
        if self._mode == _SHARED:
            os.umask(_SHARED_UMASK)
        for part in (self.warehouse, self.run, self.logs):
            self._create_folder(part)
        if self._mode == _PRIVATE:
            self.run.chmod(_PRIVATE)

    def _create_folder(self, folder: Path) -> None:
        """Create a folder with the lake's mode; the mode of an existing one is its owner's business."""
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(self._mode)

    def _refuse_an_unusable_name(self) -> None:
        unusable = _UNUSABLE.search(str(self.folder))
        if unusable:
            raise HomeError(
                f"{str(self.folder)!r} cannot be a lake: {unusable[0]!r} in a path ends it for PyIceberg or DuckDB.",
                'Point LAKE_HOME (or --home) at a folder without ? # " and control characters.',
            )

    def _refuse_half_a_lake(self) -> None:
        if self.folder in _restoring or not (self.folder / RESTORING).exists():
            return
        raise HomeError(
            f"The lake in {self.folder} is not complete: a restore into it is in progress, or was interrupted.",
            f"Finish it with the same command, which is in {self.folder / RESTORING}.",
        )

    def _refuse_a_foreign_folder(self) -> None:
        """Only an empty folder may become a lake, or one whose creation was interrupted."""
        if not self.folder.exists():
            return
        ours = {_MARKER, RESTORING, "catalog.db", "catalog.db-wal", "catalog.db-shm", *_FOLDERS}
        foreign = sorted(entry.name for entry in self.folder.iterdir() if entry.name not in ours)
        if foreign:
            raise HomeError(
                f"{self.folder} is not a lake: it holds {', '.join(foreign[:3])} and no {_MARKER}.",
                "Point LAKE_HOME (or --home) at an empty folder or at an existing lake.",
            )

    def check_room(self) -> None:
        """Refuse to start a write when the disk is almost full."""
        free = shutil.disk_usage(self.folder).free
        if free < LEAST_FREE_BYTES:
            raise DiskFullError(
                f"Only {free // 1024 // 1024} MB are free on the disk of the lake ({self.folder}).",
                "Free some space or move the lake: LAKE_HOME.",
            )


@contextmanager
def restoration(folder: Path, command: str) -> Iterator[bool]:
    """Let only this process open a folder as a lake, until the block ends without an error; yields whether it resumes.

    Args:
        command: the command that finishes the restore, if this process is killed.
    """
    folder = folder.expanduser().absolute()
    marker = folder / RESTORING
    resumes = marker.exists()
    if resumes and _command_in(marker) not in ("", command):
        raise HomeError(
            f"Another restore into {folder} was interrupted.",
            f"Finish it, or remove the folder. Its command is in {marker}.",
        )
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    if is_new:
        folder.chmod(_PRIVATE)
    marker.touch()
    with try_locked(marker) as held:
        if not held:
            raise HomeError(f"Another process restores into {folder} at this moment.", "Wait for it, or stop it first.")
        marker.write_text(json.dumps({"command": command}) + "\n")
        _restoring.add(folder)
        try:
            yield resumes
            marker.unlink()
        finally:
            _restoring.discard(folder)


def forget_restoration(folder: Path) -> None:
    """Withdraw a restoration that has written nothing."""
    folder = folder.expanduser().absolute()
    (folder / RESTORING).unlink(missing_ok=True)


def _command_in(marker: Path) -> str:
    try:
        return str(json.loads(marker.read_text())["command"])
    except (ValueError, KeyError, TypeError):
        return ""


def _explain(exc: OSError, folder: Path) -> HomeError | DiskFullError:
    import errno

    if exc.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFullError(f"The disk of {folder} is full.", "Free some space or move the lake: LAKE_HOME.")
    if exc.errno in (errno.ENOTDIR, errno.EEXIST):
        file = next((str(place) for place in (folder, *folder.parents) if place.is_file()), exc.filename)
        return HomeError(f"{folder} cannot be a lake: {file} is a file.", "Point LAKE_HOME at a folder.")
    who = "" if os.name != "posix" else f" by user {os.getuid()}"
    return HomeError(
        f"{folder} cannot be written{who}: {exc.strerror}.", "Point LAKE_HOME (or --home) at a folder of your own."
    )
