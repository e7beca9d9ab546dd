"""Rows are counted after every scan, because DuckDB's reader may lose some without an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse.core.errors import DamagedFileError
from lakehouse.core.requests import ReadOptions
from lakehouse.ingest.files import discover, plan_files
from lakehouse.ingest.files.workspace import workspace

from .conftest import SMALL


def test_a_scan_that_found_too_few_rows_is_repeated_sequentially(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n\n3,4\n5,6")
    (file,) = plan_files(discover([str(tmp_path / "a.csv")])).files
    with workspace(SMALL, ReadOptions()) as space:
        assert space.verify_row_count(file, 3)
        assert not space.verify_row_count(file, 2)
        assert space.prepare(file).sequential
        assert space.verify_row_count(file, 3)


def test_a_file_that_cannot_be_split_into_rows_reliably_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3,4\n")
    (file,) = plan_files(discover([str(tmp_path / "a.csv")])).files
    with workspace(SMALL, ReadOptions()) as space:
        assert not space.verify_row_count(file, 1)
        with pytest.raises(DamagedFileError, match="rows could be lost"):
            space.verify_row_count(file, 1)


def test_a_workspace_leaves_nothing_behind(tmp_path: Path) -> None:
    with workspace(SMALL, ReadOptions(), beside=tmp_path) as space:
        (space.folder / "x").touch()
    assert list(tmp_path.iterdir()) == []
