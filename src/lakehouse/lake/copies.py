"""Copies of a lake: backups, restores, shallow clones and migrations to another profile; and the check of a lake's files."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.config.profiles import DEFAULT_CATALOG, EMBEDDED, PROFILES, resolve_profile
from lakehouse.config.settings import Settings
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import NotSupportedError, TableExistsError, UnknownChoiceError
from lakehouse.core.names import MAIN
from lakehouse.core.registry import is_kind, kinds
from lakehouse.core.state import CatalogState
from lakehouse.lake.backend import Backend, open_backend
from lakehouse.storage.local import forget_restoration, restoration

if TYPE_CHECKING:
    from lakehouse.copies.backup import BackupReport
    from lakehouse.copies.backup_store import BackupStore, Manifest
    from lakehouse.copies.clone import CloneReport
    from lakehouse.copies.findings import VerifyReport
    from lakehouse.copies.lake_parts import LakeParts
    from lakehouse.copies.restore import CopyReport, LakeSource
    from lakehouse.engines.duckdb import DuckDB
    from lakehouse.tables.directory import Tables

Progress = Callable[[str], None]

#: The steps of a migration, as its marker in the lake's folder states them.
_BEGUN, _DONE = "begun", "done"


def _silent(text: str) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class LakeCopies:
    """Copies and checks one open lake."""

    backend: Backend
    duckdb: DuckDB
    tables: Tables

    def backup(self, dest: str | Path, full: bool = False, progress: Progress = _silent) -> BackupReport:
        """Back the lake up to a folder or s3://bucket/prefix; contents that are there already are not copied again."""
        from lakehouse.copies.backup import back_up

        return back_up(parts_of(self.backend), backup_store(self.backend.settings, dest), full, progress)

    def verify(
        self, tables: Sequence[str] = (), deep: bool = False, against: str | Path = "", progress: Progress = _silent
    ) -> VerifyReport:
        """Check every file of the lake, or of some tables.

        Args:
            deep: also read all data.
            against: compare with the newest backup in this folder or bucket.
        """
        from lakehouse.copies.verify import Verifier

        store = backup_store(self.backend.settings, against) if against else None
        return Verifier(parts_of(self.backend), self.tables, self.duckdb, progress).run(tables, deep, store)

    def clone(self, home: str | Path, from_ref: str = MAIN) -> CloneReport:
        """Create a lake in another folder that shares this lake's data files and never changes them."""
        from lakehouse.copies.clone import clone_shallow

        if self.backend.settings.profile != EMBEDDED:
            raise NotSupportedError(
                f"A lake of the profile {self.backend.settings.profile} cannot be cloned.",
                "Create a branch, which is free as well: lake branch create",
            )
        target = Path(home).expanduser().absolute()
        settings = replace(self.backend.settings, home=target, warehouse="")
        with restoration(target, f"lake clone --shallow {shlex.quote(str(target))}") as resumes:
            parts = _open_empty(settings, CatalogState(), resumes)
            return clone_shallow(parts_of(self.backend), parts, from_ref, resumes)

    def migrate(self, profile: str, progress: Progress = _silent) -> CopyReport:
        """Copy the lake to the servers of another profile, with its history, branches and tags; this lake stays as it is."""
        from lakehouse.copies.content import take_content
        from lakehouse.copies.restore import LakeSource, check_empty, copy_lake
        from lakehouse.process.files import locked

        target, source = parts_of(open_backend(self.target_settings(profile))), parts_of(self.backend)
        marker = self.backend.home.folder / f"migration-{profile}"
        with locked(self.backend.home.run / "migrate.lock"):
            progress("Reading the catalog")
            lake = LakeSource(source, take_content(source), with_home=source.home != target.home)
            step = marker.read_text() if marker.exists() else ""
            if step == _DONE:
                return self._migrated_before(lake, target)
            check_empty(target, lake.state, resumes=bool(step))
            marker.write_text(_BEGUN)
            report = copy_lake(lake, target, source.kind, progress)
            marker.write_text(_DONE)
            return report

    def _migrated_before(self, source: LakeSource, target: LakeParts) -> CopyReport:
        from lakehouse.copies.restore import CopyReport, is_copied

        state = source.state
        if not is_copied(source, target):
            raise TableExistsError(
                "This lake was migrated before, and one of the two has changed since. Nothing was changed.",
                "Use the migrated lake; or back this one up and restore it elsewhere.",
            )
        return CopyReport(len(state.main), len(state.branches), len(state.tags), len(source.files), 0)

    def target_settings(self, profile: str) -> Settings:
        """Return the settings of this lake's folder with another profile."""
        own = self.backend.settings
        if profile == own.profile or not is_kind(PROFILES, profile):
            raise UnknownChoiceError("--to-profile", profile, {*kinds(PROFILES)} - {own.profile, EMBEDDED})
        if own.profile != EMBEDDED:
            raise NotSupportedError(
                f"Only an embedded lake can be migrated, and this one has the profile {own.profile}.",
                "Use lake backup, and lake restore with the other profile.",
            )
        return resolve_profile(replace(own, profile=profile, warehouse=""))


