"""Which files were meant: single files, patterns and whole folders, here and in an object store."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lakehouse.core.errors import NotSupportedError
from lakehouse.core.source import RemoteFile, RemoteFiles
from lakehouse.ingest.files import remote
from lakehouse.ingest.files.errors import EmptyGlobError, NoDataFilesError, NoSuchFileError, UnreadableFileError

_CHUNK = 1 << 20


@dataclass(frozen=True, order=True)
class SourceFile:
    """A file to read: its absolute path, its name as the user would say it, and its size in bytes.

    One that lies in an object store has no path before it was fetched, and an `etag` if the store tells contents apart.
    """

    path: str
    name: str
    size: int
    etag: str = ""

    @property
    def mark(self) -> str:
        """Stands for a remote file with the content that it has now; nothing if only reading it would tell."""
        told = f"{self.name}\n{self.etag}\n{self.size}"
        return hashlib.sha256(told.encode()).hexdigest() if self.etag else ""


def discover(sources: Sequence[str], store: RemoteFiles | None = None) -> list[SourceFile]:
    """Every file that the sources name, each once, in the order given; folders and patterns in sorted order.

    In folders, hidden files and those that start with `_` (as Spark's `_SUCCESS`) are left out.
    """
    found: dict[str, SourceFile] = {}
    for source in sources:
        if store is not None and remote.is_url(source):
            for far in remote.find(source, store):
                found.setdefault(far.name, SourceFile("", far.name, far.size, far.etag))
            continue
        for path, name in _paths(source):
            found.setdefault(path, _checked(path, name))
    return list(found.values())


def fetched(files: Sequence[SourceFile], store: RemoteFiles | None, into: Path) -> list[SourceFile]:
    """The same files in the same order, all of them on this machine: remote ones are copied into a folder."""
    if store is None or all(file.path for file in files):
        return list(files)
    into.mkdir(parents=True, exist_ok=True)
    here = [file if file.path else replace(file, path=str(into / f"{at:05}")) for at, file in enumerate(files)]
    missing = [(file, copy) for file, copy in zip(files, here, strict=True) if not file.path]
    remote.fetch_all(
        store, [(RemoteFile(file.name, file.size, file.etag), Path(copy.path)) for file, copy in missing], into
    )
    return here


def content_hash(file: SourceFile) -> str:
    """The SHA-256 of the file's bytes as they lie on the disk, read piece by piece."""
    digest = hashlib.sha256()
    try:
        with open(file.path, "rb") as stream:
            while piece := stream.read(_CHUNK):
                digest.update(piece)
    except OSError as exc:
        raise unreadable(file.name, exc) from exc
    return digest.hexdigest()


def unreadable(name: str, exc: OSError) -> UnreadableFileError:
    """The error for a file that the system will not let us read."""
    why = "you may not read it" if isinstance(exc, PermissionError) else str(exc.strerror or exc)
    return UnreadableFileError(f"{name} cannot be read: {why}.", f"See: ls -l '{name}'", file=name)


def _paths(source: str) -> Iterator[tuple[str, str]]:
    if remote.is_url(source):
        raise NotSupportedError(f"{source} is not a local file.", "Download it first.")
    plain = os.path.expanduser(source.removeprefix("file://"))
    if os.path.isdir(plain):
        yield from _in_folder(plain)
    elif os.path.lexists(plain):  # first as it is written: [x].csv is a file name too
        yield os.path.abspath(plain), plain
    elif glob.has_magic(plain):
        yield from _matching(plain)
    else:
        raise NoSuchFileError(f"There is no file {source}.", _nearby(plain), file=source)


def _in_folder(folder: str) -> Iterator[tuple[str, str]]:
    names = []
    for parent, children, files in os.walk(folder, onerror=lambda exc: _refuse(folder, exc)):
        children[:] = [child for child in children if not child.startswith((".", "_"))]
        names += [os.path.join(parent, file) for file in files if not file.startswith((".", "_"))]
    if not names:
        raise NoDataFilesError(
            f"The folder {folder} holds no data files.",
            "Hidden files and names that start with _ do not count.",
            file=folder,
        )
    yield from ((os.path.abspath(name), name) for name in sorted(names))


def _matching(pattern: str) -> Iterator[tuple[str, str]]:
    names = sorted(name for name in glob.glob(pattern, recursive=True) if os.path.isfile(name))
    if not names:
        raise EmptyGlobError(f"No file matches {pattern}.", "Look with: ls", file=pattern)
    yield from ((os.path.abspath(name), name) for name in names)


def _checked(path: str, name: str) -> SourceFile:
    try:
        size = os.stat(path).st_size
        if not os.path.isfile(path):
            raise UnreadableFileError(f"{name} is not a plain file.", "Write its content to a file first.", file=name)
        with open(path, "rb"):
            pass
    except FileNotFoundError as exc:
        raise NoSuchFileError(f"{name} points to a file that is not there.", "See: ls -l", file=name) from exc
    except OSError as exc:
        raise unreadable(name, exc) from exc
    return SourceFile(path, name, size)


def _refuse(folder: str, exc: OSError) -> None:
    raise unreadable(str(exc.filename or folder), exc) from exc


def _nearby(path: str) -> str:
    """A hint with the names that look like what was typed."""
    from difflib import get_close_matches

    parent = Path(path).parent
    if not parent.is_dir():
        return f"There is no folder {parent} either."
    try:
        near = get_close_matches(Path(path).name, os.listdir(parent), n=3)
    except OSError:
        near = []
    return f"Did you mean: {', '.join(near)}?" if near else f"See what there is: ls {parent}"
