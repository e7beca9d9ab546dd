"""The folders and files that a caller with limits may name in a request for a table.

Whoever reads a table reads every file that its metadata names. So a caller who may not read all tables may not name files
freely: what it names lies below its own table and is not part of a table that it may not read (decision 34).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lakehouse.core.names import CATALOG, MAIN
from lakehouse.rest_catalog.errors import ForbiddenError, RestError
from lakehouse.rest_catalog.locations import has_unsafe_part, is_below, is_path_property, normalize, table_locations

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata

    from lakehouse.core.names import TableName
    from lakehouse.core.refs import ReachableFile
    from lakehouse.rest_catalog.backend import CatalogBackend
    from lakehouse.rest_catalog.messages import CatalogRequest

_HINT = "A key with limits commits files that it has written below the location of the table."


class OwnFiles:
    """Refuses the folders and files that a caller with limits names for one table and that are not the table's own."""

    def __init__(self, backend: CatalogBackend, request: CatalogRequest, name: TableName) -> None:
        self._backend, self._request, self._name = backend, request, name
        self._caller = request.caller

    # ---- folders ------------------------------------------------------------------------------------------------

    def free_location(self, default: str, unique: str) -> str:
        """Return the location for a new table: the default one, or another if a table has files there."""
        taken = self._caller.is_limited and self._overlaps_other(normalize(default))
        return f"{default}-{unique}" if taken else default

    def check_location(self, location: str, before: str = "") -> None:
        """Refuse a location outside the folder of the namespace, or one that overlaps with the folder of another table."""
        if not self._caller.is_limited or location == before:
            return
        folder = normalize(location.rstrip("/"))
        if not is_below(folder, self._namespace_folder) or self._leads_away(folder):
            raise self._refused(f"the location must be below {self._namespace_folder}/")
        if self._overlaps_other(folder):
            raise self._refused("the location is not free", "Leave it out: the catalog chooses one.")

    def check_paths(self, location: str, properties: Mapping[str, str], before: Mapping[str, str]) -> None:
        """Refuse `write.*.path` properties that lead out of the table's location, unless the table has them already."""
        if not self._caller.is_limited:
            return
        for key, value in properties.items():
            folder = normalize(value.rstrip("/"))
            own = folder == normalize(location) or is_below(folder, normalize(location))
            if is_path_property(key) and before.get(key) != value and (not own or self._leads_away(folder)):
                raise self._refused(f"the property {key} must name a folder of the table, below {location}/")

    def check_namespace_location(self, location: str) -> None:
        """Refuse a location of the namespace outside its own folder or on that of a table."""
        if not self._caller.is_limited:
            return
        default = normalize(self._backend.default_namespace_location(self._name.namespace))
        folder = normalize(location.rstrip("/"))
        if (folder != default and not is_below(folder, default)) or self._leads_away(folder):
            raise self._refused(f"the location of the namespace must be below {default}/")

    def _leads_away(self, location: str) -> bool:
        return self._backend.warehouse.has_link(location)

    @cached_property
    def _namespace_folder(self) -> str:
        own = self._backend.namespace_location(self._request.branch, self._name.namespace)
        return normalize(own.rstrip("/"))

    def _overlaps_other(self, folder: str) -> bool:
        others = [other for table, other in self._backend.folders.all() if table != self._name]
        # Namespaces have levels, so the folder of another namespace may be inside that of this one.
        inner = (normalize(self._backend.default_namespace_location(key)) for key in self._hidden_namespaces())
        others += [other for other in inner if is_below(other, self._namespace_folder)]
        return any(other == folder or is_below(other, folder) or is_below(folder, other) for other in others)

    def _hidden_namespaces(self) -> set[str]:
        branches = [CATALOG, *self._backend.catalog.branches()]
        keys = {key for branch in branches for key in self._backend.namespaces.keys(branch)}
        return {key for key in keys if not self._caller.sees_namespace(key)}

    # ---- files --------------------------------------------------------------------------------------------------

    def check_registration(self, pointer: str) -> None:
        """Refuse a metadata file that this table does not have, or did not have, on a branch of the caller."""
        if not self._caller.is_limited:
            return
        own = {file.pointer for file in self._metadata_files() if self._may_read(file)}
        earlier = {
            entry.get("metadata-file")
            for known in own
            if self._backend.files.is_present(known)
            for entry in self._backend.files.parsed_json(known).get("metadata-log") or ()
        }
        if pointer not in own | earlier:
            raise self._refused("it registers only metadata that the table has or had on a branch of the key")

    def check_commit(
        self, base: TableMetadata | None, result: TableMetadata, sent: Sequence[Mapping[str, Any]]
    ) -> None:
        """Refuse a commit with a manifest list, a manifest, a data file or statistics that are not the table's own."""
        if not self._caller.is_limited:
            return
        if any("manifests" in update.get("snapshot", ()) for update in sent):
            raise self._refused("a snapshot names its manifests in a manifest list")
        folders = [
            normalize(folder.rstrip("/"))
            for metadata in (base, result)
            if metadata is not None
            for folder in table_locations(metadata.location, metadata.properties)
        ]
        known = _KnownFiles(self._backend, base)
        check = _FileCheck(self._backend, folders, known, self._hidden_folders(), self._hidden_files(folders))
        for file in (*result.statistics, *result.partition_statistics):
            if file.statistics_path not in known.statistics:
                check.file(file.statistics_path)
        for snapshot in result.snapshots:
            if snapshot.manifest_list not in known.manifest_lists:
                check.manifest_list(snapshot.manifest_list)

    def _metadata_files(self) -> list[ReachableFile]:
        return [file for file in self._backend.catalog.reachable("") if file.table == self._name]

    def _may_read(self, file: ReachableFile) -> bool:
        kind, _, name = file.by.rpartition(" ")
        if kind in ("branch", "base of"):
            return self._caller.uses(name)
        # What main had is in its log. A tag and a dropped table may come from any branch.
        return file.by == MAIN or kind == "log" if self._caller.uses(MAIN) else False

    def _hidden_folders(self) -> list[str]:
        return [
            folder
            for table, folder in self._backend.folders.all()
            if table != self._name and not self._caller.sees_namespace(table.namespace)
        ]

    def _hidden_files(self, folders: Sequence[str]) -> Iterator[str]:
        """Return, one after the other, the files that tables in these folders have only on branches of others."""
        if self._caller.uses(MAIN) and all(self._caller.uses(branch) for branch in self._backend.catalog.branches()):
            return
        shown = {file.pointer for file in self._metadata_files() if self._may_read(file)}
        for file in self._backend.catalog.reachable(""):
            if file.pointer in shown or not any(is_below(normalize(file.pointer), folder) for folder in folders):
                continue
            if self._backend.files.is_present(file.pointer) and "snapshots" in self._backend.files.parsed_json(
                file.pointer
            ):
                yield file.pointer
                yield from _KnownFiles(self._backend, self._backend.files.table(file.pointer)).all()

    def _refused(self, what: str, hint: str = "Use a key without limits.") -> ForbiddenError:
        return ForbiddenError(f"The key {self._caller.id} is limited: {what}.", hint)


