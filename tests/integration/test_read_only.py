"""A lake that its reader may not write: it is read, a write is a clear error, and a table of another tool is warned about."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from tests.conftest import cache_only, command_for

from lakehouse.config.load import load_settings
from lakehouse.config.settings import Settings
from lakehouse.core.errors import HomeError, WhenError
from lakehouse.lake.assemble import assemble
from lakehouse.lake.backend import open_backend

_NOBODY = 65534


@pytest.fixture
def home() -> Iterator[Path]:
    """A lake with one table in a folder that every user can reach; pytest's own is private."""
    parent = Path(tempfile.mkdtemp())
    parent.chmod(0o755)
    home = parent / "lake"
    table = catalog_of(settings_of(home)).create_table("shop.t", pa.schema([("a", pa.int64())]))
    table.append(pa.table({"a": [1, 2]}))
    with assemble(settings_of(home)) as lake:
        assert lake.tables()
    yield home
    for path in (home, *home.rglob("*")):
        path.chmod(0o755)
    shutil.rmtree(parent)


def settings_of(home: Path) -> Settings:
    return load_settings({"home": home}, environ=cache_only())


def catalog_of(settings: Settings) -> Catalog:
    catalog = load_catalog("lake", **open_backend(settings).catalog.pyiceberg_properties())
    catalog.create_namespace_if_not_exists("shop")
    return catalog


def as_another_user(check: Callable[[], None]) -> int:
    """Run a check in a child process that is not root, to whom no mode would apply; returns its exit code."""
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(_NOBODY)
                os.setuid(_NOBODY)
            check()
            os._exit(0)
        except BaseException:  # noqa: BLE001 - reported by the exit code
            import traceback

            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_read_only_lake_is_read_and_refuses_a_write(home: Path) -> None:
    for path in (home, *home.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}

    def check() -> None:
        assert not os.access(home, os.W_OK)
        with assemble(settings_of(home)) as lake:
            assert lake.sql("select sum(a) from shop.t", engine="duckdb").rows() == [(3,)]
            assert [str(table.name) for table in lake.tables()] == ["shop.t"]
            with pytest.raises(HomeError):
                lake.refs.branches.create("exp")

    assert as_another_user(check) == 0
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before


@pytest.mark.slow
def test_a_table_whose_commits_delete_metadata_files_is_warned_about(home: Path) -> None:
    properties = {"write.metadata.delete-after-commit.enabled": "true"}
    catalog_of(settings_of(home)).create_table("shop.risky", pa.schema([("a", pa.int64())]), properties=properties)
    lake = command_for(home)
    assert "delete-after-commit" in lake("describe", "shop.risky").stderr
    assert "delete-after-commit" not in lake("describe", "shop.t").stderr
    report = lake("doctor", "-o", "json").stdout
    assert "shop.risky has write.metadata.delete-after-commit.enabled=true" in report


def test_an_expired_snapshot_is_an_error_by_its_id_and_by_a_time(home: Path) -> None:
    settings = settings_of(home)
    table = catalog_of(settings).load_table("shop.t")
    table.append(pa.table({"a": [3]}))
    between = datetime.now(UTC).isoformat()
    table.append(pa.table({"a": [4]}))
    first, middle, last = table.snapshots()
    log = [entry.model_dump(by_alias=True) for entry in table.metadata.snapshot_log]
    table.maintenance.expire_snapshots().by_id(middle.snapshot_id).commit()
    # PyIceberg removes the snapshot from the log; other writers do not.
    file = Path(table.refresh().metadata_location.removeprefix("file://"))
    file.write_text(json.dumps({**json.loads(file.read_text()), "snapshot-log": log}))
    with assemble(settings) as lake:
        rows = [
            lake.sql("select sum(a) from shop.t", as_of=str(snapshot.snapshot_id)).rows() for snapshot in (first, last)
        ]
        assert rows == [[(3,)], [(10,)]]
        assert lake.sql("select sum(a) from shop.t", as_of="now").rows() == [(10,)]
        for when in (between, str(middle.snapshot_id)):
            with pytest.raises(WhenError, match="was expired"):
                lake.sql("select * from shop.t", as_of=when)
