"""Rows are counted after every scan, since DuckDB's reader is known to lose some in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse.core.requests import ReadOptions
from lakehouse.ingest.files import discover, plan_files
from lakehouse.ingest.files.errors import DamagedFileError
from lakehouse.ingest.files.workspace import workspace

from .conftest import SMALL


def test_a_scan_that_found_too_few_rows_is_done_again_with_care(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n\n3,4\n5,6")
    (file,) = plan_files(discover([str(tmp_path / "a.csv")])).files
    with workspace(SMALL, ReadOptions()) as space:
        assert space.count_again(file, 3)
        assert not space.count_again(file, 2)
        assert space.ready(file).careful
        assert space.count_again(file, 3)


def test_a_file_that_cannot_be_cut_into_rows_for_certain_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3,4\n")
    (file,) = plan_files(discover([str(tmp_path / "a.csv")])).files
    with workspace(SMALL, ReadOptions()) as space:
        assert not space.count_again(file, 1)
        with pytest.raises(DamagedFileError, match="none must be lost"):
            space.count_again(file, 1)


def test_a_workspace_leaves_nothing_behind(tmp_path: Path) -> None:
    with workspace(SMALL, ReadOptions(), near=tmp_path) as space:
        (space.folder / "x").touch()
    assert list(tmp_path.iterdir()) == []
