"""Copy the files of a lake to another place and rewrite every path in them; a restore and a migration do the same."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import Protocol

from lakehouse.copies.content import hudi_folders
from lakehouse.copies.lake_parts import WAREHOUSE, FileNames, LakeParts
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import TableError
from lakehouse.core.state import CatalogState
from lakehouse.formats.iceberg import relocate
from lakehouse.formats.iceberg.relocate import MovedDeletes

Progress = Callable[[str], None]

#: Files that hold paths.
_METADATA, _LIST, _MANIFEST, _DELETES = "metadata", "manifest-list", "manifest", "position-deletes"
_REWRITTEN = (_METADATA, _LIST, _MANIFEST, _DELETES)
_THREADS = 8


class SourceFile(Protocol):
    """A file to copy."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def size(self) -> int: ...


class Source(Protocol):
    """Where a lake is copied from: a backup, or another lake."""

    @property
    def warehouse(self) -> str:
        """Where its tables are; every path in their metadata begins with it."""

    @property
    def state(self) -> CatalogState:
        """Its catalog."""

    @property
    def files(self) -> Mapping[str, SourceFile]:
        """Every file by its name."""

    def read(self, name: str) -> bytes:
        """Return the content of a file, checked if there is a checksum."""

    def copy(self, name: str, into: Path) -> None:
        """Write the content of a file to a local one."""


@dataclass
class Transfer:
    """One copy of a lake. A second call copies only what is missing."""

    source: Source
    target: LakeParts
    progress: Progress = lambda _: None
    written: list[str] = field(default_factory=list)
    """The names of the files that this call wrote."""
    skipped: list[str] = field(default_factory=list)
    """The folders of tables that the target has no place for."""
    _sizes: dict[str, int] = field(default_factory=dict)
    _deletes: dict[str, MovedDeletes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._old, self._new = FileNames(self.source.warehouse), self.target.names
        self.moves = self._old.warehouse != self._new.warehouse

    def move(self, uri: str) -> str:
        """Return the new location of a file."""
        return self._new.uri(self._old.of(uri)) if self.moves else uri

    def run(self) -> CatalogState:
        """Copy all files and return the state of the catalog with the new pointers."""
        files = list(self.source.files.values())
        if not self.target.has_hudi:
            files = self._without_hudi(files)
        plain = [file for file in files if not self.moves or file.kind not in _REWRITTEN]
        self.progress(f"Copying {len(plain)} files")
        with (
            ThreadPoolExecutor(_THREADS) as threads,
            tempfile.TemporaryDirectory(prefix="lake-copy-", dir=self._scratch()) as folder,
        ):
            for _ in threads.map(lambda file: self._copy(file, Path(folder)), plain):
                pass
        if self.moves:
            changed = [file for file in files if file.kind in _REWRITTEN]
            self.progress(f"Rewriting the paths in {len(changed)} files")
            for kind, rewrite in (
                (_MANIFEST, self._manifest),
                (_LIST, self._manifest_list),
                (_METADATA, self._metadata),
            ):
                for file in changed:
                    if file.kind == kind:
                        rewrite(file.name)
        return self.source.state.moved(self.move)

    def _scratch(self) -> Path | None:
        """Return a folder on the disk of a local lake; None for the system's own."""
        folder = self.target.home / "run"
        return folder if folder.is_dir() else None

    def _without_hudi(self, files: Sequence[SourceFile]) -> list[SourceFile]:
        self.skipped = list(hudi_folders(file.name.removeprefix(WAREHOUSE) for file in files if file.kind == "hudi"))
        return [file for file in files if file.kind != "hudi" and not file.name.startswith("home/dropped/")]

    def _copy(self, file: SourceFile, folder: Path) -> None:
        tree, name = self.target.place_of(file.name)
        if file.kind not in ("hudi", "home", "raw") and tree.size(name) == file.size:
            return  # from an earlier call: the name of an immutable file is unique
        local = folder / hashlib.sha256(file.name.encode()).hexdigest()
        self.source.copy(file.name, local)
        tree.move_in(name, local)
        local.unlink(missing_ok=True)
        self.written.append(file.name)

    # ---- files with paths ---------------------------------------------------------------------------------------

    def _write(self, name: str, content: bytes) -> None:
        tree, place = self.target.place_of(name)
        tree.write(place, content)
        self._sizes[name] = len(content)
        self.written.append(name)

    def _manifest(self, name: str) -> None:
        with _explained(name):
            self._write(name, relocate.move_manifest(self.source.read(name), self.move, self._moved_deletes))

    def _manifest_list(self, name: str) -> None:
        with _explained(name):
            self._write(name, relocate.move_manifest_list(self.source.read(name), self.move, self._length_of))

    def _metadata(self, name: str) -> None:
        with _explained(name):
            self._write(name, relocate.move_metadata(name, self.source.read(name), self.move))

    def _length_of(self, uri: str) -> int:
        return self._sizes[WAREHOUSE + self._old.of(uri)]

    def _moved_deletes(self, uri: str, file_format: str) -> MovedDeletes | None:
        name = WAREHOUSE + self._old.of(uri)
        if name not in self._deletes:
            if name not in self.source.files:
                return None
            moved = relocate.move_deletes(self.source.read(name), file_format, self.move)
            self._write(name, moved.content)
            self._deletes[name] = moved
        return self._deletes[name]


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Translate the errors of a damaged file."""
    try:
        yield
    except (ValueError, KeyError, EOFError) as exc:
        raise TableError(f"{name} is damaged: {exc}.", "lake verify") from exc
