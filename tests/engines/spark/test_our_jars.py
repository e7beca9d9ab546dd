"""Our jars hold the classes whose source is in tools/, and Spark's JVM uses them."""

from __future__ import annotations

import shutil
import stat
import subprocess
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tools.jdk_net import build as jdk_net
from tools.local_files import build as local_files

BUILDS = [pytest.param(jdk_net, id="jdk_net"), pytest.param(local_files, id="local_files")]
CLASSES = {
    "jdk_net": {
        "jdk/net/Sockets.class",
        "jdk/net/ExtendedSocketOptions.class",
        "jdk/net/ExtendedSocketOptions$Option.class",
    },
    "local_files": {"lakehouse/LocalFiles.class", "lakehouse/LocalFiles$Raw.class"},
}


def content(jar: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(jar) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def javac_is_17() -> bool:
    if not shutil.which("javac"):
        return False
    return "javac 17." in subprocess.run(["javac", "-version"], capture_output=True, text=True).stdout


@pytest.mark.parametrize("build", BUILDS)
def test_a_jar_holds_nothing_else(build: ModuleType) -> None:
    assert set(content(build.JAR)) == CLASSES[build.JAR.stem]


@pytest.mark.skipif(not javac_is_17(), reason="other compilers write other bytes")
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.slow
def test_a_jar_is_what_its_source_makes(build: ModuleType, tmp_path: Path) -> None:
    build.build(tmp_path / "made.jar")
    assert content(tmp_path / "made.jar") == content(build.JAR)


@pytest.mark.spark
def test_local_files_get_their_permissions_without_a_process(spark: SparkSession, tmp_path: Path) -> None:
    java: Any = spark._jvm
    hadoop = java.org.apache.hadoop.fs
    system = hadoop.FileSystem.get(java.java.net.URI("file:///"), spark._jsc.hadoopConfiguration())
    assert system.getClass().getName() == "lakehouse.LocalFiles"
    file = tmp_path / "a file"
    before = faults_of_ended_processes(java)
    system.create(hadoop.Path(str(file))).close()
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    for mode in (0o600, 0o751, 0o000, 0o777):
        system.setPermission(hadoop.Path(str(file)), hadoop.permission.FsPermission(mode))
        assert stat.S_IMODE(file.stat().st_mode) == mode
    assert faults_of_ended_processes(java) == before
    # Only a process can set the sticky bit, and one does.
    system.setPermission(hadoop.Path(str(file)), hadoop.permission.FsPermission(0o1644))
    assert stat.S_IMODE(file.stat().st_mode) == 0o1644
    assert faults_of_ended_processes(java) > before


def faults_of_ended_processes(java: Any) -> int:
    """The page faults of all processes that the JVM has started and that have ended."""
    pid = java.java.lang.ProcessHandle.current().pid()
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[8])
