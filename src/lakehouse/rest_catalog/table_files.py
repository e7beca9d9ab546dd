"""The folders and files that the tables of a catalog have. Neither metadata files nor manifests change, so each is read once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from lakehouse.pyiceberg_internals import listed_data_files, listed_manifests
from lakehouse.rest_catalog.errors import NotFoundError, RestError
from lakehouse.rest_catalog.locations import normalize, table_locations

if TYPE_CHECKING:
    from lakehouse.catalogs.sql import SqlCatalog
    from lakehouse.core.names import TableName
    from lakehouse.rest_catalog.metadata_files import MetadataFiles

#: The largest manifest list or manifest of a caller with limits, which the server reads as a whole.
_MAX_MANIFEST = 64 << 20
_MAX_LISTED = 1_000_000
_READERS = 16
#: Later than every time: leaves the log out of the files that are reachable.
_WITHOUT_LOG = "~"


class TableFolders:
    """The folders of every table and view of every branch and tag, dropped ones included."""

    def __init__(self, catalog: SqlCatalog, files: MetadataFiles) -> None:
        self._catalog, self._files = catalog, files
        self._by_pointer: dict[str, tuple[str, ...]] = {}

    def all(self) -> Iterator[tuple[TableName, str]]:
        """Return the folders. Metadata files do not change, so each is read once."""
        listed = self._catalog.reachable(_WITHOUT_LOG)
        missing = {file.pointer for file in listed} - self._by_pointer.keys()
        with ThreadPoolExecutor(_READERS) as readers:
            read = dict(zip(missing, readers.map(self._read, missing), strict=True))
        known = {**self._by_pointer, **read}
        self._by_pointer = {file.pointer: known[file.pointer] for file in listed}
        return ((file.table, folder) for file in listed for folder in known[file.pointer])

    def _read(self, pointer: str) -> tuple[str, ...]:
        beside = normalize(pointer).rpartition("/")[0].removesuffix("/metadata")
        try:
            metadata = self._files.parsed_json(pointer)
        except NotFoundError:
            return (beside,)
        folders = table_locations(str(metadata.get("location") or pointer), metadata.get("properties") or {})
        return tuple({beside, *(normalize(folder.rstrip("/")) for folder in folders)})


class ListedFiles:
    """What manifest lists and manifests name. Neither changes, so each is read once."""

    def __init__(self, files: MetadataFiles) -> None:
        self._files = files
        self._listed: dict[str, tuple[str, ...]] = {}
        self._count = 0

    def manifests(self, path: str) -> tuple[str, ...]:
        """Return the manifests of a manifest list."""
        return self._of(path, listed_manifests)

    def data_files(self, path: str) -> tuple[str, ...]:
        """Return the data and delete files of a manifest."""
        return self._of(path, listed_data_files)

    def _of(self, path: str, read: Callable[[Any], Iterable[str]]) -> tuple[str, ...]:
        if path in self._listed:
            return self._listed[path]
        source = self._files.input(path)
        if len(source) > _MAX_MANIFEST:
            raise RestError(f"{path} is larger than {_MAX_MANIFEST} bytes.")
        listed = tuple(read(source))
        self._count += len(listed) + 1
        if self._count > _MAX_LISTED:
            self._listed, self._count = {}, len(listed) + 1
        self._listed[path] = listed
        return listed
