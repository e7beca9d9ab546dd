"""The two classes that stand in for Java's own where it lacks them are those whose source is here."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from lakehouse.engines.spark import launch

BUILD = Path(__file__).parents[3] / "tools" / "jdk_net" / "build.py"


def content(jar: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(jar) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def javac_is_17() -> bool:
    if not shutil.which("javac"):
        return False
    return "javac 17." in subprocess.run(["javac", "-version"], capture_output=True, text=True).stdout


def test_the_jar_holds_nothing_else() -> None:
    jar = Path(launch.__file__).with_name("jdk_net.jar")
    names = {
        "jdk/net/Sockets.class",
        "jdk/net/ExtendedSocketOptions.class",
        "jdk/net/ExtendedSocketOptions$Option.class",
    }
    assert set(content(jar)) == names


@pytest.mark.skipif(not javac_is_17(), reason="other compilers write other bytes")
def test_the_jar_is_what_its_source_makes(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("jdk_net_build", BUILD)
    assert spec is not None and spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    build.build(tmp_path / "made.jar")
    assert content(tmp_path / "made.jar") == content(build.JAR)
