"""The raw area of a lake whose warehouse is in an object store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lakehouse.core.files import local_path
from lakehouse.core.raw import LocalRawArea, RawArea, RawFile
from lakehouse.storage.s3 import S3, S3Settings, hadoop_uri, is_remote

#: Below the warehouse: the lake's keys may have rights to no other place.
RAW_FOLDER = "_raw"


@dataclass(frozen=True)
class RemoteRawArea:
    """A folder of an object store."""

    address: str
    """s3://bucket/prefix, without a slash at the end."""
    work: Path
    store: S3

    def uri(self, name: str) -> str:
        return hadoop_uri(self._address(name))

    def list(self, folder: str) -> Sequence[RawFile]:
        start = len(self.address) + 1
        return [
            RawFile(name[start:], size, modified) for name, size, modified in self.store.files(self._address(folder))
        ]

    def stat(self, name: str) -> RawFile | None:
        return next((file for file in self.list(name.rpartition("/")[0]) if file.name == name), None)

    def open(self, name: str) -> BinaryIO:
        return self.store.open(self._address(name))

    def write(self, name: str, content: bytes) -> None:
        self.store.write(self._address(name), content)

    def put(self, name: str, file: Path) -> None:
        self.store.upload(file, self._address(name))
        file.unlink()

    def remove(self, folder: str) -> None:
        self.store.remove_folder(self._address(folder))

    def _address(self, name: str) -> str:
        return f"{self.address}/{name}"


def raw_area(warehouse: str, local: Path, s3: S3Settings) -> RawArea:
    """The raw area of a lake.

    Args:
        warehouse: its warehouse, if it is not in the lake's folder.
        local: the folder of the raw area in the lake's folder, which is on this machine alone.
    """
    if not warehouse:
        return LocalRawArea(local)
    place = f"{warehouse.rstrip('/')}/{RAW_FOLDER}"
    return RemoteRawArea(place, local, S3(s3)) if is_remote(place) else LocalRawArea(local_path(place))
