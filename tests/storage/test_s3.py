"""Objects of a real S3 server: listed, looked at, fetched whole, and errors that say what to set."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.servers.s3 import S3Server

from lakehouse.core.errors import (
    AccessDeniedError,
    BadSettingError,
    LakeError,
    NoSuchBucketError,
    StorageError,
    StorageUnreachableError,
)
from lakehouse.core.files import RemoteFile
from lakehouse.storage import s3 as module
from lakehouse.storage.s3 import S3, S3Settings

pytestmark = pytest.mark.slow


@pytest.fixture
def bucket(s3_server: S3Server) -> str:
    return f"s3://{s3_server.make_bucket()}"


@pytest.fixture
def store(s3_server: S3Server) -> S3:
    return S3(s3_server.settings)


def looked_at(store: S3, name: str) -> RemoteFile:
    file = store.stat(name)
    assert file is not None
    return file


def test_objects_below_a_folder_come_in_order(s3_server: S3Server, store: S3, bucket: str) -> None:
    for key in ("d/b.csv", "d/a.csv", "d/sub/c.csv", "other.csv", "dd/e.csv"):
        s3_server.put(f"{bucket}/{key}", "x")
    assert store.list(f"{bucket}/d", deep=True) == [f"{bucket}/d/{key}" for key in ("a.csv", "b.csv", "sub/c.csv")]
    assert store.list(f"{bucket}/d/", deep=False) == [f"{bucket}/d/a.csv", f"{bucket}/d/b.csv"]
    assert len(store.list(bucket, deep=True)) == 5
    assert store.list(f"{bucket}/none", deep=True) == []


def test_more_objects_than_one_answer_holds_are_all_listed(s3_server: S3Server, store: S3, bucket: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(lambda at: s3_server.put(f"{bucket}/{at:04}", "x"), range(1005)))
    assert store.list(bucket, deep=True) == names


@pytest.mark.parametrize("key", ["a b.csv", "x[1].csv", "tag#1?.csv", "größe+%20.csv", "d/e=1/f.csv"])
def test_any_key_is_found_and_fetched(s3_server: S3Server, store: S3, bucket: str, key: str, tmp_path: Path) -> None:
    name = s3_server.put(f"{bucket}/{key}", "content")
    file = looked_at(store, name)
    assert (file.name, file.size) == (name, 7)
    store.fetch(file, tmp_path / "here")
    assert (tmp_path / "here").read_text() == "content"


def test_what_is_not_an_object_is_none(s3_server: S3Server, store: S3, bucket: str) -> None:
    s3_server.put(f"{bucket}/d/a.csv", "x")
    assert [store.stat(name) for name in (f"{bucket}/b.csv", f"{bucket}/d", bucket)] == [None] * 3


def test_another_content_has_another_mark(s3_server: S3Server, store: S3, bucket: str) -> None:
    before = looked_at(store, s3_server.put(f"{bucket}/a.csv", "one"))
    same = looked_at(store, s3_server.put(f"{bucket}/a.csv", "one"))
    after = looked_at(store, s3_server.put(f"{bucket}/a.csv", "two"))
    assert before.etag == same.etag != after.etag


def test_a_large_object_arrives_piece_by_piece(
    s3_server: S3Server, store: S3, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CHUNK_BYTES", 1000)
    content = os.urandom(12_345)
    store.fetch(looked_at(store, s3_server.put(f"{bucket}/big", content)), tmp_path / "here")
    assert (tmp_path / "here").read_bytes() == content


@pytest.mark.parametrize("after", ["another length", "same len"])
def test_an_object_that_was_replaced_after_it_was_looked_at_does_not_arrive(
    s3_server: S3Server, store: S3, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    monkeypatch.setattr(module, "_CHUNK_BYTES", 4)
    file = looked_at(store, s3_server.put(f"{bucket}/a.csv", "12345678"))
    s3_server.put(f"{bucket}/a.csv", after)
    with pytest.raises(StorageError, match="changed while it was downloaded"):
        store.fetch(file, tmp_path / "here")
    assert not (tmp_path / "here").exists()


def test_an_object_that_went_away_says_so(s3_server: S3Server, store: S3, bucket: str, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="changed while it was downloaded"):
        store.fetch(RemoteFile(f"{bucket}/gone.csv", 3, "x"), tmp_path / "here")


# ---- what goes wrong --------------------------------------------------------------------------------------------


def refused(store: S3, name: str) -> Iterator[LakeError]:
    """The errors of looking at an object and of listing."""
    for act in (lambda: store.stat(f"{name}/d/a.csv"), lambda: store.list(f"{name}/d", deep=True)):
        started = time.monotonic()
        with pytest.raises(LakeError) as told:
            act()
        assert time.monotonic() - started < 10
        yield told.value


@pytest.mark.parametrize("wrong", ["access_key", "secret_key"])
def test_wrong_keys_are_refused_and_not_repeated(s3_server: S3Server, bucket: str, wrong: str) -> None:
    s3_server.put(f"{bucket}/d/a.csv", "x")
    settings = replace(s3_server.settings, **{wrong: "hunter2hunter2"})
    for error in refused(S3(settings), bucket):
        assert isinstance(error, AccessDeniedError)
        assert "LAKE_S3__ACCESS_KEY" in error.hint
        told = f"{error} {error.__cause__} {error.as_dict()} {settings!r}"
        assert not any(secret in told for secret in (settings.access_key, settings.secret_key))


def test_a_missing_bucket_is_named(store: S3) -> None:
    with pytest.raises(NoSuchBucketError, match="There is no bucket no-such-bucket") as told:
        store.list("s3://no-such-bucket/d", deep=True)
    assert "s3.endpoint" in told.value.hint


def test_an_endpoint_where_nobody_is_says_so_soon() -> None:
    with socket.socket() as nobody:  # bound and not listening: the port is refused, and nobody else gets it meanwhile
        nobody.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        for error in refused(S3(S3Settings(endpoint, access_key="a", secret_key="b")), "s3://bucket"):
            assert isinstance(error, StorageUnreachableError)
            assert endpoint in error.message and "LAKE_S3__ENDPOINT" in error.hint


def test_a_server_that_keeps_silent_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_REQUEST_TIMEOUT_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = S3(S3Settings(f"http://127.0.0.1:{silent.getsockname()[1]}", access_key="a", secret_key="b"))
        assert all(isinstance(error, StorageUnreachableError) for error in refused(store, "s3://bucket"))


def test_https_to_a_server_without_it_tells_the_cause(s3_server: S3Server) -> None:
    settings = replace(s3_server.settings, endpoint=s3_server.endpoint.replace("http:", "https:"))
    with pytest.raises(StorageUnreachableError, match="SSL"):
        S3(settings).stat("s3://bucket/a.csv")


@pytest.mark.parametrize("name", ["s3://", "s3:///a.csv", "s3://bucket/a//b.csv"])
def test_a_name_that_cannot_be_one_is_refused(store: S3, name: str) -> None:
    with pytest.raises(StorageError, match="s3://") as told:
        store.stat(name)
    assert told.value.hint == "Write s3://bucket/key."


def test_one_key_without_the_other_is_refused(s3_server: S3Server) -> None:
    with pytest.raises(BadSettingError, match="Only one of"):
        S3(replace(s3_server.settings, secret_key="")).stat("s3://bucket/a.csv")


@pytest.mark.parametrize("endpoint", ["ftp://host", "http://", "http://me:hunter2@host"])
def test_an_endpoint_that_is_no_address_is_refused_without_showing_it(endpoint: str) -> None:
    with pytest.raises(BadSettingError, match=r"s3\.endpoint is not an address") as told:
        S3(S3Settings(endpoint)).stat("s3://bucket/a.csv")
    assert "hunter2" not in str(told.value.as_dict())


# ---- other people's keys ----------------------------------------------------------------------------------------

LOOK = """
import sys
from lakehouse.storage.s3 import S3, S3Settings
from lakehouse.core.errors import LakeError
try:
    print(S3(S3Settings(sys.argv[1])).stat(sys.argv[2]).size)
except LakeError as exc:
    print(exc.code, exc.message)
"""


def look(server: S3Server, name: str, **environment: str) -> str:
    """In a process of its own: AWS's library reads the environment once."""
    here = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    quiet = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_SHARED_CREDENTIALS_FILE": "/none", "AWS_CONFIG_FILE": "/none"}
    arguments = [sys.executable, "-c", LOOK, server.endpoint, name]
    return subprocess.run(
        arguments, env={**here, **quiet, **environment}, capture_output=True, text=True, timeout=60, check=True
    ).stdout.strip()


def test_without_keys_of_ours_those_of_aws_count(s3_server: S3Server, bucket: str) -> None:
    name = s3_server.put(f"{bucket}/a.csv", "123")
    keys = {"AWS_ACCESS_KEY_ID": s3_server.access_key, "AWS_SECRET_ACCESS_KEY": s3_server.secret_key}
    assert look(s3_server, name, **keys) == "3"
    assert look(s3_server, name).startswith("access_denied S3 denies access to")
