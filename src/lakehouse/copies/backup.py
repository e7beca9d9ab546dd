"""Back a lake up while writers work: the catalog is read in one transaction, then immutable files are copied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from lakehouse.copies.backup_store import BackupError, BackupStore, Manifest, StoredFile
from lakehouse.copies.content import (
    IMMUTABLE,
    Content,
    ContentFile,
    FileVanishedError,
    hudi_files,
    take_content,
)
from lakehouse.copies.lake_parts import LakeParts
from lakehouse.core.dataclass import dataclass
from lakehouse.core.progress import report
from lakehouse.core.when import new_id
from lakehouse.storage.tree import LocalTree

Progress = Callable[[str], None]

#: Attempts where maintenance removes files meanwhile, or a Hudi table changes while it is copied.
_ATTEMPTS = 5
_THREADS = 8


@dataclass(frozen=True)
class BackupReport:
    """What a backup holds, and what was new in it."""

    id: str
    dest: str
    files: int
    bytes: int
    copied_files: int
    copied_bytes: int
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """Damaged tables that it does not hold, and why; also among the notes."""


def back_up(
    parts: LakeParts, store: BackupStore, full: bool = False, progress: Progress = lambda _: None
) -> BackupReport:
    """Copy everything that the lake holds and that the store has not; a damaged table is left out, and the report says so.

    Args:
        full: read every file again, also those that an earlier backup has under the same name, size and time.
    """
    _refuse_own_folder(parts.home, store)
    store.prepare()
    known = {} if full else _known(parts, store)
    for attempt in range(1, _ATTEMPTS + 1):
        progress("Reading the catalog")
        try:
            # Maintenance may have removed what the catalog referred to a moment ago; a file that was missing before stays so.
            content = take_content(parts, leave_out=attempt == _ATTEMPTS)
            copier = _Copier(parts, store, known, progress)
            stored = copier.copy_all(content)
            break
        except FileVanishedError:
            if attempt == _ATTEMPTS:
                raise
    made_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    manifest = Manifest(new_id(), made_at, parts.warehouse.uri, parts.kind, content.state, stored, content.notes)
    store.save(manifest)
    return BackupReport(
        manifest.id,
        store.tree.uri,
        len(stored),
        manifest.size,
        len(copier.copied),
        sum(file.size for file in copier.copied),
        content.notes,
        content.left_out,
    )


def _refuse_own_folder(home: Path, store: BackupStore) -> None:
    if isinstance(store.tree, LocalTree) and store.tree.folder.resolve().is_relative_to(home.resolve()):
        raise BackupError(
            f"{store.tree.folder} is in the lake's own folder.", "Name a folder elsewhere, best on another disk."
        )


def _known(parts: LakeParts, store: BackupStore) -> dict[str, StoredFile]:
    """Return the files of the newest backup of this lake whose contents are still stored."""
    ids = store.ids()
    if not ids:
        return {}
    newest = store.manifest(ids[-1])
    if newest.warehouse != parts.warehouse.uri:
        return {}  # the same names may mean other files
    return dict(newest.files)


@dataclass
class _Copier:
    parts: LakeParts
    store: BackupStore
    known: Mapping[str, StoredFile]
    progress: Progress
    copied: list[StoredFile] = field(default_factory=list)
    _done: int = 0
    _total: int = 0

    def __post_init__(self) -> None:
        self._contents = self.store.contents()

    def copy_all(self, content: Content) -> dict[str, StoredFile]:
        """Store all files and return them by name."""
        self.progress(f"Copying {len(content.files)} files")
        self._done, self._total = 0, sum(file.size for file in content.files.values())
        rest = [file for file in content.files.values() if file.kind != "hudi"]
        stored = self._copy(rest)
        for folder in content.hudi:
            stored |= self._copy_hudi(folder)
        return {file.name: file for file in sorted(stored.values(), key=lambda file: file.name)}

    def _copy(self, files: Iterable[ContentFile]) -> dict[str, StoredFile]:
        with ThreadPoolExecutor(_THREADS) as threads:
            stored = {}
            for file in threads.map(self._store_file, files):
                if file is not None:
                    stored[file.name] = file
                    self._done += file.size
                    report(min(self._done, self._total), self._total, "bytes")
            return stored

    def _copy_hudi(self, folder: str) -> dict[str, StoredFile]:
        """Copy a Hudi table. Its timeline and index change in place, so a copy counts if neither did meanwhile."""
        for _ in range(_ATTEMPTS):
            before = hudi_files(self.parts.warehouse, folder)
            try:
                stored = self._copy(before)
            except FileVanishedError:
                continue
            if _timeline(hudi_files(self.parts.warehouse, folder)) == _timeline(before):
                return stored
        raise BackupError(
            f"The Hudi table in {folder} changed {_ATTEMPTS} times while it was copied.",
            "Pause what writes to it, and try again.",
        )

    def _store_file(self, file: ContentFile) -> StoredFile | None:
        known = self.known.get(file.name)
        if known is not None and _is_unchanged(file, known) and self._contents.get(known.sha256) == known.size:
            return known
        try:
            with self._open(file) as source:
                size, sha256 = self.store.add(source)
        except FileNotFoundError as exc:
            if file.kind in ("home", "raw"):
                return None  # the record of a run or a source file that was removed meanwhile
            raise FileVanishedError(f"{file.name} vanished while it was copied.", "Try again.") from exc
        if file.kind in IMMUTABLE and size != file.size:
            raise FileVanishedError(f"{file.name} changed while it was copied.", "Is it damaged? lake verify")
        done = StoredFile(file.name, file.kind, size, sha256, file.modified_ns)
        self.copied.append(done)
        return done

    def _open(self, file: ContentFile) -> BinaryIO:
        tree, name = self.parts.source_of(file.name)
        return tree.open(name)


def _is_unchanged(file: ContentFile, known: StoredFile) -> bool:
    if file.size != known.size:
        return False
    return bool(file.modified_ns) and file.modified_ns == known.modified_ns


def _timeline(files: Iterable[ContentFile]) -> set[ContentFile]:
    """Return what a commit to a Hudi table changes."""
    return {file for file in files if "/.hoodie/" in file.name}
