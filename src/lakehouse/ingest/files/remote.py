"""Find and fetch remote files; single files, patterns and folders mean the same as for local files."""

from __future__ import annotations

import glob
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Event

from lakehouse.core.errors import DiskFullError, EmptyGlobError, NoDataFilesError, NoSuchFileError, NotSupportedError
from lakehouse.core.files import RemoteFile, RemoteFiles
from lakehouse.core.registry import is_kind, kinds

#: The entry point group in which other packages register sources by URL scheme.
SOURCES = "lakehouse.sources"
#: Maximum number of concurrent requests.
_MAX_CONCURRENT = 8
_MB = 1 << 20


class SchemeRouter:
    """Routes source files by URL scheme: s3 is built in, other packages register theirs under `lakehouse.sources`."""

    def __init__(self, open_source: Callable[[str], RemoteFiles]) -> None:
        """
        Args:
            open_source: opens the source of a scheme that is registered.
        """
        self._open = open_source
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
            if not is_kind(SOURCES, scheme):
                known = ", ".join(f"{name}://" for name in kinds(SOURCES))
                raise NotSupportedError(
                    f"{url} cannot be read: no source is installed for {scheme}://.",
                    f"Installed: {known}. Or download the file first.",
                )
            self._opened[scheme] = self._open(scheme)
        return self._opened[scheme]


def is_url(source: str) -> bool:
    """Whether a source is a URL rather than a local path."""
    return "://" in source and not source.startswith("file://")


def find_files(source: str, store: RemoteFiles) -> list[RemoteFile]:
    """Find the files that a source names: one file, else a pattern or a folder."""
    is_folder = source.endswith("/")
    if not is_folder and (file := store.stat(source)):  # before patterns: [x].csv is a valid name
        return [file]
    names = _matching(source, store) if glob.has_magic(source) and not is_folder else _in_folder(source, store)
    with ThreadPoolExecutor(_MAX_CONCURRENT) as pool:
        return [file for file in pool.map(store.stat, names) if file]


def fetch_all(store: RemoteFiles, requested: Sequence[tuple[RemoteFile, Path]], into: Path) -> None:
    """Copy files into a folder concurrently; the first failure, or Ctrl-C, stops the others."""
    needed, free = sum(file.size for file, _ in requested), shutil.disk_usage(into).free
    if needed > free:
        raise DiskFullError(
            f"The files to fetch need {needed // _MB} MB, but {into} has only {free // _MB} MB free.",
            "Free some space, move the lake (LAKE_HOME), or ingest fewer files at a time.",
        )
    stop = Event()
    with ThreadPoolExecutor(_MAX_CONCURRENT) as pool:
        fetches = [pool.submit(store.fetch, file, path, stop.is_set) for file, path in requested]
        try:
            done, _ = wait(fetches, return_when=FIRST_EXCEPTION)
            for fetch in done:
                fetch.result()
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)


def _in_folder(source: str, store: RemoteFiles) -> list[str]:
    scheme, _, path = source.partition("://")
    folder = f"{scheme}://{path.rstrip('/')}"
    below = store.list(folder, deep=True)
    if not below:
        raise NoSuchFileError(f"There is no file or folder {source}.", "Names in S3 are case-sensitive.", file=source)
    names = [name for name in below if not any(part.startswith((".", "_")) for part in _parts(name, folder))]
    if not names:
        raise NoDataFilesError(
            f"There are no data files in the folder {source}.",
            "Hidden files and names that start with _ are skipped.",
            file=source,
        )
    return names


def _matching(pattern: str, store: RemoteFiles) -> list[str]:
    scheme, _, path = pattern.partition("://")
    bucket, _, keys = path.partition("/")
    if glob.has_magic(bucket):
        raise NoSuchFileError(
            f"{pattern} has a pattern as its bucket.", f"Name the bucket: {scheme}://bucket/*.csv", file=pattern
        )
    parts = keys.split("/")
    first = next(at for at, part in enumerate(parts) if glob.has_magic(part))
    folder = f"{scheme}://" + "/".join([bucket, *parts[:first]])
    pattern_parts = parts[first:]
    if pattern_parts[-1] == "**":
        pattern_parts.append("*")
    names = [
        name
        for name in store.list(folder, deep=len(pattern_parts) > 1)
        if _matches(_parts(name, folder), pattern_parts)
    ]
    if not names:
        raise EmptyGlobError(
            f"No file matches {pattern}.", "* and ? match within a folder, ** across folders.", file=pattern
        )
    return names


def _parts(name: str, folder: str) -> list[str]:
    return name.removeprefix(folder + "/").split("/")


def _matches(parts: list[str], pattern: list[str]) -> bool:
    """Match like Python's glob: wildcards stay within a folder and skip hidden names, `**` crosses folders."""
    if not parts or not pattern:
        return parts == pattern
    hidden = parts[0].startswith(".")
    if pattern[0] == "**":
        return (not hidden and _matches(parts[1:], pattern)) or _matches(parts, pattern[1:])
    visible = not hidden or pattern[0].startswith(".")
    return visible and fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])
