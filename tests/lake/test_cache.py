"""The shared cache keeps what this release uses, and loses the rest."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from lakehouse.engines.spark.jars import EMBEDDED
from lakehouse.lake.cache import prune_cache


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache with a jar of this release, one of another, old and new class archives, a killed build, and a file of the user."""
    artifact = EMBEDDED[0]
    for name in ("jars", "dist", "classes"):
        (tmp_path / name).mkdir()
    (tmp_path / "jars" / artifact.file).write_bytes(b"now")
    (tmp_path / "jars" / artifact.file.replace(artifact.version, "0.0.1")).write_bytes(b"before")
    (tmp_path / "classes" / "dump-1").mkdir()
    (tmp_path / "classes" / "dump-2").mkdir()
    for name, days in (("old.jsa", 60), ("a.jsa", 15), ("b.jsa", 1), ("new.jsa", 0), ("dump-1", 2)):
        path = tmp_path / "classes" / name
        if path.suffix:
            path.write_bytes(b"classes")
        os.utime(path, (time.time() - days * 86_400,) * 2)
    (tmp_path / "notes.txt").write_text("the user's own")
    return tmp_path


def names(cache: Path) -> set[str]:
    return {path.name for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock"}


def test_only_what_no_release_uses_is_removed(cache: Path) -> None:
    kept = {EMBEDDED[0].file, "a.jsa", "b.jsa", "new.jsa", "notes.txt"}
    removed = prune_cache(cache)
    jar = EMBEDDED[0].file.replace(EMBEDDED[0].version, "0.0.1")
    assert {path.name for path, _ in removed} == {jar, "old.jsa", "dump-1"}
    assert sorted(size for _, size in removed) == [0, 6, 7]
    assert names(cache) == kept
    assert (cache / "classes" / "dump-2").is_dir(), "this archive is being built"


def test_a_dry_run_removes_nothing(cache: Path) -> None:
    before = names(cache)
    assert len(prune_cache(cache, dry_run=True)) == 3
    assert names(cache) == before


def test_everything_of_ours_is_removed_and_nothing_else(cache: Path) -> None:
    prune_cache(cache, everything=True)
    assert names(cache) == {"notes.txt"}
    assert prune_cache(cache / "nothing here") == []
