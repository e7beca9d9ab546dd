"""Where backups are kept: each content once, named by its SHA-256, and one manifest per backup, which is written last.

    DEST/lakehouse-backup.json       states what this folder is
    DEST/backups/ID.json.gz          a backup: the catalog, and the name, size and SHA-256 of every file
    DEST/objects/ab/abcdef…          contents

A backup exists if its manifest does. One that was killed leaves contents, which the next one uses.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, field
from pathlib import Path
from typing import Any, BinaryIO

from lakehouse.core import __version__
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import StorageError
from lakehouse.core.state import CatalogState, state_from_dict
from lakehouse.storage.tree import LocalTree, Tree

_MARKER = "lakehouse-backup.json"
_FORMAT = 1
_CHUNK = 1 << 20
_COPY = "lake-backup-"
_DAY_S = 24 * 3600
_PRIVATE = 0o700


class BackupError(StorageError):
    """A backup cannot be written, found or read."""

    code = "backup_failed"


@dataclass(frozen=True)
class StoredFile:
    """A file in a backup."""

    name: str
    kind: str
    size: int
    sha256: str
    modified_ns: int = 0


@dataclass(frozen=True)
class Manifest:
    """One backup."""

    id: str
    made_at: str
    warehouse: str
    """Where the tables were; every path in their metadata begins with it."""
    catalog: str
    """The kind of the catalog."""
    state: CatalogState
    files: Mapping[str, StoredFile] = field(repr=False)
    notes: tuple[str, ...] = ()
    release: str = __version__

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files.values())


@dataclass(frozen=True)
class BackupStore:
    """The backups in one folder or below one prefix of a bucket."""

    tree: Tree

    def prepare(self) -> None:
        """Make the folder one for backups; an error if it holds something else."""
        self._remove_leftovers()
        if isinstance(self.tree, LocalTree) and not self.tree.folder.exists():
            self.tree.folder.mkdir(parents=True)
            self.tree.folder.chmod(_PRIVATE)  # as the lake itself
        try:
            self._check_marker()
            return
        except FileNotFoundError:
            pass
        # A backup that was stopped in its first moment has left an unfinished marker.
        own = ("objects/", f".{_MARKER}.")
        other = next((file for file in self.tree.list() if not file.name.startswith(own)), None)
        if other is not None:
            raise BackupError(
                f"{self.tree.uri} holds {other.name} and no backups.", "Name an empty folder or an earlier backup's."
            )
        self.tree.write(_MARKER, json.dumps({"format": _FORMAT}).encode())

    def check(self) -> None:
        """Check that there are backups; an error if this is another folder."""
        try:
            self._check_marker()
        except FileNotFoundError as exc:
            raise BackupError(f"There are no backups in {self.tree.uri}.", "Make one: lake backup DEST") from exc

    def _check_marker(self) -> None:
        try:
            stored_format = json.loads(self.tree.read(_MARKER))["format"]
        except (ValueError, KeyError, TypeError) as exc:
            raise BackupError(f"{self.tree.uri}/{_MARKER} is damaged.", "Name another folder.") from exc
        if stored_format != _FORMAT:
            raise BackupError(
                f"The backups in {self.tree.uri} have the format {stored_format}; this release knows {_FORMAT}.",
                "Use the release that made them.",
            )

    # ---- manifests ----------------------------------------------------------------------------------------------

    def ids(self) -> list[str]:
        """Return the ids of all backups, oldest first."""
        suffix = ".json.gz"
        names = (file.name.removeprefix("backups/") for file in self.tree.list("backups"))
        return sorted(name.removesuffix(suffix) for name in names if name.endswith(suffix) and not name.startswith("."))

    def manifest(self, backup: str = "") -> Manifest:
        """Return a backup by its id or a unique prefix of it; the newest by default."""
        known = self.ids()
        matching = [backup_id for backup_id in known if backup_id.startswith(backup)] if backup else known[-1:]
        if len(matching) != 1:
            what = f"no backup {backup!r}" if backup else "no finished backup"
            raise BackupError(f"There is {what} in {self.tree.uri}.", "All of them: lake backup DEST --list")
        try:
            data = json.loads(gzip.decompress(self.tree.read(_manifest_name(matching[0]))))
            return _manifest_from(data)
        except (ValueError, KeyError, TypeError, EOFError, gzip.BadGzipFile) as exc:
            raise BackupError(
                f"The manifest of backup {matching[0]} is damaged: {exc}.", "Name another one: --backup ID"
            ) from exc

    def save(self, manifest: Manifest) -> None:
        """Store a manifest, and so a backup."""
        self._flush()
        data = {**asdict(manifest), "state": manifest.state.as_dict()}
        data["files"] = [list(asdict(file).values()) for file in manifest.files.values()]
        self.tree.write(_manifest_name(manifest.id), gzip.compress(json.dumps(data).encode(), mtime=0))

    def _flush(self) -> None:
        """Wait until the contents are on the disk: the manifest states that they are."""
        if isinstance(self.tree, LocalTree):
            os.sync()

    # ---- contents -----------------------------------------------------------------------------------------------

    def add(self, source: BinaryIO) -> tuple[int, str]:
        """Store a content, unless it is stored already; returns its size and SHA-256."""
        digest, size = hashlib.sha256(), 0
        number, name = tempfile.mkstemp(prefix=_COPY, dir=self._scratch())
        copy = Path(name)
        try:
            with os.fdopen(number, "wb") as out:
                while chunk := source.read(_CHUNK):
                    digest.update(chunk)
                    size += out.write(chunk)
            sha256 = digest.hexdigest()
            if self.tree.size(_object_name(sha256)) != size:
                self.tree.move_in(_object_name(sha256), copy)
        finally:
            copy.unlink(missing_ok=True)
        return size, sha256

    def _scratch(self) -> str | None:
        """Return the folder for a copy that has no name yet; None for the system's own."""
        if not isinstance(self.tree, LocalTree):
            return None
        folder = self.tree.folder / "objects"
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder)

    def _remove_leftovers(self) -> None:
        """Remove the unnamed copies of backups that were killed more than a day ago."""
        if isinstance(self.tree, LocalTree):
            for copy in (self.tree.folder / "objects").glob(f"{_COPY}*"):
                with suppress(FileNotFoundError):
                    if time.time() - copy.stat().st_mtime > _DAY_S:
                        copy.unlink()

    def contents(self) -> dict[str, int]:
        """Return the size of every stored content by its SHA-256."""
        return {file.name.rpartition("/")[2]: file.size for file in self.tree.list("objects")}

    def read(self, file: StoredFile) -> bytes:
        """Return the content of a file; an error if it is not what was stored."""
        with self._open(file) as source:
            content = source.read()
        if hashlib.sha256(content).hexdigest() != file.sha256:
            raise _damaged(file)
        return content

    def copy(self, file: StoredFile, into: Path) -> None:
        """Write the content of a file to a local one; an error if it is not what was stored."""
        digest = hashlib.sha256()
        with self._open(file) as source, into.open("wb") as out:
            while chunk := source.read(_CHUNK):
                digest.update(chunk)
                out.write(chunk)
        if digest.hexdigest() != file.sha256:
            raise _damaged(file)

    def _open(self, file: StoredFile) -> BinaryIO:
        try:
            return self.tree.open(_object_name(file.sha256))
        except FileNotFoundError as exc:
            raise BackupError(
                f"The backup lacks the content of {file.name}.", "Use another backup (--backup ID), or another DEST."
            ) from exc


def _damaged(file: StoredFile) -> BackupError:
    return BackupError(
        f"The content of {file.name} in the backup is damaged (its SHA-256 differs).",
        "Use another DEST; or back the lake up again with --full, if it still exists.",
    )


def _object_name(sha256: str) -> str:
    return f"objects/{sha256[:2]}/{sha256}"


def _manifest_name(backup: str) -> str:
    return f"backups/{backup}.json.gz"


def _manifest_from(data: Mapping[str, Any]) -> Manifest:
    files: Sequence[StoredFile] = [StoredFile(*entry) for entry in data["files"]]
    return Manifest(
        id=data["id"],
        made_at=data["made_at"],
        warehouse=data["warehouse"],
        catalog=data["catalog"],
        state=state_from_dict(data["state"]),
        files={file.name: file for file in files},
        notes=tuple(data["notes"]),
        release=data["release"],
    )
