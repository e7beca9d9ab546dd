"""Read and write files of the warehouse, local or in an object store, by URI."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from lakehouse.core.dataclass import dataclass
from lakehouse.core.files import LocalFiles, local_path
from lakehouse.storage.s3 import S3, S3Settings, is_remote
from lakehouse.storage.tree import open_tree


class WarehouseFiles(LocalFiles):
    """Reads and writes whole files under `file://` and `s3://`."""

    def __init__(self, s3: S3Settings) -> None:
        self._s3 = S3(s3)

    def read(self, uri: str) -> bytes:
        return self._s3.read(uri) if is_remote(uri) else super().read(uri)

    def write(self, uri: str, content: bytes) -> None:
        if is_remote(uri):
            self._s3.write(uri, content)
        else:
            super().write(uri, content)


@dataclass(frozen=True)
class StoredFile:
    """A file of the warehouse as the storage lists it."""

    uri: str
    size: int
    modified: datetime


class WarehouseStore:
    """Lists and removes the files of a warehouse, local or in an object store."""

    def __init__(self, s3: S3Settings) -> None:
        self._settings, self._s3 = s3, S3(s3)

    def files(self, folder: str) -> Iterator[StoredFile]:
        """Yield every file below a folder; none if the folder does not exist. An object store lists it page by page."""
        tree = open_tree(folder, self._settings)
        for file in tree.list():
            modified = datetime.fromtimestamp(file.modified_ns / 1e9, tz=UTC)
            yield StoredFile(f"{tree.uri}/{file.name}", file.size, modified)

    def start(self, uri: str, count: int) -> bytes:
        """Return the first bytes of a file."""
        if is_remote(uri):
            with self._s3.open(uri) as stream:
                return stream.read(count)
        with local_path(uri).open("rb") as stream:
            return stream.read(count)

    def remove(self, uri: str) -> None:
        """Remove a file; it may be gone already."""
        if is_remote(uri):
            self._s3.remove(uri)
        else:
            local_path(uri).unlink(missing_ok=True)
