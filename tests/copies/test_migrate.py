"""Lakes that move: to PostgreSQL and S3, to Nessie, as a shallow clone, and from an older release."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import LAKE
from tests.support.catalog_bench import nessie_server, served_beside
from tests.support.first_catalog import VERSION_1
from tests.support.servers.nessie import NessieServer
from tests.support.servers.postgres import Postgres
from tests.support.servers.rest_catalog import Served
from tests.support.servers.s3 import S3Server
from tests.support.small_lake import SmallLake, killed_right_before_its_end, opened

from lakehouse.catalogs.overlay import BranchOverlay
from lakehouse.catalogs.rest import RestCatalog
from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.config.load import load_settings
from lakehouse.copies.content import take_content
from lakehouse.copies.lake_parts import LakeParts
from lakehouse.copies.restore import LakeSource, check_empty, copy_lake
from lakehouse.core.catalog import Catalog, CatalogContext
from lakehouse.core.errors import NotSupportedError, TableExistsError, UnknownChoiceError
from lakehouse.core.files import LOCAL
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.registry import require
from lakehouse.lake.copies import parts_of, restore_lake
from lakehouse.storage.tree import LocalTree

__all__ = ["nessie_server", "served_beside"]

ORDERS, ITEMS = TableName("shop", "orders"), TableName("shop", "items")


def restored(dest: Path | str, home: Path, **settings: str) -> None:
    """Restore into a folder with some settings of its own."""
    flags = {name.replace("__", "."): value for name, value in settings.items()}
    restore_lake(load_settings({"home": home, **flags}, folder=home.parent, environ={}), dest)


def team(s3: S3Server, bucket: str, **more: Any) -> dict[str, Any]:
    """The settings of a stack whose object store is the tests' own."""
    port = int(s3.endpoint.rpartition(":")[2])
    keys = {"stack__access_key": s3.access_key, "stack__secret_key": s3.secret_key}
    return {"stack__storage_port": port, "stack__bucket": bucket, **keys, **more}


@pytest.fixture
def team_database(postgres_server: Postgres) -> Iterator[Postgres]:
    """The database that the stack has for the SQL catalog."""
    from dataclasses import replace

    postgres_server.run("CREATE DATABASE lake")
    yield replace(postgres_server, database="lake")
    postgres_server.run("DROP DATABASE lake WITH (FORCE)")


def on_postgres(s3: S3Server, bucket: str, database: Postgres) -> dict[str, Any]:
    return team(s3, bucket, stack__postgres_port=database.port, stack__lake_password=database.password)


# ---- PostgreSQL and S3 ------------------------------------------------------------------------------------------


def test_an_embedded_lake_moves_to_postgresql_and_s3(
    small: SmallLake, s3_server: S3Server, team_database: Postgres
) -> None:
    settings = on_postgres(s3_server, s3_server.make_bucket(), team_database)
    expected = small.contents()
    with opened(small.home, **settings) as source:
        report = source.lake.migrate("sql")
        assert (report.tables, report.branches, report.notes) == (2, 2, ())
        assert source.lake.migrate("sql").written == 0
    with opened(small.home, profile="sql", **settings) as there:
        assert there.contents() == expected
        assert not there.lake.verify().damage
        assert there.catalog.publish("run_r1")
        assert there.ids("shop.items") == [1, 2, 3]
    assert small.contents() == expected, "the embedded lake stays as it is"
    with opened(small.home, **settings) as source, pytest.raises(TableExistsError, match="changed since"):
        source.lake.migrate("sql")


def test_a_migrated_lake_without_tables_does_not_hide_that_the_target_has_some(
    tmp_path: Path, s3_server: S3Server, team_database: Postgres
) -> None:
    settings = on_postgres(s3_server, s3_server.make_bucket(), team_database)
    with opened(tmp_path / "empty", **settings) as source:
        assert source.lake.migrate("sql").tables == 0
        assert source.lake.migrate("sql").written == 0
    with opened(tmp_path / "empty", profile="sql", **settings) as there:
        there.make("shop.orders")
    with opened(tmp_path / "empty", **settings) as source, pytest.raises(TableExistsError, match="changed since"):
        source.lake.migrate("sql")


def test_a_migration_that_is_killed_is_finished_by_the_same_command(
    small: SmallLake, s3_server: S3Server, team_database: Postgres
) -> None:
    bucket = s3_server.make_bucket()
    settings = on_postgres(s3_server, bucket, team_database)
    variables = {f"LAKE_{name.upper()}": str(value) for name, value in settings.items()}
    command = [LAKE, "--home", str(small.home), "migrate", "--to-profile", "sql"]
    environment = {**os.environ, **variables}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while len(s3_server.names(bucket)) < 3 and process.poll() is None:
        time.sleep(0.001)
    process.kill()
    assert process.wait() != 0, "with three of forty objects written there is much left to do"
    with opened(small.home, profile="sql", **settings) as there:
        assert there.catalog.dump_state().is_empty, "the catalog is filled last, in one transaction"
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with opened(small.home, profile="sql", **settings) as there:
        assert there.contents() == small.contents()


