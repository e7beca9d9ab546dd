"""Files, patterns and folders are found, and errors name what is missing."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from lakehouse.core.errors import (
    EmptyGlobError,
    LakeError,
    NoDataFilesError,
    NoSuchFileError,
    NotSupportedError,
    UnreadableFileError,
)
from lakehouse.ingest.files import content_hash, discover


def names(*sources: Path | str) -> list[str]:
    return [Path(file.path).name for file in discover([str(source) for source in sources])]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.csv", "a.csv", "sub/c.csv", ".hidden.csv", "_SUCCESS", "sub/.git/d.csv", "_temporary/e.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\n1\n")
    return tmp_path


def test_a_folder_gives_its_data_files_in_order(folder: Path) -> None:
    assert names(folder) == ["a.csv", "b.csv", "c.csv"]


def test_a_pattern_gives_what_matches(folder: Path) -> None:
    assert names(folder / "*.csv") == ["a.csv", "b.csv"]
    assert names(folder / "**" / "c.csv") == ["c.csv"]


def test_a_file_named_twice_is_read_once(folder: Path) -> None:
    assert names(folder / "b.csv", folder / "*.csv") == ["b.csv", "a.csv"]


def test_a_name_with_brackets_is_a_file_before_it_is_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "x[1].csv").write_text("a\n")
    assert names(tmp_path / "x[1].csv") == ["x[1].csv"]


def test_a_file_knows_its_size_and_its_hash(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"abc")
    (file,) = discover([str(tmp_path / "a.csv")])
    assert file.size == 3
    assert content_hash(file) == hashlib.sha256(b"abc").hexdigest()


def test_a_missing_file_is_named_with_similar_ones(tmp_path: Path) -> None:
    (tmp_path / "leads.csv").write_text("a\n")
    with pytest.raises(NoSuchFileError, match=r"lead\.csv") as error:
        discover([str(tmp_path / "lead.csv")])
    assert "leads.csv" in error.value.hint


def test_a_pattern_that_matches_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(EmptyGlobError, match="No file matches"):
        discover([str(tmp_path / "*.csv")])


def test_a_folder_without_data_says_so(tmp_path: Path) -> None:
    (tmp_path / "_SUCCESS").touch()
    with pytest.raises(NoDataFilesError, match="no data files"):
        discover([str(tmp_path)])


def test_a_dangling_link_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.csv").symlink_to(tmp_path / "gone.csv")
    with pytest.raises(NoSuchFileError, match="does not exist"):
        discover([str(tmp_path / "a.csv")])


def test_a_pipe_is_not_a_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(UnreadableFileError, match="not a regular file"):
        discover([str(tmp_path / "pipe.csv")])


def test_a_file_that_may_not_be_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret.csv"
    path.write_text("a\n")
    path.chmod(0)
    if os.access(path, os.R_OK):  # root may read everything
        monkeypatch.setattr("builtins.open", _permission_denied)
    with pytest.raises(UnreadableFileError, match="permission denied"):
        discover([str(path)])


@pytest.mark.parametrize("source", ["gs://bucket/leads.csv", "https://host/leads.csv", "s3://bucket/leads.csv"])
def test_a_url_needs_a_source_for_its_scheme(source: str) -> None:
    with pytest.raises(NotSupportedError, match=source):
        discover([source])


def test_every_error_has_one_shape(tmp_path: Path) -> None:
    with pytest.raises(LakeError) as error:
        discover([str(tmp_path / "no.csv")])
    assert error.value.as_dict()["error"] == "no_such_file"
    assert error.value.is_user_error


def _permission_denied(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied")
