"""The raw area of a lake: source files as published, and extracts of databases, where every Spark executor can read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import BinaryIO

from lakehouse.core.dataclass import dataclass
from lakehouse.storage.s3 import S3Settings, hadoop_uri, is_remote
from lakehouse.storage.tree import FileStat, LocalTree, Tree, open_tree

#: Below the warehouse: the lake's keys may have rights to no other place.
RAW_FOLDER = "_raw"


@dataclass(frozen=True)
class RawArea:
    """A folder of the lake's storage. Names are paths relative to it."""

    tree: Tree = field(compare=False)  # two lakes do not share a work folder
    work: Path
    """A folder of this machine for unfinished downloads and locks."""

    def uri(self, name: str) -> str:
        """The location of a file or folder, as Spark reads it."""
        return hadoop_uri(f"{self.tree.uri}/{name}")

    def list(self, folder: str) -> Sequence[FileStat]:
        """Every file below a folder, sorted by name; empty if there is no such folder."""
        return sorted(self.tree.list(folder), key=lambda file: file.name)

    def stat(self, name: str) -> FileStat | None:
        """A file; None if it does not exist."""
        return next((file for file in self.tree.list(name.rpartition("/")[0]) if file.name == name), None)

    def open(self, name: str) -> BinaryIO:
        """A file for reading at any position; raises FileNotFoundError if it does not exist."""
        return self.tree.open(name)

    def write(self, name: str, content: bytes) -> None:
        """Write a small file; readers see all of it or the previous one."""
        self.tree.write(name, content)

    def put(self, name: str, file: Path) -> None:
        """Move a local file into the area."""
        self.tree.move_in(name, file)
        if is_remote(self.tree.uri):
            file.unlink()

    def remove(self, folder: str) -> None:
        """Remove a folder with its files; it may be gone already."""
        self.tree.remove_folder(folder)


def local_raw_area(folder: Path) -> RawArea:
    """A folder of this machine; on a cluster, of a file system that all its machines share."""
    return RawArea(LocalTree(folder), folder)


def raw_area(warehouse: str, local: Path, s3: S3Settings) -> RawArea:
    """The raw area of a lake.

    Args:
        warehouse: its warehouse, if it is not in the lake's folder.
        local: the folder of the raw area in the lake's folder, which is on this machine alone.
    """
    if not warehouse:
        return local_raw_area(local)
    tree = open_tree(f"{warehouse.rstrip('/')}/{RAW_FOLDER}", s3)
    return RawArea(tree, tree.folder if isinstance(tree, LocalTree) else local)
