"""Counts the data files of a table that nothing names, without reading a manifest.

The summary of each snapshot states how many files and bytes it added, so all snapshots together state how many the table's
folder should hold. Where it holds more, nothing names the rest: a writer is at work, was killed, or wrote files twice.
`lake verify --deep` reads the manifests and lists them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import LakeError, NotSupportedError
from lakehouse.core.files import local_path
from lakehouse.core.metadata_file import parse_metadata
from lakehouse.core.names import TableName
from lakehouse.core.refs import ReachableFile
from lakehouse.core.tables import FileSlice
from lakehouse.formats.hudi.slices import instant_of
from lakehouse.storage.s3 import is_remote
from lakehouse.storage.warehouse import WarehouseStore

_DATA_FILES, _DELETE_FILES, _BYTES = "data-files", "delete-files", "files-size"


@dataclass(frozen=True)
class FileCount:
    """A number of files and their bytes."""

    files: int = 0
    bytes: int = 0

    def beyond(self, other: FileCount) -> FileCount:
        """Return by how much this exceeds another count."""
        more = max(self.files - other.files, 0)
        return FileCount(more, max(self.bytes - other.bytes, 0) if more else 0)


@dataclass(frozen=True)
class UnnamedFiles:
    """Counts the unnamed files of tables.

    Args:
        read: the content of a file.
        references: returns every metadata file with a reference; called only if main alone does not explain the files.
    """

    store: WarehouseStore
    read: Callable[[str], bytes]
    references: Callable[[], Iterable[ReachableFile]]

    def of_iceberg(self, name: TableName, raw: Mapping[str, Any]) -> FileCount:
        """Return the unnamed data files of an Iceberg table whose metadata on main is `raw`."""
        stored = self._stored(f"{str(raw['location']).rstrip('/')}/data")
        snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in raw.get("snapshots", ())}
        if not stored.beyond(_stated(snapshots)).files:
            return FileCount()
        for pointer in self._others(name):
            try:
                content = parse_metadata(pointer, self.read(pointer))
            except (LakeError, OSError):
                continue  # what only the log refers to may have expired
            snapshots |= {snapshot["snapshot-id"]: snapshot for snapshot in content.get("snapshots", ())}
        return stored.beyond(_stated(snapshots))

    def of_hudi(self, location: str, slices: Collection[FileSlice]) -> FileCount:
        """Return the files of a Hudi table that no completed instant wrote."""
        first = min((file_slice.instant for file_slice in slices), default="")
        written = {file for file_slice in slices for file in file_slice.files}
        unnamed = [
            file.size
            for file in self.store.files(location)
            if "/.hoodie" not in file.uri
            and _is_data(file.uri)
            and file.uri.removeprefix(location.rstrip("/") + "/") not in written
            and instant_of(file.uri) >= first  # earlier instants are archived
        ]
        return FileCount(len(unnamed), sum(unnamed))

    def _stored(self, folder: str) -> FileCount:
        """Count the data files below a folder."""
        if is_remote(folder):
            sizes = [file.size for file in self.store.files(folder) if _is_data(file.uri)]
        else:
            sizes = list(_local_sizes(str(local_path(folder))))
        return FileCount(len(sizes), sum(sizes))

    def _others(self, name: TableName) -> set[str]:
        try:
            return {reference.pointer for reference in self.references() if reference.table == name}
        except NotSupportedError:
            return set()


def _local_sizes(folder: str) -> Iterator[int]:
    """Yield the sizes of the data files below a folder. It is called for every table of a lake, so it builds no objects."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from _local_sizes(entry.path)
                elif _is_data(entry.name):
                    yield entry.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        return


def _is_data(uri: str) -> bool:
    return not uri.endswith(".crc")


def _stated(snapshots: Mapping[Any, Mapping[str, Any]]) -> FileCount:
    """Return the files that snapshots name together: what the oldest holds, and what each later one added."""
    files = size = 0
    for snapshot in snapshots.values():
        summary = snapshot.get("summary", {})
        kind = "added" if snapshot.get("parent-snapshot-id") in snapshots else "total"
        files += int(summary.get(f"{kind}-{_DATA_FILES}", 0)) + int(summary.get(f"{kind}-{_DELETE_FILES}", 0))
        size += int(summary.get(f"{kind}-{_BYTES}", 0))
    return FileCount(files, size)
