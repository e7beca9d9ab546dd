"""Find source files: single files, patterns and folders, local and remote."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import (
    EmptyFileError,
    EmptyGlobError,
    NoDataFilesError,
    NoSuchFileError,
    NotSupportedError,
    UnreadableFileError,
)
from lakehouse.core.files import RemoteFile, RemoteFiles
from lakehouse.ingest.files import remote

_CHUNK = 1 << 20


@dataclass(frozen=True, order=True)
class SourceFile:
    """A file to read: absolute path, name as the user gave it, and size in bytes.

    A remote file has no path before it is fetched, and an `etag` if its store provides one.
    """

    path: str
    name: str
    size: int
    etag: str = ""

    @property
    def fingerprint(self) -> str:
        """Identifies the content of a remote file without a download; empty if there is no ETag."""
        identity = f"{self.name}\n{self.etag}\n{self.size}"
        return hashlib.sha256(identity.encode()).hexdigest() if self.etag else ""


def discover(sources: Sequence[str], store: RemoteFiles | None = None) -> list[SourceFile]:
    """Find all files that the sources name, each once, in the given order; folders and patterns are sorted.

    In folders, hidden files and names that start with `_` (such as Spark's `_SUCCESS`) are skipped.
    """
    files: dict[str, SourceFile] = {}
    for source in sources:
        if store is not None and remote.is_url(source):
            for file in remote.find_files(source, store):
                files.setdefault(file.name, SourceFile("", file.name, file.size, file.etag))
            continue
        for path, name in _paths(source):
            files.setdefault(path, _source_file(path, name))
    return list(files.values())


def fetch_remote(files: Sequence[SourceFile], store: RemoteFiles | None, into: Path) -> list[SourceFile]:
    """Copy remote files into a folder; returns all files in the same order, each with a local path."""
    if store is None or all(file.path for file in files):
        return list(files)
    into.mkdir(parents=True, exist_ok=True)
    local = [file if file.path else replace(file, path=str(into / f"{at:05}")) for at, file in enumerate(files)]
    missing = [(file, copy) for file, copy in zip(files, local, strict=True) if not file.path]
    remote.fetch_all(
        store, [(RemoteFile(file.name, file.size, file.etag), Path(copy.path)) for file, copy in missing], into
    )
    return local


def content_hash(file: SourceFile) -> str:
    """The SHA-256 of the bytes of the file."""
    digest = hashlib.sha256()
    try:
        with open(file.path, "rb") as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
    except OSError as exc:
        raise unreadable_file(file.name, exc) from exc
    return digest.hexdigest()


def unreadable_file(name: str, exc: OSError) -> UnreadableFileError:
    """The error for a file that the operating system does not let us read."""
    reason = "permission denied" if isinstance(exc, PermissionError) else str(exc.strerror or exc)
    return UnreadableFileError(f"{name} cannot be read: {reason}.", f"See: ls -l '{name}'", file=name)


def nothing_below(name: str, unit: str, skipped: int, file: SourceFile) -> EmptyFileError:
    """The error for a file that has no rows below its skipped lines."""
    return EmptyFileError(
        f"{name} has nothing below its first {skipped} {unit}.",
        f"Skip fewer: skip_rows is the number of {unit} above the header.",
        file=file.name,
    )


def _paths(source: str) -> Iterator[tuple[str, str]]:
    if remote.is_url(source):
        raise NotSupportedError(f"{source} is not a local file.", "Download it first.")
    plain = os.path.expanduser(source.removeprefix("file://"))
    if os.path.isdir(plain):
        yield from _in_folder(plain)
    elif os.path.lexists(plain):  # before patterns: [x].csv is a valid file name
        yield os.path.abspath(plain), plain
    elif glob.has_magic(plain):
        yield from _matching(plain)
    else:
        raise NoSuchFileError(f"There is no file {source}.", _similar_names(plain), file=source)


def _in_folder(folder: str) -> Iterator[tuple[str, str]]:
    names = []
    for parent, children, files in os.walk(folder, onerror=lambda exc: _raise_unreadable(folder, exc)):
        children[:] = [child for child in children if not child.startswith((".", "_"))]
        names += [os.path.join(parent, file) for file in files if not file.startswith((".", "_"))]
    if not names:
        raise NoDataFilesError(
            f"There are no data files in the folder {folder}.",
            "Hidden files and names that start with _ are skipped.",
            file=folder,
        )
    yield from ((os.path.abspath(name), name) for name in sorted(names))


def _matching(pattern: str) -> Iterator[tuple[str, str]]:
    names = sorted(name for name in glob.glob(pattern, recursive=True) if os.path.isfile(name))
    if not names:
        raise EmptyGlobError(f"No file matches {pattern}.", "Check the pattern with: ls", file=pattern)
    yield from ((os.path.abspath(name), name) for name in names)


def _source_file(path: str, name: str) -> SourceFile:
    try:
        size = os.stat(path).st_size
        if not os.path.isfile(path):
            raise UnreadableFileError(f"{name} is not a regular file.", "Write its content to a file first.", file=name)
        with open(path, "rb"):
            pass
    except FileNotFoundError as exc:
        raise NoSuchFileError(
            f"{name} is a symbolic link to a file that does not exist.", "See: ls -l", file=name
        ) from exc
    except OSError as exc:
        raise unreadable_file(name, exc) from exc
    return SourceFile(path, name, size)


def _raise_unreadable(folder: str, exc: OSError) -> None:
    raise unreadable_file(str(exc.filename or folder), exc) from exc


def _similar_names(path: str) -> str:
    """A hint with similar file names."""
    from difflib import get_close_matches

    parent = Path(path).parent
    if not parent.is_dir():
        return f"There is no folder {parent} either."
    try:
        similar = get_close_matches(Path(path).name, os.listdir(parent), n=3)
    except OSError:
        similar = []
    return f"Did you mean: {', '.join(similar)}?" if similar else f"List the files: ls {parent}"
