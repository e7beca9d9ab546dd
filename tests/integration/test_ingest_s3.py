"""`lake ingest s3://…` with the real command, a real S3 server and a real Spark; its keys are never exposed."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pyarrow
import pytest
from pyarrow import parquet
from tests.conftest import Command, cache_only, command_for, stop_spark
from tests.support.servers.s3 import S3Server

from lakehouse.config.load import load_settings
from lakehouse.config.settings import Settings
from lakehouse.core.files import RemoteFile
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble
from lakehouse.storage.s3 import S3

pytestmark = pytest.mark.spark

both_formats = pytest.mark.parametrize("table_format", ["iceberg", "hudi"])


@dataclass(frozen=True)
class S3IngestFixture:
    """A new bucket and one table to ingest its objects into."""

    lake: Lake
    server: S3Server
    bucket: str
    table: str

    def put(self, key: str, content: str | bytes) -> str:
        return self.server.put(f"{self.bucket}/{key}", content)

    def rows(self, table: str = "") -> list[tuple[Any, ...]]:
        return self.lake.sql(f"SELECT * FROM {table or self.table} ORDER BY 1", engine="duckdb").rows()


@pytest.fixture(scope="module")
def settings(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    home = tmp_path_factory.mktemp("s3-lake") / "lake"
    return load_settings({"home": home}, environ={**cache_only(), **s3_server.environment})


@pytest.fixture(scope="module")
def lake(settings: Settings) -> Iterator[Lake]:
    with assemble(settings) as lake:
        yield lake
    stop_spark(settings.home)


@pytest.fixture
def fixture(lake: Lake, s3_server: S3Server, namespace: str) -> S3IngestFixture:
    return S3IngestFixture(lake, s3_server, f"s3://{s3_server.make_bucket()}", f"{namespace}.things")


@pytest.fixture
def command(lake: Lake, settings: Settings, s3_server: S3Server) -> Command:
    run = command_for(settings.home)
    return lambda *arguments, env=None, **more: run(*arguments, env={**s3_server.environment, **(env or {})}, **more)


@pytest.fixture
def fetches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the objects that are fetched while a test runs."""
    names: list[str] = []
    fetch = S3.fetch

    def recording_fetch(self: S3, file: RemoteFile, *more: Any) -> None:
        names.append(file.name)
        fetch(self, file, *more)

    monkeypatch.setattr(S3, "fetch", recording_fetch)
    return names


def parquet_bytes(**columns: list[Any]) -> bytes:
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), buffer)
    return buffer.getvalue()


# ---- ingested objects ----------------------------------------------------------------------------------------------


@both_formats
def test_an_object_is_ingested_once_under_its_own_name(
    command: Command, fixture: S3IngestFixture, table_format: str
) -> None:
    name = fixture.put("leads.csv", "id,name\n1,Ada\n2,Bob\n")
    arguments = ("ingest", name, "--into", fixture.table, "--key", "id", "--format", table_format)
    first = command(*arguments, "-o", "json")
    assert (first.returncode, first.stderr) == (0, "")
    assert json.loads(first.stdout)[0]["files"] == [name]
    again = command(*arguments)
    assert again.returncode == 0
    assert f"{name} is already in {fixture.table}; --force ingests it again." in again.stderr
    assert [row[-2:] for row in fixture.rows()] == [(1, "Ada"), (2, "Bob")]
    (snapshot,) = [snapshot for snapshot in fixture.lake.history(fixture.table) if snapshot.notes.get("sha256")]
    assert snapshot.source == name


def test_a_folder_of_plain_and_compressed_files_is_one_commit(fixture: S3IngestFixture, settings: Settings) -> None:
    fixture.put("in/a.csv", "id,name\n1,Ada\n")
    fixture.put("in/b.csv.gz", gzip.compress(b"id,name\n2,Bob\n"))
    fixture.put("in/sub/c.csv.bz2", bz2.compress(b"id,name\n3,Cy\n"))
    fixture.put("in/_SUCCESS", "")
    report = fixture.lake.ingest(f"{fixture.bucket}/in/", into=fixture.table)
    assert report.files == tuple(f"{fixture.bucket}/in/{key}" for key in ("a.csv", "b.csv.gz", "sub/c.csv.bz2"))
    assert fixture.rows() == [(1, "Ada"), (2, "Bob"), (3, "Cy")]
    assert len(fixture.lake.history(fixture.table)) == 1
    assert list((settings.home / "run" / "ingest").glob("work-*")) == []


def test_a_pattern_of_parquet_files_is_ingested(fixture: S3IngestFixture) -> None:
    for number in (1, 2):
        fixture.put(f"day={number}/part.parquet", parquet_bytes(id=[number], at=["x"]))
    fixture.put("day=3/part.csv", "id,at\n3,x\n")
    report = fixture.lake.ingest(f"{fixture.bucket}/day=*/*.parquet", into=fixture.table)
    assert (len(report.files), fixture.rows()) == (2, [(1, "x"), (2, "x")])


