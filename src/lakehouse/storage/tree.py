"""A tree of files in a local folder or an object store, by names relative to it: the same calls for both."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Protocol

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import StorageError
from lakehouse.core.files import file_uri, local_path
from lakehouse.storage.s3 import S3, S3Settings, is_remote

#: Names of files that are being written end with this.
UNFINISHED = ".unfinished"


@dataclass(frozen=True)
class FileStat:
    """A file of a tree."""

    name: str
    size: int
    modified_ns: int


class Tree(Protocol):
    """Files below one URI."""

    uri: str
    """Without a slash at the end."""

    def at(self, uri: str) -> tuple[Tree, str]:
        """Return the tree and the name of a file that is elsewhere in the same storage, or on this machine."""

    def list(self, folder: str = "") -> Iterator[FileStat]:
        """Yield every file below a folder; nothing if there is no such folder."""

    def size(self, name: str) -> int | None:
        """Return the size of a file; None if it does not exist."""

    def read(self, name: str) -> bytes:
        """Return the content of a small file; FileNotFoundError if it does not exist."""

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading; FileNotFoundError if it does not exist."""

    def write(self, name: str, content: bytes) -> None:
        """Write a small file: readers see all of it or what was there before."""

    def move_in(self, name: str, file: Path) -> None:
        """Move a local file into the tree: readers see all of it or nothing. The local file may remain."""

    def remove_folder(self, folder: str) -> None:
        """Remove a folder with its files; it may be gone already."""


def open_tree(uri: str, s3: S3Settings) -> Tree:
    """Open the tree at a path, a file:// or an s3:// URI."""
    return ObjectTree(uri, s3) if is_remote(uri) else LocalTree(uri)


class LocalTree:
    """Files in a folder of this machine."""

    def __init__(self, uri: str | Path) -> None:
        self.folder = local_path(str(uri)).expanduser().absolute()
        self.uri = file_uri(self.folder)

    def at(self, uri: str) -> tuple[Tree, str]:
        if is_remote(uri):
            raise StorageError(f"{uri} is in an object store, and this lake is not.", "lake verify")
        return LocalTree("/"), str(local_path(uri)).lstrip("/")

    def list(self, folder: str = "") -> Iterator[FileStat]:
        start = str(self.folder / folder)
        for parent, _, names in os.walk(start):
            for name in names:
                path = os.path.join(parent, name)
                try:
                    stat = os.stat(path)
                except FileNotFoundError:
                    continue  # deleted since the listing
                yield FileStat(os.path.relpath(path, self.folder), stat.st_size, stat.st_mtime_ns)

    def size(self, name: str) -> int | None:
        try:
            return (self.folder / name).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def open(self, name: str) -> BinaryIO:
        return (self.folder / name).open("rb")

    def write(self, name: str, content: bytes) -> None:
        unfinished = self._unfinished(name)
        with unfinished.open("wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        unfinished.replace(self.folder / name)

    def move_in(self, name: str, file: Path) -> None:
        unfinished = self._unfinished(name)
        try:
            file.replace(self.folder / name)
        except OSError:  # on another disk
            shutil.copyfile(file, unfinished)
            unfinished.replace(self.folder / name)

    def remove_folder(self, folder: str) -> None:
        shutil.rmtree(self.folder / folder, ignore_errors=True)

    def remove_unfinished(self) -> None:
        """Remove the files that killed writers did not finish; the caller knows that nobody writes."""
        for file in self.folder.rglob(f".*{UNFINISHED}"):
            file.unlink(missing_ok=True)

    def _unfinished(self, name: str) -> Path:
        path = self.folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as exc:
            raise StorageError(
                f"{path.parent} cannot be a folder: a file is in the way.", "Name another folder."
            ) from exc
        return path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}{UNFINISHED}")


class ObjectTree:
    """Objects below a prefix of a bucket."""

    def __init__(self, uri: str, s3: S3Settings) -> None:
        self.uri, self._settings = "s3://" + uri.partition("://")[2].rstrip("/"), s3
        self._store = S3(s3)

    def at(self, uri: str) -> tuple[Tree, str]:
        if not is_remote(uri):
            return LocalTree("/"), str(local_path(uri)).lstrip("/")
        bucket, _, key = uri.partition("://")[2].partition("/")
        return ObjectTree(f"s3://{bucket}", self._settings), key

    def list(self, folder: str = "") -> Iterator[FileStat]:
        start = len(self.uri) + 1
        for name, size, modified in self._store.files(self._name(folder)):
            yield FileStat(name[start:], size, modified)

    def size(self, name: str) -> int | None:
        info = self._store.stat(self._name(name))
        return info.size if info else None

    def read(self, name: str) -> bytes:
        return self._store.read(self._name(name))

    def open(self, name: str) -> BinaryIO:
        return self._store.open(self._name(name))

    def write(self, name: str, content: bytes) -> None:
        self._store.write(self._name(name), content)

    def move_in(self, name: str, file: Path) -> None:
        self._store.upload(file, self._name(name))

    def remove_folder(self, folder: str) -> None:
        self._store.remove_folder(self._name(folder))

    def _name(self, name: str) -> str:
        return f"{self.uri}/{name}" if name else self.uri
