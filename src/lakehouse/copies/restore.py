"""Restore a backup, or copy a lake, into an empty one: files first, the catalog last, then compare the two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from lakehouse.copies.backup_store import BackupError, BackupStore, Manifest, StoredFile
from lakehouse.copies.content import Content, ContentFile
from lakehouse.copies.equality import Difference, Side, differences
from lakehouse.copies.lake_parts import WAREHOUSE, FileNames, LakeParts
from lakehouse.copies.transfer import Source, Transfer
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import TableExistsError
from lakehouse.core.state import CatalogState
from lakehouse.tables.fill import fill, has_main

Progress = Callable[[str], None]


@dataclass(frozen=True)
class CopyReport:
    """What was copied into a lake."""

    tables: int
    branches: int
    tags: int
    files: int
    written: int
    """The files that this call wrote; an earlier one may have written others."""
    notes: tuple[str, ...] = ()
    """What the target cannot hold."""


@dataclass(frozen=True)
class BackupSource:
    """Implements `Source` for a backup."""

    store: BackupStore
    manifest: Manifest

    @property
    def warehouse(self) -> str:
        return self.manifest.warehouse

    @property
    def state(self) -> CatalogState:
        return self.manifest.state

    @property
    def files(self) -> Mapping[str, StoredFile]:
        return self.manifest.files

    def read(self, name: str) -> bytes:
        return self.store.read(self._file(name))

    def copy(self, name: str, into: Path) -> None:
        self.store.copy(self._file(name), into)

    def _file(self, name: str) -> StoredFile:
        if name not in self.manifest.files:
            raise BackupError(f"The backup {self.manifest.id} lacks {name}.", "Use another one: --backup ID")
        return self.manifest.files[name]


@dataclass(frozen=True)
class LakeSource:
    """Implements `Source` for a lake."""

    parts: LakeParts
    content: Content
    with_home: bool = True
    """Also what is in the lake's folder: not for a copy that shares the folder."""

    @property
    def warehouse(self) -> str:
        return self.parts.warehouse.uri

    @property
    def state(self) -> CatalogState:
        return self.content.state

    @property
    def files(self) -> Mapping[str, ContentFile]:
        if self.with_home:
            return self.content.files
        return {name: file for name, file in self.content.files.items() if not name.startswith("home/")}

    def read(self, name: str) -> bytes:
        tree, place = self.parts.source_of(name)
        return tree.read(place)

    def copy(self, name: str, into: Path) -> None:
        tree, place = self.parts.source_of(name)
        with tree.open(place) as source, into.open("wb") as out:
            while chunk := source.read(1 << 20):
                out.write(chunk)


def check_empty(target: LakeParts, wanted: CatalogState, resumes: bool = False) -> None:
    """Refuse a target that holds something.

    A metastore or a REST server may hold tables of other programs, so only those of the same names count there.

    Args:
        wanted: what is to be copied there.
        resumes: the files are those of an earlier call that was interrupted.
    """
    if resumes:
        return
    held, names = target.catalog.dump_state(), {entry.table for entry in wanted.main}
    tables = list(dict.fromkeys(entry.table for _, entry in held.entries()))
    is_shared = target.catalog.capabilities.shared
    if is_shared:
        tables = [table for table in tables if table in names]
    first = None if is_shared else next(iter(target.warehouse.list()), None)
    if tables or (not is_shared and not held.is_empty):
        what = ", ".join(str(table) for table in tables[:5]) or "a log"
        raise TableExistsError(
            f"The target is not empty: it holds {what}. Nothing was changed.",
            "Use another folder (--home DIR), an empty database and an empty bucket.",
        )
    if first is not None:
        raise TableExistsError(
            f"{target.warehouse.uri} is not empty: it holds {first.name}. Nothing was changed.",
            "Use another folder (--home DIR) or another place in a bucket (LAKE_WAREHOUSE).",
        )


def is_copied(source: Source, target: LakeParts) -> bool:
    """Return whether main of the target is a copy of the source's main."""
    held = target.catalog.dump_state().moved(target.names.of)
    wanted = source.state.moved(FileNames(source.warehouse).of)
    return has_main(held, wanted, target.catalog.capabilities.shared)


def copy_lake(source: Source, target: LakeParts, kind: str, progress: Progress = lambda _: None) -> CopyReport:
    """Copy everything into an empty lake, whose catalog is filled last; an error if the result is not equal.

    Args:
        kind: the kind of the source's catalog.
    """
    transfer = Transfer(source, target, progress)
    state = transfer.run()
    progress("Comparing every snapshot")
    left = side_of(source)
    _require_equal(list(differences(left, Side(state, target.names, target.files.read))))
    progress("Filling the catalog")
    notes = fill(target.catalog, state)
    loaded = Side(target.catalog.dump_state(), target.names, target.files.read)
    if not target.catalog.capabilities.shared:
        held = _without_noted(source.state, notes)
        _require_equal(list(differences(replace(left, state=held), loaded, same_kind=target.kind == kind == "sql")))
    hudi = [f"Hudi table {folder}: the target has no place for Hudi tables" for folder in transfer.skipped]
    return CopyReport(
        len(state.main),
        len(state.branches),
        len(state.tags),
        len(source.files),
        len(transfer.written),
        (*notes, *hudi),
    )


def _without_noted(state: CatalogState, notes: list[str]) -> CatalogState:
    """Return the state without branches and tags that the target could not take."""
    noted = {note.partition(":")[0] for note in notes}
    return replace(
        state,
        branches=tuple(branch for branch in state.branches if f"branch {branch.ref.name}" not in noted),
        tags=tuple(tag for tag in state.tags if f"tag {tag.ref.name}" not in noted),
    )


def side_of(source: Source) -> Side:
    """Return the source as one side of a comparison."""
    names = FileNames(source.warehouse)
    return Side(source.state, names, lambda uri: source.read(WAREHOUSE + names.of(uri)))


def _require_equal(unequal: list[Difference]) -> None:
    if unequal:
        first = unequal[0]
        raise BackupError(
            f"The copy is not equal in {len(unequal)} places: {first.ref} {first.table}: {first.what}.",
            "The source is unchanged. lake verify reports whether it is damaged.",
        )
