"""Everything that a copy of a lake must hold: the catalog of one moment, and the files that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from itertools import chain

from lakehouse.copies.lake_parts import HOME, RAW, WAREHOUSE, LakeParts
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import LakeError, TableError
from lakehouse.core.state import CatalogState, TableEntry
from lakehouse.formats.iceberg.references import ReferenceReader
from lakehouse.storage.tree import UNFINISHED, FileStat, LocalTree, Tree

#: What a backup takes of the lake's folder, beside the warehouse. Never secrets.json.
_HOME_FOLDERS = ("runs", "dropped")
_HOME_FILES = ("keys.json",)
_HUDI = "/.hoodie/hoodie.properties"
_HUDI_INDEX = "/.hoodie/metadata/"
#: Kinds of files that never change under their name.
IMMUTABLE = ("metadata", "manifest-list", "manifest", "data", "position-deletes", "equality-deletes", "statistics")


@dataclass(frozen=True)
class ContentFile:
    """A file of a lake."""

    name: str
    """Relative to the lake, with the part that it belongs to: `warehouse/shop/orders/data/…`, `home/runs/…`."""
    kind: str
    """As in `NeededFile`; and hudi, raw, home."""
    size: int
    modified_ns: int = 0


@dataclass(frozen=True)
class Content:
    """What a lake holds at one moment."""

    state: CatalogState
    files: Mapping[str, ContentFile]
    """By name."""
    hudi: tuple[str, ...] = ()
    """The folders of Hudi tables in the warehouse."""
    notes: tuple[str, ...] = field(default=())
    """What is missing, and why."""
    left_out: tuple[str, ...] = field(default=())
    """The damaged tables that are not in the state, and the file that each lacks."""


class FileVanishedError(TableError):
    """A file that the catalog referred to a moment ago is gone, or was never there."""

    code = "file_missing"


def take_content(parts: LakeParts, leave_out: bool = False) -> Content:
    """Read the catalog in one transaction, then list the files that it needs.

    The files are immutable and new ones get new names, so that writers need not wait. FileVanishedError if one is missing.

    Args:
        leave_out: leave a table out of which a file is missing or cannot be read, instead of raising.
    """
    state = parts.catalog.dump_state()
    stats = {stat.name: stat for stat in parts.warehouse.list() if not _is_scratch(stat.name)}
    listing = _Listing(parts, stats, ReferenceReader(parts.files), leave_out)
    listing.add_tables(state)
    hudi = listing.add_hudi()
    listing.add_raw_and_home()
    left_out = tuple(dict.fromkeys(listing.left_out.values()))
    notes = (*state.missing, *listing.notes, *left_out)
    return Content(state.without(listing.left_out), listing.files, hudi, notes, left_out)


def hudi_folders(names: Iterable[str]) -> tuple[str, ...]:
    """Return the folders of Hudi tables among the names of files."""
    folders = (name.removesuffix(_HUDI) for name in names if name.endswith(_HUDI) and _HUDI_INDEX not in name)
    return tuple(sorted(folders))


def hudi_files(tree: Tree, folder: str) -> list[ContentFile]:
    """Return the files of a Hudi table."""
    return [
        ContentFile(WAREHOUSE + stat.name, "hudi", stat.size, stat.modified_ns)
        for stat in tree.list(folder)
        if not _is_scratch(stat.name)
    ]


def _is_scratch(name: str) -> bool:
    """Whether a file is not copied: it is unfinished, or a checksum of Hadoop, which the copy computes again."""
    return name.endswith((UNFINISHED, ".writing")) or is_checksum(name)


def is_checksum(name: str) -> bool:
    """Whether a file is the checksum that Hadoop stores beside another one."""
    last = name.rpartition("/")[2]
    return last.startswith(".") and last.endswith(".crc")


@dataclass
class _Listing:
    parts: LakeParts
    stats: Mapping[str, FileStat]
    references: ReferenceReader
    leave_out: bool = False
    left_out: dict[str, str] = field(default_factory=dict)
    """Why tables are left out, by pointer."""
    files: dict[str, ContentFile] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add_tables(self, state: CatalogState) -> None:
        """Add the files of all Iceberg tables and views."""
        done: set[str] = set()
        for by, entry in state.entries():
            if entry.pointer not in done:
                done.add(entry.pointer)
                try:
                    self._add_table(entry.pointer)
                except (LakeError, FileNotFoundError) as exc:
                    self._leave_out(by, entry, exc)
        expired = 0
        for logged in state.logged():
            if logged.pointer not in done:
                done.add(logged.pointer)
                try:
                    self._add_table(logged.pointer)
                except (LakeError, FileNotFoundError):
                    expired += 1
        if expired:
            self.notes.append(f"{expired} states in the log have expired; their entries are kept without files")

    def _leave_out(self, by: str, entry: TableEntry, exc: LakeError | FileNotFoundError) -> None:
        """Note a table of which a file cannot be read, or raise."""
        if isinstance(exc, LakeError):
            if not self.leave_out:
                raise exc
            self.left_out[entry.pointer] = f"{entry.table} ({by}): {exc.message.rstrip('.')}"
            return
        file = exc.filename or entry.pointer
        if not self.leave_out:
            raise FileVanishedError(
                f"A file of {entry.table} ({by}) is missing: {file}.",
                "Find out what is damaged: lake verify. Then restore or drop the table.",
            ) from exc
        self.left_out[entry.pointer] = f"{entry.table} ({by}): its file {file} is missing"

    def _add_table(self, pointer: str) -> None:
        # A list first, so that a state with a missing file adds nothing.
        files = list(self._table_files(pointer))
        self.files.update((file.name, file) for file in files)

    def _table_files(self, pointer: str) -> Iterator[ContentFile]:
        names = self.parts.names
        for needed in self.references.table(pointer):
            yield self._stat(names.of(needed.uri), needed.uri, needed.kind)
        for uri in self.references.metadata(pointer).previous:
            name = names.of(uri)
            if name in self.stats:  # no reader needs it, and it may have expired
                yield self._stat(name, uri, "metadata")

    def _stat(self, name: str, uri: str, kind: str) -> ContentFile:
        known = self.files.get(WAREHOUSE + name)
        if known is not None:
            return known
        stat = self.stats.get(name)
        if stat is None:
            stat = self._stat_elsewhere(name, uri)
        return ContentFile(WAREHOUSE + name, kind, stat.size, stat.modified_ns)

    def _stat_elsewhere(self, name: str, uri: str) -> FileStat:
        """Return a file that the listing has not: it is newer, or outside the warehouse."""
        tree, place = self.parts.source_of(WAREHOUSE + name)
        size = tree.size(place)
        if size is None:
            raise FileNotFoundError(2, "there is no such file", uri)
        return FileStat(name, size, 0)

    def add_hudi(self) -> tuple[str, ...]:
        """Add the files of Hudi tables, and return their folders."""
        folders = hudi_folders(self.stats)
        for folder in folders:
            self.files.update((file.name, file) for file in hudi_files(self.parts.warehouse, folder))
        return folders

    def add_raw_and_home(self) -> None:
        """Add the source files of pipelines, the records of runs, dropped Hudi tables and the hashes of keys."""
        for stat in self.parts.raw.list():
            if not _is_scratch(stat.name):
                self._add(RAW, stat, "raw")
        home = LocalTree(self.parts.home)
        for stat in chain.from_iterable(home.list(folder) for folder in _HOME_FOLDERS):
            if not _is_scratch(stat.name) and not stat.name.startswith("runs/."):
                self._add(HOME, stat, "home")
        for name in _HOME_FILES:
            size = home.size(name)
            if size is not None:
                self._add(HOME, FileStat(name, size, (home.folder / name).stat().st_mtime_ns), "home")

    def _add(self, area: str, stat: FileStat, kind: str) -> None:
        self.files[area + stat.name] = ContentFile(area + stat.name, kind, stat.size, stat.modified_ns)
