"""The interface of an object store that source files are read from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class RemoteFile:
    """A file in an object store: its full name (`s3://bucket/key`), size and etag."""

    name: str
    size: int
    etag: str = ""


class RemoteFiles(Protocol):
    """Read access to an object store."""

    def list(self, folder: str, deep: bool) -> Sequence[str]:
        """The sorted names of the files in a folder, with `deep` also in its subfolders; empty if there is no such folder."""

    def stat(self, name: str) -> RemoteFile | None:
        """Size and etag of a file; None if it does not exist."""

    def fetch(self, file: RemoteFile, into: Path, stop: Callable[[], bool]) -> None:
        """Download a file; raises if it changed since `stat`. Stops early when `stop` returns True."""
