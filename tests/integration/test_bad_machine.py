"""What a machine can do to a lake: each gets a clear error, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conftest import Command, command_for, stop_spark

from lakehouse.config.load import load_settings
from lakehouse.core.errors import DiskFullError, EngineUnreachableError
from lakehouse.engines.spark.jars import EMBEDDED
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A disk of 200 MB."""
    folder = tmp_path_factory.mktemp("disk")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200m", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture(scope="module")
def small_lake(small_disk: Path) -> Iterator[Lake]:
    with assemble(load_settings({"home": small_disk / "lake"})) as lake:
        yield lake
    stop_spark(small_disk / "lake")


@contextmanager
def left(disk: Path, free: int) -> Iterator[None]:
    """Fill a disk up to so many bytes while the block runs."""
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(shutil.disk_usage(disk).free - free))
    yield
    ballast.unlink()


def test_a_disk_that_fills_up_during_a_write_loses_nothing(small_disk: Path, small_lake: Lake) -> None:
    small_lake.sql("CREATE TABLE full.t AS SELECT 1L AS id")
    with left(small_disk, 70_000_000):
        with pytest.raises(DiskFullError, match="disk is full"):
            small_lake.sql("INSERT INTO full.t SELECT xxhash64(id) FROM range(60000000)")
        assert small_lake.sql("SELECT * FROM full.t").rows() == [(1,)]
    small_lake.sql("INSERT INTO full.t VALUES (2)")
    assert small_lake.sql("SELECT count(*) FROM full.t", engine="spark").rows() == [(2,)]
    assert len(small_lake.history("full.t")) == 2


def test_a_disk_that_is_all_but_full_is_not_written_to(small_disk: Path, small_lake: Lake) -> None:
    small_lake.sql("CREATE TABLE full.small AS SELECT 1L AS id")
    with left(small_disk, 10_000_000):
        with pytest.raises(DiskFullError, match="are free on the disk of the lake"):
            small_lake.sql("INSERT INTO full.small VALUES (2)")
        assert small_lake.sql("SELECT count(*) FROM full.small").rows() == [(1,)]


def test_a_corrupt_jar_is_found_by_the_doctor_and_replaced_by_setup(tmp_path: Path) -> None:
    cache = _copy_of_the_cache(tmp_path / "cache")
    jar = cache / "jars" / EMBEDDED[2].file
    damaged = bytearray(jar.read_bytes())
    damaged[1000:1100] = bytes(100)
    jar.write_bytes(damaged)
    lake = command_for(tmp_path / "lake")
    mirror = _mirror(tmp_path / "mirror")
    env = {"LAKE_CACHE": str(cache), "LAKE_MAVEN_REPO": mirror}
    told = lake("doctor", env=env)
    assert "sqlite-jdbc" in told.stdout and "lake setup" in told.stdout
    repaired = lake("sql", "select 1 as one", "--engine", "spark", "-o", "json", env=env)
    assert (repaired.stdout, repaired.stderr) == ('[{"one": 1}]\n', "")
    assert lake("down", env=env).returncode == 0


def test_a_wrong_java_is_named_with_what_to_do(tmp_path: Path, lake_command: Command) -> None:
    java = tmp_path / "java"
    java.mkdir()
    (java / "release").write_text('JAVA_VERSION="11.0.2"\n')
    (java / "bin").mkdir()
    (java / "bin" / "java").touch(mode=0o755)
    told = lake_command("sql", "select 1", "--engine", "spark", env={"LAKE_SPARK__JAVA_HOME": str(java)})
    assert told.returncode == 1
    assert "is Java 11.0.2, but Spark needs Java 17" in told.stderr
    assert "Traceback" not in told.stderr


def test_a_spark_that_cannot_start_says_why(home: Path) -> None:
    settings = load_settings({"home": home, "spark.driver_memory": "1k"})
    with assemble(settings) as lake, pytest.raises(EngineUnreachableError, match="(?i)heap") as caught:
        lake.sql("select 1", engine="spark")
    assert "log" in caught.value.hint
    stop_spark(home)


def test_a_lake_whose_making_was_interrupted_is_completed(home: Path, lake_command: Command) -> None:
    (home / "run").mkdir(parents=True)
    (home / "run" / "spark.lock").touch()
    done = lake_command("tables")
    assert done.returncode == 0
    assert (home / "lake.version").is_file()


def _copy_of_the_cache(cache: Path) -> Path:
    """The jars of this machine, in a cache that may be damaged."""
    (cache / "jars").mkdir(parents=True)
    for jar in EMBEDDED:
        shutil.copy(load_settings(environ=dict(os.environ)).cache / "jars" / jar.file, cache / "jars")
    return cache


def _mirror(folder: Path) -> str:
    """A Maven repository in a folder that has our jars."""
    for jar in EMBEDDED:
        place = folder / jar.group.replace(".", "/") / jar.name / jar.version
        place.mkdir(parents=True)
        shutil.copy(load_settings(environ=dict(os.environ)).cache / "jars" / jar.file, place)
        (place / f"{jar.name}-{jar.version}.pom").write_text(
            f"<project><modelVersion>4.0.0</modelVersion><groupId>{jar.group}</groupId>"
            f"<artifactId>{jar.name}</artifactId><version>{jar.version}</version></project>"
        )
    return folder.as_uri()
