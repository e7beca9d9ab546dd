"""No statement over Trino's own port deletes a file that a branch or a dropped table needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from pyarrow.fs import FileSelector, S3FileSystem
from pyiceberg.catalog import load_catalog
from tests.support.servers.stack import Stack
from trino.dbapi import connect
from trino.exceptions import TrinoUserError

from lakehouse.core.errors import LakeError, NoSuchTableError
from lakehouse.core.names import TableName
from lakehouse.engines.trino import Trino, TrinoSettings
from lakehouse.lake import Lake
from lakehouse.pipelines.upsert import Upsert, create_table

pytestmark = [pytest.mark.servers]


@dataclass(frozen=True)
class Place:
    """A table in one kind of catalog: the lake, Trino, and what Trino calls the catalog."""

    lake: Lake
    trino: Trino
    catalog: str

    @property
    def table(self) -> str:
        return f"{self.catalog}.guarded.t"

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        return self.trino.run(sql, "a test").rows()

    def rows(self, branch: str = "", as_of: str = "") -> list[tuple[Any, ...]]:
        sql = "select id, item from guarded.t order by id"
        return self.lake.sql(sql, engine="duckdb", branch=branch, as_of=as_of).rows()

    def is_kept(self) -> bool:
        """Whether branch and tag still show the first snapshot."""
        return self.rows("guarded") == self.rows(as_of="guarded_tag") == FIRST


#: Trino's catalogs with the profile that has the same tables, and what that profile needs.
KINDS = {"lake": ("sql", "rest"), "nessie": ("stack", "nessie"), "hive": ("hive", "hive")}
FIRST = [(1, "tea"), (2, "jam")]


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.stretch({"lake": "sql"}.get(name, name)), id=name) for name in KINDS]
)
def place(request: pytest.FixtureRequest, stack: Stack) -> Iterator[Place]:
    """A table as the lake creates it without Spark, and a branch and a tag of its first snapshot."""
    profile, server = KINDS[request.param]
    trino = Trino(TrinoSettings(stack.need("storage", "postgres", "trino", server).trino_url))
    lake = stack.lake(profile)
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "item": ["tea", "jam"]})
    with load_catalog("lake", **lake._components.runner().catalog.pyiceberg_properties()) as catalog:
        batch = Upsert({}, rows, rows.select(["id"]), ("id",), "", {})
        create_table(catalog, TableName("guarded", "t"), batch).append(rows)
    lake.refs.branches.create("guarded")
    lake.refs.branches.create_tag("guarded_tag")
    yield Place(lake, trino, request.param)
    with suppress(NoSuchTableError):
        lake.drop("guarded.t")
    lake.refs.branches.drop("guarded")
    lake.refs.branches.drop_tag("guarded_tag")


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
    entries = store.get_file_info(FileSelector(location.partition("://")[2], recursive=True))
    return sorted(entry.path for entry in entries if entry.is_file)


PROCEDURES = ("expire_snapshots", "remove_orphan_files")


def test_neither_snapshots_nor_files_are_removed_over_the_port(place: Place, stack: Stack) -> None:
    location = place.lake.describe("guarded.t").location
    place.ask(f"delete from {place.table}")
    before = files(stack, location)
    for name in PROCEDURES:
        for retention in ("0s", "7d", "3650d"):
            with pytest.raises(LakeError, match="minimum retention"):
                place.ask(f"alter table {place.table} execute {name}(retention_threshold => '{retention}')")
        with pytest.raises(LakeError, match="minimum retention"):
            place.ask(f"alter table {place.table} execute {name}")
        setting = f"{place.catalog}.{name}_min_retention"
        with pytest.raises(LakeError, match="(?i)access denied"):
            place.ask(f"set session {setting} = '0s'")
        with pytest.raises(TrinoUserError, match="(?i)access denied"):
            ask_with(stack, setting, f"alter table {place.table} execute {name}(retention_threshold => '0s')")
    assert files(stack, location) == before
    assert place.is_kept()


def test_a_drop_over_the_port_deletes_no_file(place: Place, stack: Stack) -> None:
    """In the SQL catalog it is a drop that `lake undrop` takes back; in the others Trino refuses it."""
    location = place.lake.describe("guarded.t").location
    before = files(stack, location)
    assert len(before) > 3
    if place.catalog == "lake":
        place.ask(f"drop table {place.table}")
        assert "guarded.t" not in [str(info.name) for info in place.lake.tables()]
        place.lake.undrop("guarded.t")
    else:
        for statement in (f"drop table {place.table}", f"create table {place.catalog}.guarded.mine (id bigint)"):
            with pytest.raises(LakeError, match="(?i)access denied"):
                place.ask(statement)
    assert files(stack, location) == before
    assert place.rows() == FIRST
    assert place.is_kept()


def test_changes_and_a_drop_through_the_lake_leave_branch_and_tag_alone(place: Place) -> None:
    for sql in (
        "delete from guarded.t where id = 1",
        "update guarded.t set item = 'ham' where id = 2",
        "merge into guarded.t t using (values (2), (3)) s(id) on t.id = s.id when matched then delete"
        " when not matched then insert values (s.id, 'new')",
    ):
        place.lake.sql(sql, engine="trino")
    assert place.rows() == [(3, "new")]
    assert place.is_kept()
    place.lake.sql("drop table guarded.t", engine="trino")
    assert place.rows("guarded") == FIRST
    place.lake.undrop("guarded.t")
    assert place.rows() == [(3, "new")]
    assert place.is_kept()


@pytest.mark.stretch("hive")
def test_trino_changes_and_drops_no_hudi_table(stack: Stack) -> None:
    trino = Trino(TrinoSettings(stack.need("storage", "postgres", "trino", "hive").trino_url))
    with pytest.raises(LakeError, match="(?i)not support"):
        trino.run("create table hudi.default.t (id bigint)", "a test")
    with pytest.raises(LakeError, match="(?i)not support"):
        trino.run("drop schema hudi.default", "a test")