def test_local_files_and_objects_come_in_together_in_the_order_given(fixture: S3IngestFixture, tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("id,name\n1,old\n")
    new = fixture.put("new.csv", "id,name\n1,new\n")
    fixture.lake.ingest(str(tmp_path / "old.csv"), new, into=fixture.table, key=("id",))
    assert fixture.rows() == [(1, "new")]


def test_rejected_rows_name_the_object(fixture: S3IngestFixture) -> None:
    name = fixture.put("bad.csv", "id,name\n1,Ada\n2\n")
    assert fixture.lake.ingest(name, into=fixture.table).rejected == 1
    rejects = fixture.lake.sql(f"SELECT * FROM {fixture.table}__rejected", engine="duckdb").rows()
    assert [value for value in rejects[0] if "bad.csv" in str(value)] == [name]


def test_a_dry_run_looks_and_writes_nothing(command: Command, fixture: S3IngestFixture) -> None:
    name = fixture.put("plan.csv", "Lead ID\n1\n")
    result = command("ingest", name, "--into", fixture.table, "--dry-run")
    assert result.returncode == 0 and "lead_id" in result.stdout
    assert fixture.table not in [str(info.name) for info in fixture.lake.tables()]


# ---- once -------------------------------------------------------------------------------------------------------


@both_formats
def test_what_is_in_the_table_is_not_fetched_again(
    fixture: S3IngestFixture, fetches: list[str], table_format: str
) -> None:
    names = [fixture.put(f"in/{number}.csv", f"id\n{number}\n") for number in (1, 2)]
    fixture.lake.ingest(f"{fixture.bucket}/in", into=fixture.table, key=("id",), format=table_format)
    names.append(fixture.put("in/3.csv", "id\n3\n"))
    report = fixture.lake.ingest(f"{fixture.bucket}/in", into=fixture.table)
    assert (report.files, report.skipped) == ((names[2],), tuple(names[:2]))
    assert sorted(fetches) == names
    fixture.lake.ingest(f"{fixture.bucket}/in", into=fixture.table, force=True)
    assert sorted(fetches) == sorted(names * 2)


def test_an_object_with_other_content_is_ingested_again(fixture: S3IngestFixture) -> None:
    for content in ("id,n\n1,1\n", "id,n\n1,2\n"):
        fixture.lake.ingest(fixture.put("a.csv", content), into=fixture.table, key=("id",))
    assert fixture.rows() == [(1, 2)]


def test_the_same_content_under_another_name_is_skipped(fixture: S3IngestFixture) -> None:
    fixture.lake.ingest(fixture.put("a.csv", "id\n1\n"), into=fixture.table)
    copy = fixture.put("copy.csv", "id\n1\n")
    assert fixture.lake.ingest(copy, into=fixture.table).skipped == (copy,)


def test_an_object_that_was_rolled_back_is_fetched_and_ingested_again(
    fixture: S3IngestFixture, fetches: list[str]
) -> None:
    fixture.lake.ingest(fixture.put("a.csv", "id\n1\n"), into=fixture.table)
    name = fixture.put("b.csv", "id\n2\n")
    fixture.lake.ingest(name, into=fixture.table)
    fixture.lake.rollback(fixture.table, fixture.lake.history(fixture.table)[0].id)
    fixture.lake.ingest(name, into=fixture.table)
    assert (fetches.count(name), len(fixture.lake.table(fixture.table).read().rows())) == (2, 2)


# ---- errors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "wrong", "code", "message"),
    [
        pytest.param("a.csv", {"LAKE_S3__SECRET_KEY": "wrong" * 4}, 2, "LAKE_S3__SECRET_KEY", id="wrong-secret"),
        pytest.param("a.csv", {"LAKE_S3__ACCESS_KEY": "wrong" * 4}, 2, "LAKE_S3__ACCESS_KEY", id="wrong-key"),
        pytest.param("none.csv", {}, 2, "There is no file or folder", id="no-object"),
        pytest.param("../no-such-bucket/a.csv", {}, 2, "There is no bucket no-such-bucket", id="no-bucket"),
        pytest.param("a.csv", {"LAKE_S3__ENDPOINT": "http://127.0.0.1:9"}, 1, "LAKE_S3__ENDPOINT", id="no-server"),
    ],
)
def test_an_error_is_clear_and_quick_and_has_no_secret(
    command: Command, fixture: S3IngestFixture, key: str, wrong: dict[str, str], code: int, message: str
) -> None:
    fixture.put("a.csv", "id\n1\n")
    name = key.replace("../", "s3://") if key.startswith("..") else f"{fixture.bucket}/{key}"
    for debug in ({}, {"LAKE_DEBUG": "1"}):
        started = time.monotonic()
        done = command("ingest", name, "--into", fixture.table, env={**wrong, **debug})
        assert time.monotonic() - started < 15
        assert (done.returncode, done.stdout) == (code, "")
        assert message in done.stderr
        assert ("Traceback" in done.stderr) == bool(debug)
        given = {**fixture.server.environment, **wrong}
        assert given["LAKE_S3__SECRET_KEY"] not in done.stderr
        assert given["LAKE_S3__ACCESS_KEY"] not in done.stderr


def test_the_keys_are_never_exposed(command: Command, fixture: S3IngestFixture, settings: Settings) -> None:
    name = fixture.put("a.csv", "id\n1\n")
    results = [command("ingest", name, "--into", fixture.table), command("config", "show"), command("doctor")]
    assert results[0].returncode == 0
    secrets = (fixture.server.secret_key, fixture.server.access_key)
    for output in (*(done.stdout + done.stderr for done in results), repr(settings)):
        assert not any(secret in output for secret in secrets)
    files = [file for file in settings.home.rglob("*") if file.is_file()]
    assert settings.home / "logs" / "spark.log" in files
    assert [file for file in files if any(secret.encode() in file.read_bytes() for secret in secrets)] == []
    # The warm Spark and its JVM run still. Only ids are kept: a failed test must not print an argument list.
    seen = [
        process.pid for process in psutil.process_iter() if any(secret in _arguments(process) for secret in secrets)
    ]
    assert seen == []


def _arguments(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
