"""Every kind of write of a lake, each audited: the same cases run on every kind of catalog and storage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from tests.support.audit import ALL, Audited, AuditError, audit, audited, listed, lists_all_files, take_state
from tests.support.transaction_pipelines import writing

from lakehouse.config.load import load_settings
from lakehouse.core.requests import MaintainRequest, QueryRequest
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble
from lakehouse.lake.copies import restore_lake
from lakehouse.pipelines import LightContext, Pipeline, Table
from lakehouse.pipelines.market.sample import write_day
from lakehouse.quality import not_null

#: Hidden rows, one of which each write of a case has to leave alone.
FIVE = [{"id": id, "name": f"name {id}"} for id in range(1, 6)]


@dataclass(frozen=True)
class WriteBench:
    """A lake to write to, with a namespace and a folder that no other test uses."""

    lake: Lake
    namespace: str
    folder: Path
    format: str = "iceberg"

    @property
    def table(self) -> str:
        return f"{self.namespace}.t"

    @property
    def target(self) -> Audited:
        return audited(self.lake)

    def five(self) -> str:
        """A table with the ids 1 to 5."""
        if self.format == "hudi":
            key = "TBLPROPERTIES (primaryKey = 'id', preCombineField = 'id')"
            self.lake.sql(f"CREATE TABLE {self.table} (id BIGINT, name STRING) USING hudi {key}")
            rows = ", ".join(f"({row['id']}, '{row['name']}')" for row in FIVE)
            self.lake.sql(f"INSERT INTO {self.table} VALUES {rows}")
        else:
            self.lake.ingest_rows(FIVE, self.table, key=["id"])
        return self.table

    def ids(self, **options: Any) -> list[int]:
        return [row[0] for row in self.lake.sql(f"SELECT id FROM {self.table} ORDER BY id", **options).rows()]

    def csv(self, name: str, text: str) -> Path:
        self.folder.mkdir(exist_ok=True)
        (file := self.folder / name).write_text(text)
        return file


@dataclass(frozen=True)
class WriteCase:
    """A kind of write."""

    name: str
    operations: tuple[str, ...]
    """The methods that it calls, as in `write_operations`."""
    run: Callable[[WriteBench], None]
    needs_spark: bool
    formats: tuple[str, ...]
    several_tables: bool
    """It publishes more than one table at once."""


CASES: dict[str, WriteCase] = {}
Run = Callable[[WriteBench], None]


def writes(
    *operations: str, spark: bool = False, formats: tuple[str, ...] = ("iceberg",), several_tables: bool = False
) -> Callable[[Run], Run]:
    """Register a case by the operations that it audits."""

    def register(run: Run) -> Run:
        CASES[run.__name__] = WriteCase(run.__name__, operations, run, spark, formats, several_tables)
        return run

    return register


# ---- rows and files -------------------------------------------------------------------------------------------------


@writes("ingest_rows", "ingest_files")
def rows_are_created_appended_upserted_and_replaced(bench: WriteBench) -> None:
    lake, table = bench.lake, bench.table
    with audit(lake, {table: ALL}):
        bench.five()
    with audit(lake, {table: {"id": {6, 7}}}):
        lake.ingest_rows([{"id": 6, "name": "six"}, {"id": 7, "name": "seven"}], table, mode="append")
    with audit(lake, {table: {"id": {2, 8}}}):
        lake.ingest_rows(
            [{"id": 2, "name": "two"}, {"id": 8, "name": "eight"}], table, key=["id"], idempotency_key="two"
        )
    with audit(lake):  # what comes with the same Idempotency-Key is skipped
        lake.ingest_rows([{"id": 9, "name": "nine"}], table, key=["id"], idempotency_key="two")
    with audit(lake, {table: ALL}):
        lake.ingest_rows([{"id": 9, "name": "nine"}], table, mode="replace")
    assert bench.ids() == [9]


@writes("ingest", spark=True)
def files_with_rejected_rows_are_ingested(bench: WriteBench) -> None:
    lake, table = bench.lake, bench.five()
    with audit(lake, {table: {"id": {6}}}):
        lake.ingest(bench.csv("six.csv", "id,name\n6,six\n"), into=table, mode="append")
    with audit(lake, {table: {"id": {2, 7}}, f"{table}__rejected": ALL}):
        bad = bench.csv("bad.csv", "id,name\n2,two\nx,nobody\n7,seven\n")
        lake.ingest(bad, into=table, key=["id"], contract="quarantine")
    with audit(lake, {table: {"id": {3}}, f"{table}__rejected": ALL}):
        more = bench.csv("more.csv", "id,name\n3,three\ny,nobody\n")
        lake.ingest(more, into=table, key=["id"], contract="quarantine")
    with audit(lake, {table: {"id": {4}}}):
        lake.ingest(bench.csv("wider.csv", "id,name,more\n4,four,1\n"), into=table, key=["id"])
    with audit(lake):
        lake.ingest(bench.csv("dry.csv", "id,name\n1,x\n"), into=table, key=["id"], dry_run=True)


@writes("ingest", spark=True, formats=("iceberg", "hudi"))
def files_are_ingested_with_spark(bench: WriteBench) -> None:
    lake, table = bench.lake, bench.table
    with audit(lake, {table: ALL}):
        first = bench.csv("first.csv", "id,day,name\n1,2026-01-01,a\n2,2026-01-02,b\n3,2026-01-03,c\n")
        lake.ingest(first, into=table, key=["id"], format=bench.format, partition_by="day")
    with audit(lake, {table: {"id": {2, 4}}}):
        second = bench.csv("second.csv", "id,day,name,more\n2,2026-01-02,bb,1\n4,2026-01-04,d,2\n")
        lake.ingest(second, into=table, key=["id"])
    with audit(lake, {table: ALL}):
        lake.ingest(bench.csv("third.csv", "id,day,name,more\n9,2026-01-09,z,3\n"), into=table, mode="replace")


# ---- SQL ------------------------------------------------------------------------------------------------------------


@writes("sql", "query", "run_checked", spark=True, formats=("iceberg", "hudi"))
def statements_change_their_rows(bench: WriteBench) -> None:
    lake, table = bench.lake, bench.table
    with audit(lake, {table: ALL}):
        bench.five()
    changes: Mapping[str, set[int]] = {
        f"INSERT INTO {table} VALUES (6, 'six'), (7, 'seven')": {6, 7},
        f"UPDATE {table} SET name = 'two' WHERE id = 2": {2},
        f"DELETE FROM {table} WHERE id IN (3, 7)": {3, 7},
        f"""MERGE INTO {table} t USING (SELECT 4L AS id, 'four' AS name UNION ALL SELECT 8L, 'eight') s ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""": {4, 8},
        f"ALTER TABLE {table} ADD COLUMNS (note STRING)": set(),
    }
    for statement, ids in changes.items():
        with audit(lake, {table: {"id": ids}}):
            lake.sql(statement, engine="spark").rows()
    with audit(lake, {table: {"id": {5}}}):
        checked = lake.check(QueryRequest(f"UPDATE {table} SET name = 'five' WHERE id = 5"), "spark")
        lake.run_checked(checked).rows()
    assert bench.ids() == [1, 2, 4, 5, 6, 8]


@writes("sql", spark=True)
def tables_are_created_from_queries_and_replaced(bench: WriteBench) -> None:
    lake, table, copy = bench.lake, bench.five(), f"{bench.namespace}.copy"
    with audit(lake, {copy: ALL}):
        lake.sql(f"CREATE TABLE {copy} USING iceberg PARTITIONED BY (id) AS SELECT * FROM {table}")
    with audit(lake, {copy: {"id": {1, 2}}}):
        lake.sql(f"INSERT OVERWRITE {copy} PARTITION (id = 1) SELECT 'one'")
        lake.sql(f"DELETE FROM {copy} WHERE id = 2")
    with audit(lake, {copy: ALL}):
        lake.sql(f"CREATE OR REPLACE TABLE {copy} USING iceberg AS SELECT 1 AS n")
    with audit(lake, {copy: ALL}):
        lake.sql(f"DROP TABLE {copy}")


@writes("rollback", spark=True, formats=("iceberg", "hudi"))
def a_rollback_restores_the_rows(bench: WriteBench) -> None:
    lake, table = bench.lake, bench.five()
    first = lake.history(table)[-1].id
    lake.sql(f"DELETE FROM {table} WHERE id = 2", engine="spark").rows()
    with audit(lake, {table: {"id": {2}}}):
        lake.rollback(table, first)


@writes("drop", "undrop", spark=True, formats=("hudi",))
def a_folder_is_dropped_and_restored(bench: WriteBench) -> None:
    lake, table = bench.lake, bench.five()
    with audit(lake, {table: {}}, removes=True):
        lake.drop(table)
    with audit(lake, {table: {}}):
        lake.undrop(table)
    assert bench.ids() == [1, 2, 3, 4, 5]


# ---- tables and refs ------------------------------------------------------------------------------------------------


@writes("drop", "undrop")
def a_table_is_dropped_and_restored(bench: WriteBench) -> None:
    lake, table = bench.lake, bench.five()
    with audit(lake, {table: ALL}):
        lake.drop(table)
    with audit(lake, {table: ALL}):
        lake.undrop(table)
    assert bench.ids() == [1, 2, 3, 4, 5]


@writes("refs.branches.create", "refs.branches.merge", "branch", several_tables=True)
def a_branch_is_written_and_merged(bench: WriteBench) -> None:
    lake, table, branch = bench.lake, bench.five(), f"b_{bench.namespace}"[:40]
    with audit(lake, refs={branch}):
        lake.refs.branches.create(branch)
    with audit(lake, {table: {"id": {2}}}, on=branch):
        lake.branch(branch).ingest_rows([{"id": 2, "name": "two"}], table, key=["id"])
    with audit(lake, {f"{table}2": ALL}, on=branch):
        lake.branch(branch).ingest_rows(FIVE, f"{table}2", key=["id"])
    with audit(lake, {table: {"id": {2}}, f"{table}2": ALL}, refs={branch}):
        lake.refs.branches.merge(branch)


@writes("refs.branches.drop")
def what_a_branch_wrote_goes_with_it(bench: WriteBench) -> None:
    lake, table, branch = bench.lake, bench.five(), f"b_{bench.namespace}"[:40]
    lake.refs.branches.create(branch)
    lake.branch(branch).ingest_rows([{"id": 2, "name": "two"}], table, key=["id"])
    lake.branch(branch).ingest_rows(FIVE, new := f"{bench.namespace}.on_branch", key=["id"])
    with audit(lake, refs={branch}, leaves=True):
        lake.refs.branches.drop(branch)
    if lists_all_files(bench.target.catalog):
        bench.target.sweep("9999")  # after the retention of the log
        assert not [uri for uri in listed(bench.target) if f"/{new.replace('.', '/')}" in uri]


@writes("refs.branches.create_tag", "refs.branches.drop_tag")
def a_tag_holds_a_state(bench: WriteBench) -> None:
    lake, table, tag = bench.lake, bench.five(), f"v_{bench.namespace}"[:40]
    with audit(lake, refs={tag}):
        lake.refs.branches.create_tag(tag)
    with audit(lake, {table: {"id": {1}}}):
        lake.ingest_rows([{"id": 1, "name": "one"}], table, key=["id"])
    with audit(lake, refs={tag}):
        lake.refs.branches.drop_tag(tag)


@writes("refs.branches.merge", "refs.log.cherry_pick")
def rows_of_other_keys_are_combined(bench: WriteBench) -> None:
    lake, table, branch = bench.lake, bench.five(), f"d_{bench.namespace}"[:40]
    lake.refs.branches.create(branch)
    lake.branch(branch).ingest_rows([{"id": 2, "name": "two"}], table, key=["id"])
    picked = lake.refs.log.lines(limit=1, branch=branch)[0].commit
    lake.ingest_rows([{"id": 3, "name": "three"}], table, key=["id"])
    with audit(lake, {table: {"id": {2}}}):
        lake.refs.log.cherry_pick(picked)
    lake.branch(branch).ingest_rows([{"id": 4, "name": "four"}], table, key=["id"])
    with audit(lake, {table: {"id": {4}}}, refs={branch}, leaves=True):
        lake.refs.branches.merge(branch)


@writes("refs.log.revert")
def a_revert_undoes_one_entry(bench: WriteBench) -> None:
    lake, table = bench.lake, bench.five()
    lake.ingest_rows([{"id": 2, "name": "two"}], table, key=["id"])
    newest = lake.refs.log.lines(limit=1)[0].commit
    with audit(lake, {table: {"id": {2}}}):
        lake.refs.log.revert(newest)


# ---- runs -----------------------------------------------------------------------------------------------------------


@writes("run", "run_pipeline")
def a_light_run_publishes_its_tables(bench: WriteBench) -> None:
    lake, one = bench.lake, f"{bench.namespace}.one"
    for run in ("first", "second"):
        name = f"{bench.namespace}_{run}"[-40:]
        with audit(lake, {one: {"run": {run}}}, refs={"run_*"}):
            assert lake.run(writing("audited", run, [one]), id=name, light=True).state == "published"
    kept = f"{bench.namespace}_kept"[-40:]
    with audit(lake, refs={"run_*"}):
        assert lake.run(writing("audited", "kept", [one]), id=kept, light=True, publish=False).state == "kept"
    with audit(lake, refs={"run_*"}, leaves=True):
        lake.refs.branches.drop(f"run_{kept}")


@writes("run", several_tables=True)
def a_failed_run_leaves_only_its_branch(bench: WriteBench) -> None:
    lake, tables = bench.lake, [f"{bench.namespace}.one", f"{bench.namespace}.two"]
    pipeline = writing("audited", "failing", tables)

    def fail(context: Any) -> int:
        raise ZeroDivisionError("planted")

    failing = replace(pipeline, tables=(pipeline.tables[0], replace(pipeline.tables[1], light=fail)))
    lake.run(writing("audited", "before", tables), light=True)
    run = f"{bench.namespace}_failing"[-40:]
    with audit(lake, refs={"run_*"}), pytest.raises(ZeroDivisionError):
        lake.run(failing, id=run, light=True)
    with audit(lake, {table: {"run": {"failing"}} for table in tables}, refs={"run_*"}, leaves=True):
        assert lake.run(pipeline, id=run, light=True).state == "published"


@writes("run", several_tables=True)
def rows_that_a_light_run_rejects_are_kept(bench: WriteBench) -> None:
    lake, table = bench.lake, bench.five()

    def add(context: LightContext) -> int:
        target = context.catalog.load_table(table)
        rows = context.validate(pyarrow.table({"id": [6, 7], "name": ["six", None]}))
        target.append(rows.cast(target.schema().as_arrow()))
        return int(rows.num_rows)

    pipeline = Pipeline("audited", (Table(table, _needs_spark, rules=(not_null("name"),), light=add),))
    for _ in range(2):
        with audit(lake, {table: {"id": {6}}, f"{table}__rejected": ALL}, refs={"run_*"}):
            assert lake.run(pipeline, light=True).state == "published"


def _needs_spark() -> Any:
    raise AssertionError("this table is built without Spark")


@writes("run", spark=True, several_tables=True)
def a_run_replaces_its_partitions(bench: WriteBench) -> None:
    lake = bench.lake
    pipeline = lake.pipelines()["market"]
    runner = lake._components.runner()
    folder = bench.folder
    for day in (12, 14, 16):
        write_day(folder, date(2026, 1, day), tickers=3)
    tables = [table.name for table in pipeline.tables]
    tables += [f"{table}__rejected" for table in tables]
    settings = {**runner.settings, "market": {"path": str(folder)}}
    configured = replace(lake._components, runner=lambda: replace(runner, settings=settings))
    here = type(lake)(configured)
    with audit(lake, dict.fromkeys(tables, ALL), refs={"run_*"}):
        here.run("market", "2026-01-12", "2026-01-14", "2026-01-16")
    write_day(folder, date(2026, 1, 14), tickers=4)
    day = {"day": {date(2026, 1, 14)}}
    changed = {"bronze.market_bars": day}
    with audit(lake, {**dict.fromkeys(tables, ALL), **changed}, refs={"run_*"}):
        here.run("market", "2026-01-14")


@writes("transact", spark=True)
def any_work_with_spark_is_a_transaction(bench: WriteBench) -> None:
    lake, table = bench.lake, bench.five()

    def work(session: Any, branch: str) -> None:
        session.sql(f"DELETE FROM {branch}.{table} WHERE id = 2")

    with audit(lake, {table: {"id": {2}}}, refs={"run_*"}):
        lake.transact("audited", work)


# ---- maintenance and copies -----------------------------------------------------------------------------------------


@writes("maintain", "maintain_tables")
def maintenance_keeps_every_row(bench: WriteBench) -> None:
    lake, table = bench.lake, bench.five()
    for id in range(6, 12):
        lake.ingest_rows([{"id": id, "name": "x"}], table, mode="append")
    nothing = {table: {"id": set[int]()}}
    with audit(lake, nothing):
        assert [action.state for action in lake.maintain(table, only=["compact"]).actions] == ["done"]
    with audit(lake, nothing):
        lake.maintain(table, only=["rewrite_manifests"])
    maintainer = lake._components.maintainer()
    short = replace(maintainer, settings=replace(maintainer.settings, keep_days=0, keep_snapshots=1))
    name = next(name for name in maintainer.catalog.tables() if str(name) == table)
    with audit(lake, nothing, removes=True):
        short.run(MaintainRequest((name,), only=("expire",)))
    with audit(lake, removes=True):
        lake.maintain(table, only=["remove_files"])
    with audit(lake):
        lake.maintain(table, dry_run=True)


@writes("maintain", spark=True, formats=("hudi",))
def maintenance_of_folders_keeps_every_row(bench: WriteBench) -> None:
    lake, table = bench.lake, bench.five()
    for id in range(6, 9):
        lake.sql(f"INSERT INTO {table} VALUES ({id}, 'x')").rows()
    with audit(lake, {table: {"id": set[int]()}}, removes=True):
        lake.maintain(table)
    assert bench.ids() == [*range(1, 9)]


@writes("export", "backup")
def copies_change_nothing(bench: WriteBench) -> None:
    lake, table = bench.lake, bench.five()
    bench.folder.mkdir()
    with audit(lake):
        assert lake.export(table, bench.folder / "t.parquet") == 5
        lake.backup(bench.folder / "backup")
        lake.verify(table)


@writes("backup")
def a_copy_has_no_file_too_many(bench: WriteBench) -> None:
    lake, table = bench.lake, bench.five()
    lake.ingest_rows([{"id": 2, "name": "two"}], table, key=["id"])
    bench.folder.mkdir()
    with audit(lake):
        lake.backup(bench.folder / "backup")
    settings = load_settings({"home": bench.folder / "restored"}, folder=bench.folder, environ={})
    restore_lake(settings, bench.folder / "backup")
    with assemble(settings) as restored:
        assert not take_state(audited(restored)).unnamed
        with audit(restored, {table: {"id": {3}}}):
            restored.ingest_rows([{"id": 3, "name": "three"}], table, key=["id"])


__all__ = ["AuditError", "CASES", "WriteBench", "WriteCase"]