def restore_lake(settings: Settings, source: str | Path, backup: str = "", progress: Progress = _silent) -> CopyReport:
    """Restore a backup into the empty lake that the settings describe.

    A restore that was killed leaves a folder that cannot be opened as a lake; the same call finishes it.

    Args:
        source: the folder or s3://bucket/prefix with backups.
        backup: its id (default: the newest).
    """
    from lakehouse.copies.restore import BackupSource, copy_lake
    from lakehouse.storage.tree import LocalTree

    store = backup_store(settings, source)
    store.check()
    manifest = store.manifest(backup)
    home = settings.home.expanduser().absolute()
    profile = "" if settings.profile == EMBEDDED else f" --profile {settings.profile}"
    place = shlex.quote(str(home))
    command = f"lake restore {shlex.quote(str(source))} --backup {manifest.id} --home {place}{profile}"
    with restoration(home, command) as resumes:
        target = _open_empty(settings, manifest.state, resumes)
        if resumes and isinstance(target.warehouse, LocalTree):
            target.warehouse.remove_unfinished()
        return copy_lake(BackupSource(store, manifest), target, manifest.catalog, progress)


def list_backups(settings: Settings, dest: str | Path) -> list[Manifest]:
    """Return the backups in a folder or below s3://bucket/prefix, oldest first."""
    store = backup_store(settings, dest)
    store.check()
    return [store.manifest(backup) for backup in store.ids()]


def backup_store(settings: Settings, dest: str | Path) -> BackupStore:
    """Return the backups in a folder or below s3://bucket/prefix."""
    from lakehouse.copies.backup_store import BackupStore
    from lakehouse.storage.tree import open_tree

    return BackupStore(open_tree(str(dest), resolve_profile(settings).s3))


def parts_of(backend: Backend) -> LakeParts:
    """Return the parts of an open lake that hold something."""
    from lakehouse.copies.lake_parts import LakeParts
    from lakehouse.storage.raw import RAW_FOLDER
    from lakehouse.storage.tree import LocalTree, open_tree

    settings = backend.settings
    warehouse = open_tree(backend.warehouse, settings.s3)
    raw = (
        open_tree(f"{warehouse.uri}/{RAW_FOLDER}", settings.s3)
        if settings.warehouse
        else LocalTree(backend.home.folder / "raw")
    )
    return LakeParts(
        catalog=backend.catalog,
        files=backend.files,
        formats=tuple(backend.formats.values()),
        warehouse=warehouse,
        home=backend.home.folder,
        raw=raw,
        kind=settings.catalog.kind or DEFAULT_CATALOG,
    )


def _open_empty(settings: Settings, wanted: CatalogState, resumes: bool) -> LakeParts:
    """Open the target of a copy. If it is refused, its restoration is withdrawn, because nothing was written."""
    from lakehouse.copies.restore import check_empty

    try:
        target = parts_of(open_backend(settings))
        check_empty(target, wanted, resumes)
    except BaseException:
        if not resumes:
            forget_restoration(settings.home)
        raise
    return target
