"""The raw area: source files as published, and extracts of databases, where every Spark executor can read them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from lakehouse.core.files import file_uri


@dataclass(frozen=True)
class RawFile:
    """A file of the raw area."""

    name: str
    """Its path in the area, such as taxi/yellow_tripdata_2026-01.parquet."""
    size: int
    modified_ns: int


class RawArea(Protocol):
    """A folder of the lake's storage. Names are paths relative to it."""

    @property
    def work(self) -> Path:
        """A folder of this machine for unfinished downloads and locks."""

    def uri(self, name: str) -> str:
        """The location of a file or folder, as Spark reads it."""

    def list(self, folder: str) -> Sequence[RawFile]:
        """Every file below a folder, sorted by name; empty if there is no such folder."""

    def stat(self, name: str) -> RawFile | None:
        """A file; None if it does not exist."""

    def open(self, name: str) -> BinaryIO:
        """A file for reading at any position; raises FileNotFoundError if it does not exist."""

    def write(self, name: str, content: bytes) -> None:
        """Write a small file; readers see all of it or the previous one."""

    def put(self, name: str, file: Path) -> None:
        """Move a local file into the area."""

    def remove(self, folder: str) -> None:
        """Remove a folder with its files; it may be gone already."""


@dataclass(frozen=True)
class LocalRawArea:
    """A folder of this machine; on a cluster, of a file system that all its machines share."""

    folder: Path

    @property
    def work(self) -> Path:
        return self.folder

    def uri(self, name: str) -> str:
        return file_uri(self.folder / name)

    def list(self, folder: str) -> Sequence[RawFile]:
        files = (self.stat(str(file.relative_to(self.folder))) for file in (self.folder / folder).rglob("*"))
        return sorted((file for file in files if file), key=lambda file: file.name)

    def stat(self, name: str) -> RawFile | None:
        file = self.folder / name
        try:
            stat = file.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return RawFile(name, stat.st_size, stat.st_mtime_ns) if file.is_file() else None

    def open(self, name: str) -> BinaryIO:
        return (self.folder / name).open("rb")

    def write(self, name: str, content: bytes) -> None:
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(target.name + ".writing")
        unfinished.write_bytes(content)
        os.replace(unfinished, target)

    def put(self, name: str, file: Path) -> None:
        if file != self.folder / name:
            os.replace(file, self.folder / name)

    def remove(self, folder: str) -> None:
        shutil.rmtree(self.folder / folder, ignore_errors=True)
