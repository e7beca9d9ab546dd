"""The cache that all lakes of a user share: jars, servers and Spark's class archives. What is missing is downloaded again."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from lakehouse.engines.spark.archive import unused_archives
from lakehouse.engines.spark.jars import EMBEDDED, ICEBERG_AWS, S3A
from lakehouse.process.files import locked

#: Building an archive takes two minutes, and its scratch folder is older only if the build was killed.
_ABANDONED_S = 86_400


def prune_cache(cache: Path, everything: bool = False, dry_run: bool = False) -> list[tuple[Path, int]]:
    """Remove what this release does not use, or everything; returns the paths and their sizes in bytes."""
    if not cache.is_dir():
        return []
    with locked(cache / "jars.lock"):
        sizes = [(path, _size(path)) for path in (_contents(cache) if everything else _unused(cache))]
        for path, _ in sizes if not dry_run else ():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
    return sizes


def _contents(cache: Path) -> Iterator[Path]:
    """Yield what our own code has put into the cache; a user may have set it to a folder with other files."""
    for folder in ("jars", "dist", "classes"):
        yield from sorted((cache / folder).glob("*"))


def _unused(cache: Path) -> Iterator[Path]:
    """Yield jars of other versions than those of this release, and what `unused_archives` finds."""
    for artifact in (*EMBEDDED, *S3A, *ICEBERG_AWS):
        stem = artifact.file.split(artifact.version)[0]
        for path in sorted((cache / "jars").glob(f"{stem}[0-9]*.jar")):
            if path.name != artifact.file:
                yield path
    yield from unused_archives(cache)
    for path in sorted((cache / "classes").glob("dump-*")):
        if path.stat().st_mtime < time.time() - _ABANDONED_S:
            yield path


def _size(path: Path) -> int:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)
