"""Maintenance of Hudi tables: log files are merged, small files clustered, old instants cleaned by policy."""

from __future__ import annotations

import os
import subprocess
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import psutil
import pytest
from tests.conftest import LAKE
from tests.support.damaged_tables import maintainer
from tests.support.small_hudi_files import names, request, with_small_files

from lakehouse.config.settings import Settings
from lakehouse.core.errors import StatementRefusedError, WhenError
from lakehouse.core.names import TableName
from lakehouse.core.requests import QueryRequest
from lakehouse.core.tables import Snapshot
from lakehouse.formats.hudi.slices import file_slices
from lakehouse.formats.hudi.timeline import Instant
from lakehouse.lake import Lake
from lakehouse.lake.spark import spark_daemon
from lakehouse.maintenance.hudi import kept_instants, latest_slices, small_files, unneeded_slices
from lakehouse.maintenance.policy import MaintenanceSettings, policy_for
from lakehouse.process.files import locked, statement_lock
from lakehouse.process.pids import wait_until
from lakehouse.query.hudi_calls import maintenance_call

NOW = datetime(2026, 11, 17, tzinfo=UTC)


# ---- what the timeline tells, without Spark -------------------------------------------------------------------------


def instant(id: str, *files: tuple[str, str], replaced: tuple[str, ...] = ()) -> Instant:
    """A commit that wrote these files, each of a group, and replaced these groups."""
    stats = [{"fileId": group, "path": f"p/{name}", "fileSizeInBytes": 10, "numWrites": 1} for group, name in files]
    return Instant(
        id, "commit", {"partitionToWriteStats": {"p": stats}, "partitionToReplaceFileIds": {"p": list(replaced)}}
    )


TIMELINE = [
    instant("1", ("a", "a1.parquet")),
    instant("2", ("a", ".a2.log.1_0"), ("b", "b2.parquet")),
    instant("3", ("a", "a3.parquet")),
    instant("4", ("c", "c4.parquet"), replaced=("a", "b")),
    instant("5", ("c", "c5.parquet")),
    instant("6", ("c", "c6.parquet")),
]
REPLACED = {"p/a1.parquet", "p/.a2.log.1_0", "p/a3.parquet", "p/b2.parquet"}


def test_the_slices_of_a_timeline() -> None:
    slices = {file_slice.files: file_slice for file_slice in file_slices(TIMELINE)}
    merged = slices[("p/a1.parquet", "p/.a2.log.1_0")]
    assert (merged.log_files, merged.bytes, merged.replaced_at, merged.is_latest) == (1, 20, "4", False)
    assert [file_slice.files for file_slice in latest_slices(list(slices.values()))] == [("p/c6.parquet",)]
    early = latest_slices(file_slices(TIMELINE[:3]))
    assert [file_slice.files for file_slice in early] == [("p/a3.parquet",), ("p/b2.parquet",)]
    assert small_files(file_slices(TIMELINE[:3]), 1000).keys() == {"p"} and not small_files(early, 10)


@pytest.mark.parametrize(
    ("earliest", "gone"),
    [("4", set()), ("5", REPLACED), ("6", REPLACED | {"p/c4.parquet"})],
)
def test_a_file_is_unneeded_when_no_kept_instant_reads_it(earliest: str, gone: set[str]) -> None:
    assert {
        path for file_slice in unneeded_slices(file_slices(TIMELINE), earliest) for path in file_slice.files
    } == gone


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"keep_days": 7.0, "keep_snapshots": 1}, 3),
        ({"keep_days": 7.0, "keep_snapshots": 4}, 4),
        ({"keep_days": 100.0, "keep_snapshots": 1}, 5),
        ({"keep_days": 100.0, "keep_snapshots": 1, "max_snapshots": 2}, 2),
        ({"keep_days": 0.0, "keep_snapshots": 1}, 1),
    ],
)
def test_the_policy_decides_how_many_instants_stay(settings: dict[str, Any], kept: int) -> None:
    history = [Snapshot(str(age), NOW - timedelta(days=age), "append") for age in (50, 40, 20, 5, 1)]
    assert kept_instants(history, policy_for(MaintenanceSettings(**settings)), NOW) == kept


@pytest.mark.parametrize(
    "sql",
    [
        "CALL run_clean(table => 'a.other')",
        "CALL run_clean(table => 'a.t', table => 'a.other')",
        "CALL run_clean(table => 'a.t', path => '/elsewhere')",
        "CALL run_rollback(table => 'a.t', instant_time => '1')",
        "DROP TABLE a.t",
    ],
)
def test_maintenance_calls_nothing_but_the_procedures_of_its_table(sql: str) -> None:
    assert maintenance_call(QueryRequest("CALL run_clean(table => 'a.t', retain_commits => 1)", maintains="a.t"))
    with pytest.raises(StatementRefusedError):
        maintenance_call(QueryRequest(sql, maintains="a.t"))


# ---- on Spark -------------------------------------------------------------------------------------------------------


def waits_for_others(lake: Lake, table: str, sql: str) -> None:
    """Run a statement that another writer of the table, or its maintenance, keeps waiting for a while."""
    answers: list[Any] = []
    worker = threading.Thread(target=lambda: answers.append(lake.sql(sql)))
    with locked(statement_lock(lake.folder / "run" / "ingest", TableName.parse(table))):
        worker.start()
        worker.join(2)
        assert worker.is_alive() and not answers
    worker.join(120)
    assert len(answers) == 1


