"""Files wherever they are: their URIs, the interface to those of a warehouse, and that to those of a source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Protocol

from lakehouse.core.dataclass import dataclass


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


def file_uri(path: Path) -> str:
    """`file:///a b/c`. Python's own as_uri() would write `%20`, which the others take for part of the name."""
    return f"file://{path}"


def local_path(uri: str) -> Path:
    """The path that such a URI, or a plain path, names."""
    rest = uri.removeprefix("file:")
    return Path("/" + rest.lstrip("/")) if uri.startswith("file:") else Path(uri)


def size_text(count: int | None) -> str:
    """A number of bytes with its unit."""
    if count is None:
        return ""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


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


@dataclass(frozen=True)
class SourceContext:
    """What the factory of a source gets: the settings of its own."""

    folder: Path
    """A local folder for temporary files."""
    options: Mapping[str, str] = field(repr=False)  # it may hold a password
    """The settings under `[sources.NAME]`; `lakehouse.core.setting.read_options` checks them."""


#: What an entry point of the group `lakehouse.sources` names.
SourceFactory = Callable[[SourceContext], RemoteFiles]
