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
    """A cache with a jar of this release, one of another, an old and a new class archive, and a file of the user."""
    artifact = EMBEDDED[0]
    for name in ("jars", "dist", "classes"):
        (tmp_path / name).mkdir()
    (tmp_path / "jars" / artifact.file).write_bytes(b"now")
    (tmp_path / "jars" / artifact.file.replace(artifact.version, "0.0.1")).write_bytes(b"before")
    for name in ("old.jsa", "new.jsa"):
        (tmp_path / "classes" / name).write_bytes(b"classes")
    long_ago = time.time() - 60 * 86_400
    os.utime(tmp_path / "classes" / "old.jsa", (long_ago, long_ago))
    (tmp_path / "notes.txt").write_text("the user's own")
    return tmp_path


def names(cache: Path) -> set[str]:
    return {path.name for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock"}


def test_only_what_no_release_uses_is_removed(cache: Path) -> None:
    kept = {EMBEDDED[0].file, "new.jsa", "notes.txt"}
    removed = prune_cache(cache)
    assert {path.name for path, _ in removed} == {EMBEDDED[0].file.replace(EMBEDDED[0].version, "0.0.1"), "old.jsa"}
    assert sorted(size for _, size in removed) == [6, 7]
    assert names(cache) == kept


def test_a_dry_run_removes_nothing(cache: Path) -> None:
    before = names(cache)
    assert len(prune_cache(cache, dry_run=True)) == 2
    assert names(cache) == before


def test_everything_of_ours_is_removed_and_nothing_else(cache: Path) -> None:
    prune_cache(cache, everything=True)
    assert names(cache) == {"notes.txt"}
    assert prune_cache(cache / "nothing here") == []
