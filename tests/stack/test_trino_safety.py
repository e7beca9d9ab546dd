"""No statement over Trino's own port deletes a file that a branch or a dropped table needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyarrow.fs import FileSelector, S3FileSystem
from tests.servers.stack import Stack
from trino.dbapi import connect
from trino.exceptions import TrinoUserError

from lakehouse.core.errors import LakeError
from lakehouse.engines.trino import Trino, TrinoSettings
from lakehouse.lake import Lake

pytestmark = [pytest.mark.servers, pytest.mark.stretch("sql")]
TABLE = "lake.guarded.t"


@pytest.fixture
def trino(stack: Stack) -> Trino:
    return Trino(TrinoSettings(stack.need("storage", "postgres", "rest", "trino").trino_url))


@pytest.fixture
def lake(stack: Stack, trino: Trino) -> Iterator[Lake]:
    """A lake with a table of two snapshots, of which main shows the second and a branch the first."""
    lake = stack.lake("sql")
    ask(trino, f"create schema if not exists lake.guarded with (location = '{stack.endpoints.warehouse}/guarded')")
    ask(trino, f"create table {TABLE} as select 1 as id")
    lake.refs.branches.create("guarded")
    ask(trino, f"delete from {TABLE}")
    ask(trino, f"insert into {TABLE} values 2")
    yield lake
    ask(trino, f"drop table if exists {TABLE}")
    lake.refs.branches.drop("guarded")


def ask(trino: Trino, sql: str) -> list[tuple[Any, ...]]:
    return trino.run(sql, "a test").rows()


def ask_with(stack: Stack, session_property: str, sql: str) -> None:
    """Send a statement with a session property in its header, as no SQL statement of ours can."""
    _, host, port = TrinoSettings(stack.endpoints.trino_url).address()
    connection = connect(host=host, port=port, user="lake", session_properties={session_property: "0s"})
    connection.cursor().execute(sql)


def files(stack: Stack, location: str) -> list[str]:
    endpoints = stack.endpoints
    store = S3FileSystem(
        access_key=endpoints.s3_access_key,
        secret_key=endpoints.s3_secret_key,
        endpoint_override=endpoints.s3_endpoint,
        region=endpoints.s3_region,
    )
    found = store.get_file_info(FileSelector(location.partition("://")[2], recursive=True))
    return sorted(each.path for each in found if each.is_file)


def read(lake: Lake, branch: str) -> list[tuple[Any, ...]]:
    return lake.sql("select id from guarded.t", engine="duckdb", branch=branch).rows()


PROCEDURES = ("expire_snapshots", "remove_orphan_files")


def test_neither_snapshots_nor_files_are_removed_over_the_port(lake: Lake, trino: Trino, stack: Stack) -> None:
    before = files(stack, lake.describe("guarded.t").location)
    for name in PROCEDURES:
        for retention in ("0s", "7d", "3650d"):
            with pytest.raises(LakeError, match="minimum retention"):
                ask(trino, f"alter table {TABLE} execute {name}(retention_threshold => '{retention}')")
        with pytest.raises(LakeError, match="minimum retention"):
            ask(trino, f"alter table {TABLE} execute {name}")
        with pytest.raises(LakeError, match="(?i)access denied"):
            ask(trino, f"set session lake.{name}_min_retention = '0s'")
        with pytest.raises(TrinoUserError, match="(?i)access denied"):
            ask_with(
                stack, f"lake.{name}_min_retention", f"alter table {TABLE} execute {name}(retention_threshold => '0s')"
            )
    assert files(stack, lake.describe("guarded.t").location) == before
    assert (read(lake, "guarded"), read(lake, "main")) == ([(1,)], [(2,)])


def test_a_drop_over_the_port_is_undone(lake: Lake, trino: Trino, stack: Stack) -> None:
    location = lake.describe("guarded.t").location
    before = files(stack, location)
    assert len(before) > 3
    ask(trino, f"drop table {TABLE}")
    assert files(stack, location) == before
    assert read(lake, "guarded") == [(1,)]
    lake.undrop("guarded.t")
    assert read(lake, "main") == [(2,)]
