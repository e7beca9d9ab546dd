"""Metadata files are read by their content, whatever their names, and written beside the one that they follow."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from lakehouse.core.errors import TableError
from lakehouse.core.files import LOCAL
from lakehouse.core.metadata_file import load_metadata, parse_metadata, version_of, write_next

METADATA = {"format-version": 2, "location": "file:///lake/t"}


@pytest.mark.parametrize("name", ["00001-a.metadata.json", "00001-a.gz.metadata.json"])
@pytest.mark.parametrize("gzipped", [False, True], ids=["plain", "gzipped"])
def test_the_content_tells_whether_a_file_is_gzipped(tmp_path: Path, name: str, gzipped: bool) -> None:
    text = json.dumps(METADATA).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if gzipped else text)
    assert load_metadata(str(tmp_path / name), LOCAL) == METADATA


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\x1f\x8bbroken", gzip.compress(b"{}")[:-4], gzip.compress(b"{}")[:10] + b"\xff" * 20],
    ids=["empty", "cut", "list", "gzip", "cut gzip", "overwritten gzip"],
)
def test_a_damaged_file_is_named(content: bytes) -> None:
    with pytest.raises(TableError, match=r"t\.metadata\.json is damaged"):
        parse_metadata("t.metadata.json", content)


@pytest.mark.parametrize(
    ("name", "version"),
    [("00012-a.metadata.json", 12), ("v3.metadata.json", 3), ("v4.gz.metadata.json", 4), ("of-a-clone.json", -1)],
)
def test_names_of_every_writer_have_a_version(name: str, version: int) -> None:
    assert version_of(name) == version


def test_a_new_file_is_beside_the_one_that_it_follows(tmp_path: Path) -> None:
    before = str(tmp_path / "00012-a.metadata.json")
    after = write_next(before, METADATA, LOCAL)
    assert Path(after).parent == tmp_path
    assert version_of(Path(after).name) == 13
    assert load_metadata(after, LOCAL) == METADATA
