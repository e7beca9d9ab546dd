"""The audit of whole lakes: what it lets pass, and the planted bugs that it finds."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyiceberg.expressions import And, GreaterThanOrEqual, LessThanOrEqual

from lakehouse.core.files import local_path
from lakehouse.core.names import TableName
from lakehouse.engines.duckdb import DuckDB
from lakehouse.lake import Lake
from lakehouse.pipelines import LightContext
from tests.support.audit import ALL, AuditError, audit, audited, take_state
from tests.support.damaged_tables import catalog_of, opened
from tests.support.light_runs import pyiceberg, run, with_settings
from tests.support.transaction_pipelines import writing

pytestmark = pytest.mark.slow

DAYS, OTHER = "shop.days", "shop.other"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of two tables with a row for each of five days, and a branch of both."""
    folder = tmp_path_factory.mktemp("audited")
    with with_settings(folder / "lake") as lake:
        for table in (DAYS, OTHER):
            lake.ingest_rows([{"day": day, "n": day} for day in range(1, 6)], table, key=["day"])
        lake.refs.branches.create("exp")
    shutil.copytree(folder / "lake", folder / "kept")
    return folder


@pytest.fixture
def lake(folder: Path) -> Iterator[Lake]:
    """The lake as it was filled: its metadata has absolute paths, so it is always in the same place."""
    shutil.rmtree(folder / "lake")
    shutil.copytree(folder / "kept", folder / "lake")
    with with_settings(folder / "lake") as lake:
        yield lake


def write(lake: Lake, *days: int) -> None:
    lake.ingest_rows([{"day": day, "n": 100 + day} for day in days], DAYS, key=["day"])


def a_data_file(lake: Lake, table: str = DAYS) -> Path:
    return local_path(next(iter(opened(lake, table).scan().plan_files())).file.file_path)


def test_a_write_that_changes_only_its_keys_passes(lake: Lake) -> None:
    with audit(lake, {DAYS: {"day": {2, 6}}}):
        write(lake, 2, 6)


def test_a_write_on_a_branch_leaves_main_alone(lake: Lake) -> None:
    with audit(lake, {DAYS: {"day": {2}}}, on="exp"):
        lake.branch("exp").ingest_rows([{"day": 2, "n": 7}], DAYS, key=["day"])


def test_a_failing_block_raises_its_own_error(lake: Lake) -> None:
    with pytest.raises(ZeroDivisionError), audit(lake):
        1 // 0  # noqa: B018


def test_every_file_of_a_lake_is_named(lake: Lake) -> None:
    run(lake, "first", "shop.one")
    lake.drop("shop.one")
    assert not take_state(audited(lake)).unnamed


def test_what_a_dropped_branch_leaves_is_what_maintenance_removes(lake: Lake) -> None:
    lake.branch("exp").ingest_rows([{"day": 9, "n": 9}], DAYS)
    with pytest.raises(AuditError, match="nothing names"), audit(lake, refs={"exp"}):
        lake.refs.branches.drop("exp")
    lake.refs.branches.create("other")
    lake.branch("other").ingest_rows([{"day": 9, "n": 9}], DAYS)
    with audit(lake, refs={"other"}, leaves=True):
        lake.refs.branches.drop("other")


def test_what_a_failed_run_of_a_new_table_leaves_is_what_maintenance_removes(lake: Lake) -> None:
    pipeline = writing("fails", "fails", ["shop.one", "shop.two"])

    def fail(context: LightContext) -> int:
        raise ZeroDivisionError("planted")

    failing = replace(pipeline, tables=(pipeline.tables[0], replace(pipeline.tables[1], light=fail)))
    with audit(lake, refs={"run_*"}), pytest.raises(ZeroDivisionError):
        lake.run(failing, id="r", light=True)
    with audit(lake, {"shop.one": ALL, "shop.two": ALL}, refs={"run_*"}, leaves=True):
        lake.run(pipeline, id="r", light=True)


