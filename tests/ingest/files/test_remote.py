"""Files, patterns and folders in a real object store."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from tests.support.servers.s3 import S3Server

from lakehouse.core.errors import (
    DiskFullError,
    EmptyGlobError,
    LakeError,
    NoDataFilesError,
    NoSuchBucketError,
    NoSuchFileError,
    StorageError,
)
from lakehouse.ingest.files import SourceFile, content_hash, discover, fetch_remote
from lakehouse.storage.s3 import S3

pytestmark = pytest.mark.slow

KEYS = (
    "b.csv",
    "a.csv",
    "x1.csv",
    ".hidden.csv",
    "_SUCCESS",
    "sub/c.csv",
    "sub/deep/d.csv",
    "sub/.git/e.csv",
    "_temporary/f.csv",
    "[odd].csv",
)


@pytest.fixture(scope="module")
def folder(s3_server: S3Server) -> str:
    bucket = s3_server.make_bucket()
    for key in KEYS:
        s3_server.put(f"s3://{bucket}/data/{key}", key)
    s3_server.put(f"s3://{bucket}/elsewhere/_only_this", "x")
    return f"s3://{bucket}/data"


@pytest.fixture(scope="module")
def store(s3_server: S3Server) -> S3:
    return S3(s3_server.settings)


def keys(store: S3, folder: str, *sources: str) -> list[str]:
    return [
        file.name.removeprefix(folder + "/") for file in discover([f"{folder}{source}" for source in sources], store)
    ]


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_folder_gives_its_data_files_in_order(store: S3, folder: str, slash: str) -> None:
    assert keys(store, folder, slash) == ["[odd].csv", "a.csv", "b.csv", "sub/c.csv", "sub/deep/d.csv", "x1.csv"]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        pytest.param("/*.csv", ["[odd].csv", "a.csv", "b.csv", "x1.csv"], id="star"),
        pytest.param("/?.csv", ["a.csv", "b.csv"], id="question-fingerprint"),
        pytest.param("/[ax]*.csv", ["a.csv", "x1.csv"], id="set"),
        pytest.param("/[!ax]*.csv", ["[odd].csv", "b.csv"], id="all-but-a-set"),
        pytest.param("/*/c.csv", ["sub/c.csv"], id="a-folder"),
        pytest.param("/**/d.csv", ["sub/deep/d.csv"], id="any-folders"),
        pytest.param("/**/a.csv", ["a.csv"], id="no-folder-is-any-folders-too"),
        pytest.param("/sub/**", ["sub/c.csv", "sub/deep/d.csv"], id="everything-below"),
        pytest.param("/.h*", [".hidden.csv"], id="hidden-on-request"),
        pytest.param("/_S*", ["_SUCCESS"], id="underscore-on-request"),
        pytest.param("/[odd].csv", ["[odd].csv"], id="a-name-before-a-pattern"),
    ],
)
def test_a_pattern_gives_what_matches(store: S3, folder: str, pattern: str, names: list[str]) -> None:
    assert keys(store, folder, pattern) == names


def test_a_file_named_twice_is_read_once_and_knows_its_size(store: S3, folder: str) -> None:
    files = discover([f"{folder}/b.csv", f"{folder}/?.csv"], store)
    assert [(file.name, file.size, file.path) for file in files] == [
        (f"{folder}/b.csv", 5, ""),
        (f"{folder}/a.csv", 5, ""),
    ]
    assert all(file.fingerprint for file in files) and files[0].fingerprint != files[1].fingerprint


def test_fetched_files_keep_their_order_and_their_names(store: S3, folder: str, tmp_path: Path) -> None:
    local = tmp_path / "local.csv"
    local.write_text("here")
    files = fetch_remote(discover([f"{folder}/b.csv", str(local), f"{folder}/sub/"], store), store, tmp_path / "work")
    assert [file.name.rpartition("/")[2] for file in files] == ["b.csv", "local.csv", "c.csv", "d.csv"]
    assert content_hash(files[0]) == hashlib.sha256(b"b.csv").hexdigest()
    assert files[1] == SourceFile(str(local), str(local), 4)
    assert {Path(file.path).parent for file in files if file.fingerprint} == {tmp_path / "work"}


def test_one_file_that_cannot_be_fetched_stops_all(store: S3, folder: str, tmp_path: Path) -> None:
    files = discover([folder], store)
    gone = SourceFile("", f"{folder}/gone.csv", 1, "x")
    with pytest.raises(StorageError, match=r"gone\.csv"):
        fetch_remote([gone, *files], store, tmp_path / "work")


def test_files_that_do_not_fit_on_the_disk_are_not_fetched(store: S3, folder: str, tmp_path: Path) -> None:
    huge = SourceFile("", f"{folder}/a.csv", 1 << 60, "x")
    with pytest.raises(DiskFullError, match=r"MB, but .* has only \d+ MB free"):
        fetch_remote([huge], store, tmp_path / "work")
    assert list((tmp_path / "work").iterdir()) == []


def test_a_stopped_fetch_writes_nothing(store: S3, folder: str, tmp_path: Path) -> None:
    file = store.stat(f"{folder}/a.csv")
    assert file
    with pytest.raises(StorageError):
        store.fetch(file, tmp_path / "a.csv", lambda: True)
    assert not (tmp_path / "a.csv").exists()


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        pytest.param("{folder}/none.csv", NoSuchFileError, "There is no file or folder {folder}/none.csv", id="file"),
        pytest.param("{folder}/A.csv", NoSuchFileError, "There is no file or folder {folder}/A.csv", id="case"),
        pytest.param("{folder}/none/", NoSuchFileError, "There is no file or folder {folder}/none/", id="folder"),
        pytest.param("{folder}/*.json", EmptyGlobError, "No file matches {folder}/*.json", id="pattern"),
        pytest.param("{folder}/../elsewhere", LakeError, "", id="dots"),
        pytest.param("s3://no-such-bucket/a.csv", NoSuchBucketError, "no bucket no-such-bucket", id="bucket"),
        pytest.param(
            "s3://no-such-bucket/*.csv", NoSuchBucketError, "no bucket no-such-bucket", id="bucket-of-pattern"
        ),
        pytest.param("s3://buck*/a.csv", NoSuchFileError, "has a pattern as its bucket", id="pattern-for-a-bucket"),
        pytest.param("s3://", StorageError, "names no bucket", id="nothing"),
    ],
)
def test_what_does_not_exist_says_so(store: S3, folder: str, source: str, kind: type[LakeError], message: str) -> None:
    with pytest.raises(kind) as refused:
        discover([source.format(folder=folder)], store)
    assert message.format(folder=folder) in refused.value.message


def test_a_folder_without_data_says_so(store: S3, folder: str) -> None:
    with pytest.raises(NoDataFilesError, match="no data files"):
        discover([folder.replace("/data", "/elsewhere")], store)
