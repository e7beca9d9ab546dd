"""The watch over the developer's own lakes notices what a test must not do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakehouse import open_lake
from tests.support.home_watch import ROOT, HomeWatch, default_homes


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / ".lake"


def test_the_default_home_of_the_checkout_and_of_the_user_are_watched() -> None:
    assert {ROOT / ".lake", ROOT / ".lake-demo", Path.home() / ".lake"} <= default_homes()


def test_a_lake_that_is_opened_in_this_process_is_noticed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = HomeWatch([place])
    monkeypatch.chdir(place.parent)
    with open_lake() as lake:
        lake.tables()
    assert watch.found()
    with open_lake() as lake:
        lake.tables()
    assert any("catalog.db" in path for path in watch.found()), "it only reads, and from a lake that is there"
    assert watch.found() == []


def test_a_lake_that_another_process_creates_is_noticed(place: Path) -> None:
    watch = HomeWatch([place])
    code = "from lakehouse import open_lake\nwith open_lake() as lake: lake.tables()"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=place.parent)
    assert watch.found() == [str(place)]
    assert str(place / "lake.version") in watch.changed()


def test_a_file_that_changes_is_noticed_and_a_running_spark_is_not(place: Path) -> None:
    (place / "run").mkdir(parents=True)
    (place / "lake.version").write_text("1")
    watch = HomeWatch([place])
    subprocess.run(["touch", str(place / "run" / "spark.log"), str(place / "catalog.db-wal")], check=True)
    assert (watch.found(), watch.changed()) == ([], [])
    os.utime(place / "lake.version", (0, 0))
    assert watch.changed() == [str(place / "lake.version")]


def test_files_elsewhere_are_not_noticed(place: Path) -> None:
    watch = HomeWatch([place])
    (place.parent / ".lake-demo").mkdir()
    (place.parent / "a.csv").write_text("id\n")
    assert (watch.found(), watch.changed()) == ([], [])