def test_what_cannot_be_migrated_is_refused(small: SmallLake) -> None:
    with pytest.raises(UnknownChoiceError, match="embedded"):
        small.lake.migrate("embedded")
    with pytest.raises(UnknownChoiceError, match="oracle"):
        small.lake.migrate("oracle")


def test_a_lake_moves_from_sqlite_and_a_folder_to_postgresql_and_s3_and_back(
    small: SmallLake, tmp_path: Path, postgres: Postgres, s3_server: S3Server
) -> None:
    bucket = s3_server.make_bucket()
    store = {
        "s3__endpoint": s3_server.endpoint,
        "s3__access_key": s3_server.access_key,
        "s3__secret_key": s3_server.secret_key,
    }
    there = {**store, "warehouse": f"s3://{bucket}/warehouse", "catalog__uri": postgres.url, "catalog__kind": "sql"}
    dest = f"s3://{bucket}/backups"
    with opened(small.home, **store) as same:
        same.lake.backup(dest)
        assert same.lake.backup(dest).copied_files == 0
    restored(dest, tmp_path / "team", **there)
    with opened(tmp_path / "team", **there) as team:
        assert team.contents() == small.contents()
        assert not team.lake.verify(deep=True, against=dest).damage
        team.add("shop.items", 9)
        team.catalog.create_tag("after")
        assert team.catalog.publish("run_r1").conflicts
        team.lake.backup(tmp_path / "home_again")
        expected = team.contents()
    restored(tmp_path / "home_again", tmp_path / "laptop")
    with opened(tmp_path / "laptop") as laptop:
        assert laptop.contents() == expected
        assert laptop.ids("shop.items") == [1, 2, 9]


# ---- other kinds of catalogs ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_lake_moves_to_nessie_with_branches_tags_log_and_drops(
    small: SmallLake, s3_server: S3Server, nessie_server: NessieServer
) -> None:
    nessie_server.emptied()
    port = int(nessie_server.uri.split(":")[2].split("/")[0])
    settings = team(s3_server, s3_server.make_bucket(), stack__nessie_port=port, stack__lake_password="unused")
    with opened(small.home, **settings) as source:
        assert source.lake.migrate("stack").notes == ()
        assert source.lake.migrate("stack").written == 0
        killed_right_before_its_end(small.home, "stack")
        assert source.lake.migrate("stack").notes == ()
    with opened(small.home, profile="stack", **settings) as there:
        for branch in (MAIN, "exp", "run_r1"):
            for table in ("shop.orders", "shop.items"):
                assert there.ids(table, branch) == small.ids(table, branch)
        assert [tag.name for tag in there.catalog.tags()] == [tag.name for tag in small.catalog.tags()]
        assert set(there.catalog.tag_pointers("v1") or ()) == {ORDERS, ITEMS}
        (entry,) = (record for record in there.catalog.log() if record.commit.run == "r2")
        (known,) = (record for record in small.catalog.log() if record.commit.run == "r2")
        assert (entry.at, entry.commit) == (known.at, known.commit)
        assert there.catalog.published_by("r2") is not None
        assert [change.table for change in there.catalog.changes("exp")] == [ORDERS]
        assert there.catalog.publish("exp").conflicts == (ORDERS,)
        assert there.catalog.publish("run_r1")
        assert there.ids("shop.items") == [1, 2, 3]
        assert there.lake.undrop("shop.gone").current is not None
        assert there.ids("shop.gone") == [5]
    with opened(small.home, profile="stack", **settings) as there:
        there.lake.backup(small.home.parent / "from_nessie")


def test_a_load_into_nessie_that_was_killed_starts_again(small: SmallLake, nessie_server: NessieServer) -> None:
    from lakehouse.catalogs.nessie.state import LOADING

    catalog = nessie_server.emptied().catalog(author="ada")
    state = small.catalog.dump_state()
    main = catalog.api.find(MAIN)
    assert main is not None
    catalog.api.create(LOADING, "BRANCH", main)
    catalog.api.create("exp", "BRANCH", main)
    catalog.load_state(state)
    assert sorted(catalog.branches()) == ["exp", "run_r1"]
    assert list(catalog.tables()) == [ITEMS, ORDERS]
    with pytest.raises(TableExistsError, match="not empty"):
        catalog.load_state(state)


