"""`lake setup` on a machine without jars shows how far it is, also where there is no terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lakehouse.config.load import load_settings
from lakehouse.engines.spark.jars import EMBEDDED

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LAKE = Path(sys.executable).parent / "lake"


def mirror_of(cache: Path, folder: Path) -> str:
    """A Maven repository of the jars that this machine has."""
    for jar in EMBEDDED:
        place = folder / jar.group.replace(".", "/") / jar.name / jar.version
        place.mkdir(parents=True)
        (place / jar.file).symlink_to(cache / "jars" / jar.file)
        (place / f"{jar.name}-{jar.version}.pom").write_text(
            f"<project><modelVersion>4.0.0</modelVersion><groupId>{jar.group}</groupId>"
            f"<artifactId>{jar.name}</artifactId><version>{jar.version}</version></project>"
        )
    return folder.as_uri()


def test_it_tells_what_arrives_and_what_it_does_next(tmp_path: Path) -> None:
    repository = mirror_of(load_settings().cache, tmp_path / "repository")
    environment = {**os.environ, "LAKE_CACHE": str(tmp_path / "cache"), "LAKE_MAVEN_REPO": repository}
    told = []
    with subprocess.Popen([LAKE, "setup"], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        for line in process.stderr:
            told.append(line.rstrip())
            if line.startswith("Recording"):
                break
        process.send_signal(signal.SIGINT)  # what it learns is not looked at here, and takes a minute
        process.stderr.read()
    assert told[0].startswith("Downloading jars: ")
    assert told[0].endswith(" of 142.1 MB")
    assert told[-1] == "Recording the classes that Spark loads (about a minute, once per machine)…"
    assert {file.name for file in (tmp_path / "cache" / "jars").iterdir()} == {jar.file for jar in EMBEDDED}
