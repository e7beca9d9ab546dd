"""Which files were meant: single files, patterns and whole folders."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakehouse.core.errors import NotSupportedError
from lakehouse.sources.files.errors import EmptyGlobError, NoDataFilesError, NoSuchFileError, UnreadableFileError

_CHUNK = 1 << 20


@dataclass(frozen=True, order=True)
class SourceFile:
    """A file to read: its absolute path, its name as the user would say it, and its size in bytes."""

    path: str
    name: str
    size: int


def discover(sources: Sequence[str]) -> list[SourceFile]:
    """Every file that the sources name, each once, in the order given; folders and patterns in sorted order.

    In folders, hidden files and those that start with `_` (as Spark's `_SUCCESS`) are left out.
    """
    found: dict[str, SourceFile] = {}
    for source in sources:
        for path, name in _paths(source):
            found.setdefault(path, _checked(path, name))
    return list(found.values())


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
    if "://" in source and not source.startswith("file://"):
        raise NotSupportedError(
            f"{source} is not on this machine; only local files can be ingested yet.", "Copy it here first."
        )
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
