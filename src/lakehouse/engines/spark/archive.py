"""A class-data archive: the 20,000 classes that Spark, Iceberg and Hudi load, parsed and verified once per machine.

With it the JVM maps its classes instead of reading them from 300 jars, which halves Spark's start. The archive is
made for one Java and one class path; the JVM ignores one that does not fit, so a wrong one costs time, never rows.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lakehouse.engines.spark.java import Java
from lakehouse.engines.spark.launch import class_path

#: Archives are 240 MB each; one per class path in use, so a few checkouts side by side keep theirs.
_KEEP = 3
_DUMP_TIMEOUT_S = 600


def archive_file(cache: Path, java: Java, jars: Sequence[Path]) -> Path:
    """Where the archive for this Java and these jars is, or would be."""
    fingerprint = hashlib.sha256(f"{java.home}\n{java.version}\n{class_path(jars)}".encode()).hexdigest()
    return cache / "classes" / f"{fingerprint[:16]}.jsa"


def find_archive(cache: Path, java: Java, jars: Sequence[Path]) -> Path | None:
    """The archive, if it has been made."""
    file = archive_file(cache, java, jars)
    if not file.is_file():
        return None
    os.utime(file)  # recently used, so that it is not the one that `_prune` removes
    return file


def make_archive(cache: Path, java: Java, jars: Sequence[Path], class_list: Path) -> Path | None:
    """Archive the listed classes. Returns None, leaving nothing behind, if this Java cannot."""
    file = archive_file(cache, java, jars)
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="dump-", dir=file.parent) as scratch:
        made = Path(scratch) / file.name
        command = [str(java.program), "-Xshare:dump", f"-XX:SharedClassListFile={class_list}"]
        command += [f"-XX:SharedArchiveFile={made}", "-Xlog:disable", "-Xlog:all=off", "-cp", class_path(jars)]
        subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_DUMP_TIMEOUT_S,
            check=False,
        )
        if not made.is_file():
            return None
        os.replace(made, file)
    _prune(file.parent)
    return file


def _prune(folder: Path) -> None:
    newest_first = sorted(folder.glob("*.jsa"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in newest_first[_KEEP:]:
        file.unlink(missing_ok=True)