@pytest.mark.spark
def test_small_files_are_clustered_and_old_instants_cleaned(shared_lake: Lake, namespace: str) -> None:
    lake, table = shared_lake, f"{namespace}.t"
    with_small_files(lake, table)
    first, second = lake.history(table)
    health = lake.health(table)[0]
    assert (health.files, health.deep) == (2, {"file_slices": 2, "log_files": 0, "instants": 2})

    folder = lake.folder / "warehouse" / namespace / "t"
    stored = {path.name for path in folder.glob("*.parquet")}
    planned = maintainer(lake).run(request(table, dry_run=True)).actions
    assert [(action.action, action.state, action.files_before, action.files_after) for action in planned] == [
        ("cluster", "planned", 2, 1)
    ]
    assert {path.name for path in folder.glob("*.parquet")} == stored

    pending = folder / ".hoodie" / "timeline" / "20991231235959999.commit.requested"
    pending.touch()
    assert [action.state for action in maintainer(lake).run(request(table)).actions] == ["skipped"], (
        "a writer is at work"
    )
    pending.unlink()

    done = maintainer(lake).run(request(table)).actions
    assert [(action.action, action.state, action.files_after) for action in done] == [("cluster", "done", 1)], done
    assert stored < {path.name for path in folder.glob("*.parquet")}, "no file goes with a clustering"
    for engine in ("duckdb", "spark"):
        assert names(lake, table, engine=engine) == [(1, "Ada"), (2, "Bob")]
        assert names(lake, table, engine=engine, as_of=first.id) == [(1, "Ada")], "what was replaced is readable"
    assert lake.history(table)[-1].operation == "replace" and lake.health(table)[0].files == 1

    lake.sql(f"update {table} set name = 'Eve' where id = 1")
    updated = lake.history(table)[-1]
    waits_for_others(lake, table, f"insert into {table} values (3, 'Cid')")
    late = maintainer(lake, 60, keep_snapshots=2)
    assert [(action.action, action.state) for action in late.run(request(table, dry_run=True)).actions] == [
        ("expire", "planned")
    ]
    assert [(action.action, action.state, action.files_after) for action in late.run(request(table)).actions] == [
        ("expire", "done", 0)
    ]
    assert late.run(request(table)).actions == (), "a second maintenance has nothing to do"
    for engine in ("duckdb", "spark"):
        assert names(lake, table, engine=engine) == [(1, "Eve"), (2, "Bob"), (3, "Cid")]
        assert names(lake, table, engine=engine, as_of=updated.id) == [(1, "Eve"), (2, "Bob")], "inside the retention"
        with pytest.raises(WhenError, match="were cleaned"):
            names(lake, table, engine=engine, as_of=second.id)
    assert len(lake.history(table)) == 5, "the timeline is not archived"
    lake.drop(table)
    assert lake.undrop(table) and names(lake, table)[-1] == (3, "Cid"), "what was cleaned can be dropped and restored"


@pytest.mark.spark
def test_log_files_are_merged_so_that_every_engine_reads_the_table(shared_lake: Lake, namespace: str) -> None:
    lake, table = shared_lake, f"{namespace}.t"
    lake.sql(f"create table {table} (id int, name string) using hudi tblproperties (primaryKey = 'id', type = 'mor')")
    lake.sql(f"insert into {table} values (1, 'Ada'), (2, 'Bob')")
    lake.sql(f"update {table} set name = 'Eve' where id = 1")
    health = lake.health(table)[0]
    assert [(reason.what, reason.action) for reason in health.reasons] == [("log_files", "compact")]
    report = maintainer(lake).run(request(table))
    assert [(action.action, action.state) for action in report.actions] == [("compact", "done")], report
    assert names(lake, table, engine="duckdb") == [(1, "Eve"), (2, "Bob")]
    assert lake.health(table)[0].score == 100


@pytest.mark.spark
@pytest.mark.faults
def test_a_clustering_that_is_killed_is_finished_by_the_next_maintenance(
    shared_lake: Lake, shared_settings: Settings, namespace: str
) -> None:
    lake, table = shared_lake, f"{namespace}.t"
    with_small_files(lake, table)
    daemon = spark_daemon(shared_settings).health()
    assert daemon is not None
    maintain = subprocess.Popen([LAKE, "maintain", table], env={**os.environ, "LAKE_HOME": str(lake.folder)})
    timeline = lake.folder / "warehouse" / namespace / "t" / ".hoodie" / "timeline"
    assert wait_until(lambda: list(timeline.glob("*.clustering.*")), 120)
    for process in psutil.Process(daemon["pid"]).children():
        process.kill()  # Spark's JVM
    maintain.wait(timeout=120)
    assert not list(timeline.glob("*.replacecommit")), "it was killed on its way"
    for engine in ("duckdb", "spark"):
        assert names(lake, table, engine=engine) == [(1, "Ada"), (2, "Bob")]
    done = maintainer(lake).run(request(table)).actions
    assert [(action.action, action.state, action.files_after) for action in done] == [("cluster", "done", 1)], done
    lake.sql(f"update {table} set name = 'Eve' where id = 1")
    for engine in ("duckdb", "spark"):
        assert names(lake, table, engine=engine) == [(1, "Eve"), (2, "Bob")]
