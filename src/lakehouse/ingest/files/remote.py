"""Files in an object store: single ones, patterns and folders mean there what they mean on a disk."""

from __future__ import annotations

import glob
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Event

from lakehouse.core.errors import DiskFullError, NotSupportedError
from lakehouse.core.registry import installed, load
from lakehouse.core.source import RemoteFile, RemoteFiles
from lakehouse.ingest.files.errors import EmptyGlobError, NoDataFilesError, NoSuchFileError

#: The entry point group in which other packages register sources by URL scheme.
SOURCES = "lakehouse.sources"
#: Concurrent requests.
_AT_ONCE = 8
_MB = 1 << 20


class SchemeRouter:
    """Source files by URL scheme: s3 is built in, other packages register theirs under `lakehouse.sources`."""

    def __init__(self, builtin: Mapping[str, Callable[[], RemoteFiles]]) -> None:
        self._builtin = builtin
        self._opened: dict[str, RemoteFiles] = {}

    def list(self, folder: str, deep: bool) -> Sequence[str]:
        return self._source(folder).list(folder, deep)

    def stat(self, name: str) -> RemoteFile | None:
        return self._source(name).stat(name)

    def fetch(self, file: RemoteFile, into: Path, stop: Callable[[], bool]) -> None:
        self._source(file.name).fetch(file, into, stop)

    def _source(self, url: str) -> RemoteFiles:
        scheme = url.partition("://")[0]
        if scheme not in self._opened:
            opener = self._builtin.get(scheme) or load(SOURCES, scheme)
            if opener is None:
                known = ", ".join(f"{name}://" for name in sorted({*self._builtin, *installed(SOURCES)}))
                raise NotSupportedError(
                    f"{url} cannot be read: no source is installed for {scheme}://.",
                    f"Installed: {known}. Or download the file first.",
                )
            self._opened[scheme] = opener()
        return self._opened[scheme]


def is_url(source: str) -> bool:
    """Whether a source is a URL of an object store rather than a local path."""
    return "://" in source and not source.startswith("file://")


def find(source: str, store: RemoteFiles) -> list[RemoteFile]:
    """The files that a source names: it is tried as one file first, then as a pattern or a folder."""
    is_folder = source.endswith("/")
    if not is_folder and (file := store.stat(source)):  # first as it is written: [x].csv is a name too
        return [file]
    names = _matching(source, store) if glob.has_magic(source) and not is_folder else _in_folder(source, store)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [file for file in pool.map(store.stat, names) if file]


def fetch_all(store: RemoteFiles, wanted: Sequence[tuple[RemoteFile, Path]], into: Path) -> None:
    """Copy files into a folder, several at once; the first that fails, or a Ctrl-C, stops the others."""
    needed, free = sum(file.size for file, _ in wanted), shutil.disk_usage(into).free
    if needed > free:
        raise DiskFullError(
            f"The files to fetch have {needed // _MB} MB, and only {free // _MB} are free in {into}.",
            "Free some space, move the lake (LAKE_HOME), or bring them in one by one.",
        )
    stop = Event()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        copies = [pool.submit(store.fetch, file, path, stop.is_set) for file, path in wanted]
        try:
            ended, _ = wait(copies, return_when=FIRST_EXCEPTION)
            for copy in ended:
                copy.result()
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)


def _in_folder(source: str, store: RemoteFiles) -> list[str]:
    scheme, _, path = source.partition("://")
    folder = f"{scheme}://{path.rstrip('/')}"
    below = store.list(folder, deep=True)
    if not below:
        raise NoSuchFileError(f"There is no file or folder {source}.", "S3 tells upper from lower case.", file=source)
    names = [name for name in below if not any(part.startswith((".", "_")) for part in _parts(name, folder))]
    if not names:
        raise NoDataFilesError(
            f"The folder {source} holds no data files.",
            "Hidden files and names that start with _ do not count.",
            file=source,
        )
    return names


def _matching(pattern: str, store: RemoteFiles) -> list[str]:
    scheme, _, path = pattern.partition("://")
    bucket, _, keys = path.partition("/")
    if glob.has_magic(bucket):
        raise NoSuchFileError(f"{pattern} leaves the bucket open.", f"Name it: {scheme}://bucket/*.csv", file=pattern)
    parts = keys.split("/")
    first = next(at for at, part in enumerate(parts) if glob.has_magic(part))
    folder = f"{scheme}://" + "/".join([bucket, *parts[:first]])
    wanted = parts[first:]
    if wanted[-1] == "**":
        wanted.append("*")
    names = [name for name in store.list(folder, deep=len(wanted) > 1) if _fits(_parts(name, folder), wanted)]
    if not names:
        raise EmptyGlobError(f"No file matches {pattern}.", "* and ? stay within a folder, ** does not.", file=pattern)
    return names


def _parts(name: str, folder: str) -> list[str]:
    return name.removeprefix(folder + "/").split("/")


def _fits(parts: list[str], pattern: list[str]) -> bool:
    """As Python's glob: wildcards stay within a folder and leave hidden names out, `**` goes through folders."""
    if not parts or not pattern:
        return parts == pattern
    hidden = parts[0].startswith(".")
    if pattern[0] == "**":
        return (not hidden and _fits(parts[1:], pattern)) or _fits(parts, pattern[1:])
    seen = not hidden or pattern[0].startswith(".")
    return seen and fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])
