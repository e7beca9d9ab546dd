"""Read and write files of the warehouse, local or in an object store, by URI."""

from __future__ import annotations

from lakehouse.core.files import LocalFiles
from lakehouse.storage.s3 import S3, S3Settings, is_remote


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
