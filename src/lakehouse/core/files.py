"""The files that tables are made of, wherever a warehouse is."""

from __future__ import annotations

from typing import Protocol

from lakehouse.core.uris import local_path


class Files(Protocol):
    """Whole small files (metadata) by their URIs."""

    def read(self, uri: str) -> bytes:
        """The content of a file; an OSError if there is none."""

    def write(self, uri: str, content: bytes) -> None:
        """A new file, complete or not at all."""

    def __hash__(self) -> int:
        """What was read from it may be kept under it."""


class LocalFiles:
    """Files of this machine."""

    def read(self, uri: str) -> bytes:
        return local_path(uri).read_bytes()

    def write(self, uri: str, content: bytes) -> None:
        local_path(uri).write_bytes(content)


LOCAL = LocalFiles()
