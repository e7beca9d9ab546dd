"""Lists every file that a lake needs: what main, a branch, a tag, a kept run, a dropped table or the log refers to.

Everything that deletes, copies or checks files uses this module. `complete` is False where the catalog cannot know all references,
or where a file that must be read is missing: then nothing may be deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from lakehouse.core.catalog import Catalog
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import LakeError, NotSupportedError
from lakehouse.core.files import Files
from lakehouse.core.format import TableFormat
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.refs import ReachableFile
from lakehouse.formats.iceberg.references import MetadataFiles, NeededFile, ReferenceReader, normalized

_LOG = "log "


@dataclass(frozen=True)
class Problem:
    """A reference that cannot be followed."""

    table: TableName
    by: str
    """What refers to it, as in `ReachableFile`."""
    uri: str
    reason: str
    missing: bool
    """The file does not exist; otherwise it cannot be read."""


@dataclass(frozen=True)
class HudiFolder:
    """A Hudi table. Every file in its folder belongs to it."""

    table: TableName
    location: str


@dataclass(frozen=True)
class Inventory:
    """The files that a lake needs at one moment."""

    references: tuple[ReachableFile, ...]
    """The metadata files that the catalog refers to."""
    tables: Mapping[str, MetadataFiles]
    """What each of these metadata files states, by its URI; those with a problem are missing."""
    files: Mapping[str, NeededFile]
    """Every needed file of Iceberg tables and views by its normalized URI."""
    hudi: tuple[HudiFolder, ...]
    problems: tuple[Problem, ...]
    reason: str = ""
    """Why the catalog cannot list all references; empty if it can."""

    @property
    def complete(self) -> bool:
        """Whether every needed file is listed."""
        return not self.reason and not self.problems

    def needs(self, uri: str) -> bool:
        """Return whether a file is listed."""
        return normalized(uri) in self.files

    def locations(self) -> dict[str, set[str]]:
        """Return the folders of all Iceberg tables, each with the UUIDs of the tables in it."""
        locations: dict[str, set[str]] = {}
        for table in self.tables.values():
            if not table.is_view:
                locations.setdefault(normalized(table.location).rstrip("/"), set()).add(table.uuid)
        return locations


@dataclass
class Inventories:
    """Takes inventories of a lake; a second one reads only what is new."""

    catalog: Catalog
    files: Files
    formats: Sequence[TableFormat] = ()
    references: ReferenceReader = field(init=False)

    def __post_init__(self) -> None:
        self.references = ReferenceReader(self.files)

    def take(self, since: str = "", previous: Inventory | None = None) -> Inventory:
        """List the files that are needed now.

        Args:
            since: what only a log entry before this time (ISO 8601) needs is not listed.
            previous: an earlier inventory, which is returned if the catalog's references are still the same.
        """
        try:
            references, reason = tuple(self.catalog.reachable(since)), ""
        except NotSupportedError as exc:
            references, reason = self._known(), str(exc)
        if previous is not None and previous.complete and set(references) == set(previous.references):
            return previous
        tables: dict[str, MetadataFiles] = {}
        needed: dict[str, NeededFile] = {}
        problems: list[Problem] = []
        for reference in _strongest(references):
            try:
                files = list(self.references.table(reference.pointer))
                tables[reference.pointer] = self.references.metadata(reference.pointer)
            except (LakeError, OSError) as exc:
                if not _is_stale(reference, exc):
                    problems.append(_problem(reference, exc))
                continue
            needed.update((normalized(file.uri), file) for file in files)
        hudi = self._hudi(problems)
        return Inventory(references, tables, needed, hudi, tuple(problems), reason)

    def _known(self) -> tuple[ReachableFile, ...]:
        """Return what main and the branches hold now, where the catalog cannot list all references."""
        references = []
        for branch in (MAIN, *self.catalog.branches()):
            catalog = self.catalog.on(branch)
            by = MAIN if branch == MAIN else f"branch {branch}"
            pointers = catalog.pointers(catalog.tables())
            references += [ReachableFile(table, pointer, by) for table, pointer in pointers.items() if pointer]
        for tag in self.catalog.tags():
            pointers = dict(self.catalog.tag_pointers(tag.name) or {})
            references += [
                ReachableFile(table, pointer, f"tag {tag.name}") for table, pointer in pointers.items() if pointer
            ]
        return tuple(references)

    def _hudi(self, problems: list[Problem]) -> tuple[HudiFolder, ...]:
        folders = []
        for tables in self.formats:
            if tables.name != "hudi":
                continue
            for table in tables.tables():
                try:
                    folders.append(HudiFolder(table, tables.describe(table).location))
                except LakeError as exc:
                    problems.append(Problem(table, MAIN, str(table), str(exc), missing=False))
        return tuple(folders)


def _strongest(references: Iterable[ReachableFile]) -> list[ReachableFile]:
    """Return one reference for each metadata file: that of the log only where nothing else refers to it."""
    strongest: dict[str, ReachableFile] = {}
    for reference in sorted(references, key=lambda reference: reference.by.startswith(_LOG)):
        strongest.setdefault(reference.pointer, reference)
    return list(strongest.values())


def _is_stale(reference: ReachableFile, exc: Exception) -> bool:
    """Whether only the log refers to files that an earlier maintenance with a shorter retention has removed."""
    return reference.by.startswith(_LOG) and isinstance(exc, FileNotFoundError)


def _problem(reference: ReachableFile, exc: Exception) -> Problem:
    missing = isinstance(exc, FileNotFoundError)
    uri = str(getattr(exc, "filename", None) or reference.pointer)
    reason = "there is no such file" if missing else str(exc)
    return Problem(reference.table, reference.by, uri, reason, missing)
