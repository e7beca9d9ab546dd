"""The interface of the storage that source files are read from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class RemoteFile:
    """A file in an object store: its whole name (`s3://bucket/key`), its size, and a mark that changes with its content."""

    name: str
    size: int
    etag: str = ""


class RemoteFiles(Protocol):
    """An object store, as far as files that users bring lie there."""

    def list(self, folder: str, deep: bool) -> Sequence[str]:
        """The sorted names of all files below a folder, or only of those right in it; none if there is no such folder."""

    def stat(self, name: str) -> RemoteFile | None:
        """What is known of a file, or None if there is none of that name."""

    def fetch(self, file: RemoteFile, into: Path, stop: Callable[[], bool]) -> None:
        """Copy a file here; it arrives as it was looked at, or an error says that it did not, or `stop` said so."""