# ---- planted bugs ---------------------------------------------------------------------------------------------------


def file_written_twice(lake: Lake) -> None:
    write(lake, 2)
    file = a_data_file(lake)
    shutil.copy(file, file.with_name(f"again-{file.name}"))


def statement_executed_twice(lake: Lake) -> None:
    """As it was: a COPY was executed to describe its result, and once more to fetch it."""
    real = DuckDB.execute

    def twice(duckdb: DuckDB, *arguments: Any, **options: Any) -> Any:
        real(duckdb, *arguments, **options)
        return real(duckdb, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DuckDB, "execute", twice)
        write(lake, 2)


def range_instead_of_a_set(lake: Lake) -> None:
    theirs = pyiceberg(lake)
    new = pyarrow.table({"day": [2, 5], "n": [102, 105]})
    theirs.load_table(DAYS).overwrite(new, And(GreaterThanOrEqual("day", 2), LessThanOrEqual("day", 5)))
    theirs.close()


def wrong_branch_dropped(lake: Lake) -> None:
    write(lake, 2)
    lake.refs.branches.drop("exp")


def wrong_branch_changed(lake: Lake) -> None:
    write(lake, 2)
    lake.branch("exp").ingest_rows([{"day": 2, "n": 0}], DAYS, key=["day"])


def row_of_a_neighbour_changed(lake: Lake) -> None:
    lake.ingest_rows([{"day": 2, "n": 102}, {"day": 3, "n": 0}], DAYS, key=["day"])


def row_doubled(lake: Lake) -> None:
    write(lake, 2)
    lake.ingest_rows([{"day": 4, "n": 4}], DAYS, mode="append")


def other_table_changed(lake: Lake) -> None:
    write(lake, 2)
    lake.ingest_rows([{"day": 2, "n": 0}], OTHER, key=["day"])


def file_of_a_neighbour_written_again(lake: Lake) -> None:
    write(lake, 2)
    file = a_data_file(lake, OTHER)
    shutil.copy(file, copy := file.with_name("copy"))
    copy.replace(file)


def file_of_an_old_snapshot_removed(lake: Lake) -> None:
    old = a_data_file(lake)
    write(lake, 2)
    old.unlink()


def log_cut(lake: Lake) -> None:
    write(lake, 2)
    with sqlite3.connect(lake.folder / "catalog.db") as database:
        database.execute("DELETE FROM lake_log WHERE id = (SELECT min(id) FROM lake_log)")


def other_table_dropped(lake: Lake) -> None:
    write(lake, 2)
    catalog_of(lake).drop(TableName.parse(OTHER), "2026-01-01T00:00:00+00:00")


@pytest.mark.parametrize(
    ("bug", "message"),
    [
        (file_written_twice, "1 files that nothing names"),
        (statement_executed_twice, "files that nothing names"),
        (range_instead_of_a_set, "rows of shop.days beside"),
        (wrong_branch_dropped, "branch exp is gone"),
        (wrong_branch_changed, "branch exp has other states"),
        (row_of_a_neighbour_changed, "rows of shop.days beside"),
        (row_doubled, "rows of shop.days beside"),
        (other_table_changed, "main has other states of .'shop.other'"),
        (other_table_dropped, "has other states of .'shop.other'"),
        (file_of_a_neighbour_written_again, "1 files were written again"),
        (file_of_an_old_snapshot_removed, "named files do not exist"),
        (log_cut, "the log lost an entry"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_planted_bug_is_found(lake: Lake, bug: Callable[[Lake], None], message: str) -> None:
    with pytest.raises(AuditError, match=message), audit(lake, {DAYS: {"day": {2, 5}}}):
        bug(lake)


def test_a_new_table_may_have_any_rows(lake: Lake) -> None:
    with audit(lake, {"shop.new": ALL}):
        lake.ingest_rows([{"day": 1}], "shop.new")