def test_a_catalog_without_branches_keeps_them_beside_it(
    small: SmallLake, served_beside: Served, tmp_path: Path
) -> None:
    """A REST server of somebody else: it takes the tables, and the overlay the rest."""
    branches = SqlCatalog(open_database(tmp_path / "branches.db"), f"file://{tmp_path}/warehouse", author="ada")
    catalog = BranchOverlay(RestCatalog(served_beside.url, token=served_beside.token), branches)
    warehouse = LocalTree(tmp_path / "warehouse")
    target = LakeParts(catalog, LOCAL, (), warehouse, tmp_path, LocalTree(tmp_path / "raw"), kind="rest")
    source = parts_of(small.backend)
    for _ in range(2):  # the second as after a kill right before the end
        report = copy_lake(LakeSource(source, take_content(source)), target, "sql")
        assert report.notes == ()
    assert list(catalog.tables()) == [ITEMS, ORDERS]
    assert list(catalog.dropped()) == [TableName("shop", "gone")]
    assert [ref.name for ref in catalog.branch_refs()] == ["exp", "run_r1"]
    assert [entry.commit for entry in catalog.log()] == [entry.commit for entry in small.catalog.log()]
    assert catalog.publish("run_r1"), "main of the server counts as the base of the branch"
    again = catalog.dump_state()
    assert [entry.table for entry in again.main] == [ITEMS, ORDERS]


@pytest.mark.usefixtures("plugin")
def test_a_catalog_of_an_installed_package_takes_a_whole_lake(small: SmallLake, tmp_path: Path) -> None:
    context = CatalogContext(f"file://{tmp_path}/warehouse", tmp_path, author="ada")
    catalog: Catalog = require("lakehouse.catalogs", "json")(context)
    warehouse = LocalTree(tmp_path / "warehouse")
    target = LakeParts(catalog, LOCAL, (), warehouse, tmp_path, LocalTree(tmp_path / "raw"), kind="json")
    source = parts_of(small.backend)
    for _ in range(2):  # the second as after a kill right before the end
        report = copy_lake(LakeSource(source, take_content(source)), target, "sql")
        assert report.notes == ()
    assert list(catalog.tables()) == [ITEMS, ORDERS]
    assert list(catalog.dropped()) == [TableName("shop", "gone")]
    assert [ref.name for ref in catalog.branch_refs()] == ["exp", "run_r1"]
    assert catalog.publish("run_r1")
    with pytest.raises(TableExistsError, match="not empty"):
        check_empty(target, source.catalog.dump_state())


def test_a_lake_in_an_object_store_is_not_cloned(tmp_path: Path, postgres: Postgres, s3_server: S3Server) -> None:
    settings = {"profile": "sql", "catalog__uri": postgres.url, "warehouse": f"s3://{s3_server.make_bucket()}/w"}
    with opened(tmp_path / "lake", **settings) as remote, pytest.raises(NotSupportedError, match="cannot be cloned"):
        remote.lake.clone(tmp_path / "clone")


# ---- an older release -------------------------------------------------------------------------------------------


def test_an_older_catalog_is_copied_before_it_is_upgraded(tmp_path: Path) -> None:
    file = tmp_path / "catalog.db"
    with sqlite3.connect(file) as db:
        db.executescript(VERSION_1)
    db.close()
    assert SqlCatalog(open_database(file), f"file://{tmp_path}").branches() == ["run_1"]
    with sqlite3.connect(tmp_path / "catalog.db.v1.bak") as kept:
        assert kept.execute("PRAGMA user_version").fetchone() == (1,)
        assert kept.execute("SELECT count(*) FROM iceberg_tables").fetchone() == (3,)
        assert [row[1] for row in kept.execute("PRAGMA table_info(lake_dropped)")][-1] == "dropped_at"
    kept.close()
    assert (tmp_path / "catalog.db.v1.bak").stat().st_mode == file.stat().st_mode


def test_an_older_catalog_in_postgresql_is_copied_before_it_is_upgraded(postgres: Postgres) -> None:
    script = VERSION_1.replace("INTEGER PRIMARY KEY AUTOINCREMENT", "BIGINT PRIMARY KEY").split("PRAGMA")[0]
    for statement in filter(str.strip, script.split(";")):
        postgres.run(statement)
    postgres.run(
        "CREATE TABLE lake_schema (version INTEGER NOT NULL PRIMARY KEY)", "INSERT INTO lake_schema VALUES (1)"
    )
    assert SqlCatalog(open_database(postgres.url), "file:///unused").branches() == ["run_1"]
    assert postgres.rows("SELECT count(*) FROM backup_v1_iceberg_tables") == [(3,)]
    assert len(postgres.rows("SELECT * FROM backup_v1_lake_dropped")[0]) == 4
