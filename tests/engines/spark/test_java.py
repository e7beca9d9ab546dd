"""The Java that Spark runs on: the bundled one, another one, a wrong one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lakehouse.core.errors import JavaError
from lakehouse.engines.spark.java import REQUIRED_VERSION, find_java, heap_for


def java_home(folder: Path, release: str = "", script: str = "") -> Path:
    """A folder that looks like a Java home."""
    (folder / "bin").mkdir(parents=True)
    if release:
        (folder / "release").write_text(f'IMPLEMENTOR="Test"\nJAVA_VERSION="{release}"\n')
    if script:
        program = folder / "bin" / "java"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    return folder


@pytest.mark.slow
def test_the_bundled_java_is_found_and_runs() -> None:
    java = find_java()
    assert java.version.split(".")[0] == str(REQUIRED_VERSION)
    completed = subprocess.run([java.program, "-version"], capture_output=True, text=True, check=True)
    assert f'version "{java.version}' in completed.stderr


@pytest.mark.parametrize("release", ["21.0.2", "11.0.22", "1.8.0_392", "8"])
def test_a_java_of_the_wrong_version_is_refused(tmp_path: Path, release: str) -> None:
    with pytest.raises(JavaError, match=f"Spark needs Java {REQUIRED_VERSION}") as refused:
        find_java(str(java_home(tmp_path / "java", release, "exit 0")))
    assert str(tmp_path / "java") in refused.value.message
    assert "LAKE_SPARK__JAVA_HOME" in refused.value.hint


def test_a_java_of_the_right_version_is_taken(tmp_path: Path) -> None:
    home = java_home(tmp_path / "java", "17.0.9", "exit 0")
    java = find_java(str(home))
    assert (java.home, java.version) == (home, "17.0.9")


def test_without_a_release_file_java_is_asked(tmp_path: Path) -> None:
    right = java_home(tmp_path / "right", script="""echo 'openjdk version "17.0.1" 2021-10-19' >&2""")
    assert find_java(str(right)).version == "17.0.1"
    wrong = java_home(tmp_path / "wrong", script="""echo 'java version "1.8.0_392"' >&2""")
    with pytest.raises(JavaError, match="is Java 1.8.0"):
        find_java(str(wrong))


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("", id="no-program"),
        pytest.param("exit 3", id="a-program-that-fails"),
    ],
)
def test_a_folder_without_a_working_java_is_refused(tmp_path: Path, script: str) -> None:
    with pytest.raises(JavaError, match="no working Java") as refused:
        find_java(str(java_home(tmp_path / "java", script=script)))
    assert "LAKE_SPARK__JAVA_HOME" in refused.value.hint


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JavaError, match="no working Java"):
        find_java(str(tmp_path / "nothing"))


def test_a_program_that_says_nothing_sensible_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JavaError):
        find_java(str(java_home(tmp_path / "java", script="echo hello")))


def test_a_release_file_without_a_program_is_no_java(tmp_path: Path) -> None:
    with pytest.raises(JavaError):
        find_java(str(java_home(tmp_path / "java", "17.0.9")))


def test_the_heap_is_what_was_asked_for_or_suits_the_machine() -> None:
    assert heap_for("3g") == "3g"
    megabytes = int(heap_for("auto").removesuffix("m"))
    assert 1024 <= megabytes <= 16 * 1024
