"""The class-data archive: the 20,000 classes of Spark, Iceberg and Hudi, parsed and verified once per machine.

With it the JVM maps its classes instead of reading them from 300 jars, which halves the start of Spark. An archive is
built for one Java and one class path. The JVM ignores one that does not fit, so a wrong archive costs only time.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from lakehouse.engines.spark.java import Java
from lakehouse.engines.spark.launch import archived_class_path

#: An archive (240 MB, one per class path) that no Spark has used for this long is of a Java, a release or a checkout that
#: is gone. The newest ones stay whatever their age.
_UNUSED_DAYS, _NEWEST = 14, 3
_DUMP_TIMEOUT_S = 600


def archive_file(cache: Path, java: Java, jars: Sequence[Path]) -> Path:
    """The path of the archive for this Java and these jars, whether it exists or not."""
    fingerprint = hashlib.sha256(f"{java.home}\n{java.version}\n{archived_class_path(jars)}".encode()).hexdigest()
    return cache / "classes" / f"{fingerprint[:16]}.jsa"


def find_archive(cache: Path, java: Java, jars: Sequence[Path]) -> Path | None:
    """The archive, or None if it was not built yet."""
    file = archive_file(cache, java, jars)
    if not file.is_file():
        return None
    os.utime(file)  # marks it as recently used for `unused_archives`
    return file


def build_archive(cache: Path, java: Java, jars: Sequence[Path], class_list: Path) -> Path | None:
    """Build the archive of the listed classes; None if this Java cannot."""
    file = archive_file(cache, java, jars)
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="dump-", dir=file.parent) as scratch:
        built = Path(scratch) / file.name
        command = [str(java.program), "-Xshare:dump", f"-XX:SharedClassListFile={class_list}"]
        command += [
            f"-XX:SharedArchiveFile={built}",
            "-Xlog:disable",
            "-Xlog:all=off",
            "-cp",
            archived_class_path(jars),
        ]
        subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_DUMP_TIMEOUT_S,
            check=False,
        )
        if not built.is_file():
            return None
        os.replace(built, file)
    for unused in unused_archives(cache):
        unused.unlink(missing_ok=True)
    return file


def unused_archives(cache: Path) -> list[Path]:
    """The archives that no Spark has used for two weeks, apart from the three that were used last."""
    used = sorted(((file.stat().st_mtime, file) for file in (cache / "classes").glob("*.jsa")), reverse=True)
    oldest = time.time() - _UNUSED_DAYS * 86_400
    return [file for at, file in used[_NEWEST:] if at < oldest]