class _KnownFiles:
    """The files that a table has already."""

    def __init__(self, backend: CatalogBackend, metadata: TableMetadata | None) -> None:
        self._listed, snapshots = backend.listed, metadata.snapshots if metadata else ()
        self.manifest_lists = {snapshot.manifest_list for snapshot in snapshots}
        files = (*metadata.statistics, *metadata.partition_statistics) if metadata else ()
        self.statistics = {file.statistics_path for file in files}

    @cached_property
    def manifests(self) -> set[str]:
        return {path for listing in self.manifest_lists for path in self._read(self._listed.manifests, listing)}

    @cached_property
    def data_files(self) -> set[str]:
        return {path for manifest in self.manifests for path in self._read(self._listed.data_files, manifest)}

    def all(self) -> Iterator[str]:
        yield from (*self.statistics, *self.manifest_lists, *self.manifests, *self.data_files)

    @staticmethod
    def _read(listed: Callable[[str], tuple[str, ...]], path: str) -> tuple[str, ...]:
        try:
            return listed(path)
        except (OSError, ValueError, RestError):
            return ()  # nobody reads what a damaged file lists


class _FileCheck:
    """Checks the files of one commit."""

    def __init__(
        self,
        backend: CatalogBackend,
        folders: Sequence[str],
        known: _KnownFiles,
        hidden_folders: Sequence[str],
        hidden_files: Iterator[str],
    ) -> None:
        self._backend, self._folders, self._known = backend, folders, known
        self._hidden_folders, self._hidden = hidden_folders, hidden_files

    @cached_property
    def _hidden_files(self) -> set[str]:
        return {normalize(path) for path in self._hidden}

    def file(self, path: str) -> None:
        """Refuse a file outside the table's folders, one of a table that the caller may not read, or one of another branch."""
        plain = normalize(path)
        inside = any(is_below(plain, folder) for folder in self._folders)
        if not inside or has_unsafe_part(plain) or self._backend.warehouse.has_link(plain):
            raise ForbiddenError("The commit names a file that is not below the location of its table.", _HINT)
        if any(is_below(plain, folder) for folder in self._hidden_folders) or plain in self._hidden_files:
            raise ForbiddenError("The commit names a file that is not one of its table.", _HINT)

    def manifest_list(self, path: str) -> None:
        """Check a new manifest list and what it lists."""
        self.file(path)
        for manifest in self._read(self._backend.listed.manifests, path):
            if manifest not in self._known.manifests:
                self.file(manifest)
                self._data_files(self._read(self._backend.listed.data_files, manifest))

    def _data_files(self, paths: Iterable[str]) -> None:
        for path in paths:
            try:
                self.file(path)
            except ForbiddenError:
                # An owner may have added files of another folder; whoever rewrites a manifest names them again.
                if path not in self._known.data_files:
                    raise

    def _read(self, listed: Callable[[str], tuple[str, ...]], path: str) -> tuple[str, ...]:
        try:
            return listed(path)
        except (OSError, ValueError) as exc:
            raise RestError(f"{path} cannot be read as a file of Iceberg.") from exc
