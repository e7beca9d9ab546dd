"""One suite for `open_lake()` and `lakehouse.connect(url)`: the same calls, the same results, the same errors."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow
import pytest
from tests.conftest import cache_only
from tests.contract.lakes import RunningService, lake_serve

import lakehouse
from lakehouse.client import RemoteLake
from lakehouse.config.load import load_settings
from lakehouse.config.settings import Settings
from lakehouse.core.errors import (
    BadNameError,
    BranchConflictError,
    ContractError,
    LakeError,
    NoSuchBranchError,
    NoSuchCommitError,
    NoSuchPipelineError,
    NoSuchRunError,
    NoSuchTableError,
    NotDroppedError,
    PipelineError,
    QueryRejectedError,
    StatementRefusedError,
    UnknownChoiceError,
    WhenError,
)
from lakehouse.core.names import TableName
from lakehouse.core.requests import ReadOptions
from lakehouse.core.tables import Column
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble

pytestmark = pytest.mark.spark

AnyLake = Lake | RemoteLake


@pytest.fixture(scope="module")
def service(
    shared_lake: Lake, shared_settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    with lake_serve(shared_settings.home, tmp_path_factory.mktemp("serve")) as running:
        yield running


@pytest.fixture(scope="module", params=["open_lake", "connect"])
def lake(request: pytest.FixtureRequest, service: RunningService) -> Iterator[AnyLake]:
    """The same lake, here and behind the service."""
    if request.param == "connect":
        with lakehouse.connect(service.url, key=service.key) as remote:
            yield remote
        return
    settings = load_settings({"home": service.home}, folder=service.folder, environ=cache_only())
    with assemble(settings) as local:
        yield local


def create_leads(lake: AnyLake, namespace: str) -> str:
    """Create a table with three rows in two snapshots: Bob became Bo, and Cy came."""
    table = f"{namespace}.leads"
    lake.ingest_rows([{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"}], table, key=["id"])
    lake.ingest_rows([{"id": 2, "name": "Bo"}, {"id": 3, "name": "Cy"}], table, key=["id"])
    return table


@pytest.fixture(scope="module")
def people(lake: AnyLake) -> str:
    """The table for tests that only read it."""
    return create_leads(lake, f"contract_{'remote' if isinstance(lake, RemoteLake) else 'local'}")


@pytest.fixture
def leads(lake: AnyLake, namespace: str) -> str:
    """The table for a test that changes it."""
    return create_leads(lake, namespace)


def names(lake: AnyLake, table: str) -> list[str]:
    return [name for (name,) in lake.sql(f"select name from {table} order by id").rows()]


# ---- SQL ----------------------------------------------------------------------------------------------------------

TYPES = """
select cast(1 as int) as i, cast(2 as bigint) as l, cast(1.5 as double) as f, true as yes, 'é' as s,
  cast('12.30' as decimal(10, 2)) as d, date '2026-01-31' as day, timestamp '2026-01-31 12:00:00' as at,
  array(1, 2) as a, map('k', 1) as m, named_struct('x', 1, 'y', 'z') as st, cast(null as int) as nothing
"""
VALUES = (
    1,
    2,
    1.5,
    True,
    "é",
    Decimal("12.30"),
    date(2026, 1, 31),
    datetime(2026, 1, 31, 12, tzinfo=UTC),
    [1, 2],
    {"k": 1},
    {"x": 1, "y": "z"},
    None,
)


def test_values_have_their_python_types(lake: AnyLake) -> None:
    result = lake.sql(TYPES)
    (row,) = result.rows()
    assert row == VALUES
    assert [type(value) for value in row] == [type(value) for value in VALUES]
    assert result.names == ["i", "l", "f", "yes", "s", "d", "day", "at", "a", "m", "st", "nothing"]
    assert result.columns[5] == Column("d", "decimal(10,2)")
    assert len(result) == 1 and list(result) == [row] and result.dicts()[0]["s"] == "é"


def test_arrow_has_the_schema_of_the_statement(lake: AnyLake) -> None:
    table = lake.sql("select cast(1 as int) as id, cast('1.5' as decimal(4, 1)) as d, 'x' as name").to_arrow()
    expected = pyarrow.schema([("id", pyarrow.int32()), ("d", pyarrow.decimal128(4, 1)), ("name", pyarrow.string())])
    assert table.schema.equals(expected, check_metadata=True)
    assert lake.sql("select 1 as one").to_pandas().one.tolist() == [1]


def test_a_result_is_also_read_in_batches_and_more_than_once(lake: AnyLake) -> None:
    result = lake.sql("select id from range(20000) t(id)")
    assert sum(batch.num_rows for batch in result.batches()) == 20_000
    assert result.to_arrow().num_rows == len(result.rows()) == 20_000
    assert sum(batch.num_rows for batch in result.batches()) == 20_000


def test_a_result_without_rows_has_columns(lake: AnyLake) -> None:
    result = lake.sql("select 1 as one where 1 = 2")
    assert (result.names, result.rows(), result.to_arrow().num_rows) == (["one"], [], 0)


def test_parameters_are_bound_and_rows_are_limited(lake: AnyLake) -> None:
    word = "o'clock; drop table x"
    assert lake.sql("select :word as w, :n + 1 as n", parameters={"word": word, "n": 1}).rows() == [(word, 2)]
    assert len(lake.sql("select * from range(100) t(i)", limit=7)) == 7


def test_explain_names_the_engine(lake: AnyLake, people: str) -> None:
    result = lake.sql(f"select count(*) from {people}", explain=True)
    assert result.rows() == [(3,)]
    assert (result.engine, result.explain.engine) == ("duckdb", "duckdb")
    assert result.explain.reason and result.explain.files_total


def test_a_wrong_statement_is_pointed_at(lake: AnyLake, people: str) -> None:
    sql = f"select nope from {people}"
    with pytest.raises(QueryRejectedError, match="nope") as raised:
        lake.sql(sql).rows()
    assert raised.value.pointer() == f"{sql}\n       ^"
    assert (raised.value.code, raised.value.is_user_error) == ("bad_sql", True)


def test_spark_writes_and_a_rollback_returns(lake: AnyLake, namespace: str) -> None:
    table = f"{namespace}.orders"
    created = lake.sql(f"create table {table} (id int, item string)")
    assert (created.columns, created.rows(), created.engine) == ((), [], "spark")
    lake.sql(f"insert into {table} values (1, 'tea'), (2, 'mate')")
    first = lake.history(table)[-1]
    lake.sql(f"delete from {table} where id = 1")
    assert lake.sql(f"select * from {table}", engine="spark").rows() == [(2, "mate")]
    back = lake.rollback(table, first.id)
    assert (back.is_current, back.rows_total) == (True, 2)
    assert [snapshot.id for snapshot in lake.history(table) if snapshot.is_current] == [back.id]


# ---- tables and time ----------------------------------------------------------------------------------------------


def test_a_table_is_listed_and_described(lake: AnyLake, people: str) -> None:
    info = lake.describe(people)
    assert (info.name, info.format, info.key) == (TableName.parse(people), "iceberg", ("id",))
    assert [(column.name, column.type) for column in info.columns] == [("id", "bigint"), ("name", "string")]
    assert info.current is not None and info.current.rows_total == 3 and info.current.at.tzinfo is not None
    assert info in lake.tables()


def test_history_travel_and_report_tell_the_same_story(lake: AnyLake, people: str) -> None:
    old, new = lake.history(people)
    assert [(snapshot.rows_total, snapshot.is_current) for snapshot in (old, new)] == [(2, False), (3, True)]
    assert (new.parent, new.notes["mode"]) == (old.id, "upsert")
    assert sorted(lake.travel(people, old.id).rows()) == [(1, "Ann"), (2, "Bob")]
    assert len(lake.travel(people, old.id, limit=1)) == 1
    assert lake.sql(f"select count(*) from {people}", as_of=old.id).rows() == [(2,)]
    report = lake.report(people)
    assert (list(report.snapshots), report.rows_total) == ([old, new], 3)
    assert report.earlier and report.later
    assert report.earlier.columns["name"] == ("Ann", "Bob", 0)
    assert (report.earlier.rows, report.later.rows) == (2, 3)


def test_a_diff_has_counts_rows_and_columns(lake: AnyLake, leads: str) -> None:
    old, new = lake.history(leads)
    lake.ingest_rows([{"id": 4, "name": "Di", "due": "2026-01-31"}], leads, key=["id"])
    diff = lake.diff(leads, old.id)
    assert (diff.table, diff.start, diff.key) == (TableName.parse(leads), old.id, ("id",))
    assert (diff.added, diff.removed, diff.changed) == (2, 0, 1)
    assert diff.columns_added == (Column("due", "date", comment="due"),)
    assert sorted(diff.rows.rows(), key=str) == [
        ("added", 3, "Cy", None),
        ("added", 4, "Di", date(2026, 1, 31)),
        ("after", 2, "Bo", None),
        ("before", 2, "Bob", None),
    ]
    assert diff.rows.names == ["change", "id", "name", "due"]
    assert len(lake.diff(leads, old.id, new.id, limit=1).rows) == 1


def test_a_table_handle_does_the_same(lake: AnyLake, leads: str) -> None:
    table = lake.table(leads.upper())
    old, new = table.history()
    assert (table.describe().current, len(table.read()), len(table.read(as_of=old.id))) == (new, 3, 2)
    assert table.diff(old.id).added == 1
    table.drop()
    with pytest.raises(NoSuchTableError):
        lake.table(leads)


def test_a_dropped_table_comes_back(lake: AnyLake, leads: str) -> None:
    lake.drop(leads)
    assert leads in lake.dropped()
    with pytest.raises(NoSuchTableError, match=f"There is no table {leads}"):
        lake.describe(leads)
    (drop,) = [drop for drop in lake.drops() if str(drop.table) == leads]
    assert abs(datetime.fromisoformat(drop.at) - datetime.now(UTC)) < timedelta(minutes=5)
    with pytest.raises(NotDroppedError, match=f"There is no drop 12345678 of {leads}"):
        lake.undrop(leads, "12345678")
    restored = lake.undrop(leads, drop.id)
    assert restored.current is not None and restored.current.rows_total == 3
    assert leads not in lake.dropped() and names(lake, leads) == ["Ann", "Bo", "Cy"]


# ---- branches -------------------------------------------------------------------------------------------------------


def test_a_branch_is_created_changed_compared_and_merged(lake: AnyLake, leads: str, namespace: str) -> None:
    name = f"b{abs(hash(namespace)) % 10**8}"
    branches, table = lake.refs.branches, TableName.parse(leads)
    assert branches.create(name.upper(), message="try") == name
    assert name in lake.branches()
    assert next(ref.message for ref, run in branches.list() if ref.name == name) == "try"
    with lake.branch(name) as branch:
        branch.ingest_rows([{"id": 9, "name": "Zoe"}], leads, key=["id"])
        assert names(branch, leads) == ["Ann", "Bo", "Cy", "Zoe"]
    assert names(lake, leads) == ["Ann", "Bo", "Cy"]
    assert lake.sql(f"select count(*) from {leads}", branch=name).rows() == [(4,)]
    (change,) = branches.diff(name)
    assert (change.table, change.change, change.rows_added, change.conflict) == (leads, "changed", 1, False)
    assert branches.diff_rows(name, table).rows() == [("added", 9, "Zoe")]
    merged = branches.merge(name, "add Zoe")
    line = lake.refs.log.lines(table, 1)[0]
    assert merged and (line.commit, line.what, line.message) == (merged.entry, "merge", "add Zoe")
    assert names(lake, leads) == ["Ann", "Bo", "Cy", "Zoe"]
    reverted = lake.refs.log.revert(merged.entry, "no Zoe")
    assert reverted.entry and names(lake, leads) == ["Ann", "Bo", "Cy"]


def test_a_branch_that_conflicts_is_not_merged(lake: AnyLake, leads: str, namespace: str) -> None:
    name = f"c{abs(hash(namespace)) % 10**8}"
    lake.refs.branches.create(name)
    lake.branch(name).ingest_rows([{"id": 7, "name": "Hal"}], leads, key=["id"])
    lake.ingest_rows([{"id": 7, "name": "Gil"}], leads, key=["id"])
    with pytest.raises(BranchConflictError, match=f"{leads}: both changed id = 7"):
        lake.refs.branches.merge(name)
    lake.refs.branches.drop(name)
    assert name not in lake.branches()


def test_a_branch_that_changed_other_rows_than_main_is_merged_and_picked(
    lake: AnyLake, leads: str, namespace: str
) -> None:
    name = f"d{abs(hash(namespace)) % 10**8}"
    lake.refs.branches.create(name)
    lake.branch(name).ingest_rows([{"id": 8, "name": "Hal"}], leads, key=["id"])
    picked = lake.refs.log.lines(TableName.parse(leads), 1, name)[0].commit
    lake.branch(name).ingest_rows([{"id": 9, "name": "Ida"}], leads, key=["id"])
    lake.ingest_rows([{"id": 7, "name": "Gil"}], leads, key=["id"])
    assert lake.refs.log.cherry_pick(picked).entry
    assert names(lake, leads) == ["Ann", "Bo", "Cy", "Gil", "Hal"]
    assert lake.refs.branches.merge(name).entry
    assert names(lake, leads) == ["Ann", "Bo", "Cy", "Gil", "Hal", "Ida"]


def test_a_tag_is_a_when(lake: AnyLake, leads: str, namespace: str) -> None:
    name = f"t{abs(hash(namespace)) % 10**8}"
    assert lake.refs.branches.create_tag(name, message="before") == name
    lake.ingest_rows([{"id": 7, "name": "Gil"}], leads, key=["id"])
    assert len(lake.travel(leads, name)) == 3
    assert any((tag.name, tag.message) == (name, "before") for tag in lake.refs.branches.tags())
    lake.refs.branches.drop_tag(name)
    assert name not in [tag.name for tag in lake.refs.branches.tags()]


# ---- files ----------------------------------------------------------------------------------------------------------


def test_files_are_ingested_once(lake: AnyLake, leads: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id;name\n3;Cyd\n4;Di\n")
    (tmp_path / "b.csv").write_text("id;name\n5;Ed\n")
    done = lake.ingest(str(tmp_path / "*.csv"), into=leads, key=["id"], read=ReadOptions(delimiter=";"))
    assert (done.rows_read, done.inserted, done.updated, done.mode) == (3, 2, 1, "upsert")
    assert done.snapshot == lake.history(leads)[-1].id
    assert names(lake, leads) == ["Ann", "Bo", "Cyd", "Di", "Ed"]
    again = lake.ingest(tmp_path / "a.csv", into=leads, key=["id"], dry_run=True)
    assert (len(again.skipped), again.rows_read, again.dry_run) == (1, 0, True)


def test_files_are_read_as_the_options_say(lake: AnyLake, namespace: str, tmp_path: Path) -> None:
    table = f"{namespace}.prices"
    lake.ingest_rows([{"id": 1, "price": 0.5}], table, key=["id"])
    (tmp_path / "prices.csv").write_text('id;price\n2;"1.234,50"\n')
    (tmp_path / "prices.json").write_text('{"id": 3, "price": 2.5, "shop": {"city": "Rome"}}\n')
    lake.ingest(tmp_path / "prices.csv", into=table, read=ReadOptions(delimiter=";", decimal=",", thousands="."))
    lake.ingest(tmp_path / "prices.json", into=table, read=ReadOptions(flatten=True))
    (tmp_path / "report.csv").write_text("Prices of 2026\n\nid,price\n4,3.5\n")
    lake.ingest(tmp_path / "report.csv", into=table, read=ReadOptions(skip_rows=2))
    rows = lake.sql(f"select id, cast(price as double) as price, shop_city from {table} order by id").rows()
    assert rows == [(1, 0.5, None), (2, 1234.5, None), (3, 2.5, "Rome"), (4, 3.5, None)]
    with pytest.raises(LakeError, match="cannot separate thousands"):
        lake.ingest(tmp_path / "prices.csv", into=table, read=ReadOptions(thousands="."))


def test_a_contract_is_kept(lake: AnyLake, leads: str, tmp_path: Path) -> None:
    file = tmp_path / "more.csv"
    file.write_text("id,name,extra\n6,Flo,x\n")
    with pytest.raises(ContractError, match="extra"):
        lake.ingest(file, into=leads, key=["id"], contract="freeze")
    assert names(lake, leads) == ["Ann", "Bo", "Cy"]


def test_rows_may_be_arrow(lake: AnyLake, namespace: str) -> None:
    rows = pyarrow.table({"id": pyarrow.array([1, 2], pyarrow.int64()), "at": [date(2026, 1, 1), None]})
    report = lake.ingest_rows(rows, f"{namespace}.days", mode="append")
    assert (report.mode, report.inserted, report.table) == ("append", 2, TableName(namespace, "days"))
    assert lake.sql(f"select * from {namespace}.days order by id").rows() == [(1, date(2026, 1, 1)), (2, None)]


# ---- pipelines ------------------------------------------------------------------------------------------------------


def test_pipelines_are_listed(lake: AnyLake) -> None:
    pipelines = lake.pipelines()
    assert {"market", "taxi", "files", "contract_fine"} <= set(pipelines)
    assert [table.name for table in pipelines["contract_fine"].tables] == ["contract_runs.one", "contract_runs.two"]
    assert "path" in pipelines["market"].known_settings
    partitions = pipelines["market"].partitions
    assert partitions is not None and partitions.between("2026-01-14", "2026-01-15") == ["2026-01-14", "2026-01-15"]
    assert pipelines["contract_fine"].partitions is None


def test_a_run_is_followed_and_recorded(lake: AnyLake) -> None:
    steps: list[str] = []
    record = lake.run("contract_fine", light=True, message="twice", progress=steps.append)
    assert (record.state, record.rows, record.message) == ("published", 2, "twice")
    assert [table.table for table in record.tables] == ["contract_runs.one", "contract_runs.two"]
    assert steps
    assert lake.run_record(record.id) == record
    started, *noted, ended = (line for line in lake.run_log(record.id) if line.source != "spark")
    assert (started.source, {line.source for line in noted}, ended.source) == ("run_started", {"run_step"}, "run_ended")
    assert noted[-1].text == "Publishing"
    assert lake.runs()[0] == record
    kept = lake.run("contract_fine", light=True, publish=False, tables=["contract_runs.one"])
    assert (kept.state, kept.branch in lake.branches()) == ("kept", True)
    assert next(run for ref, run in lake.refs.branches.list() if ref.name == kept.branch) == kept
    lake.refs.branches.drop(kept.branch)
    assert lake.run_record(kept.id).state == "dropped"


def test_a_failed_run_is_resumed(lake: AnyLake, service: RunningService) -> None:
    (service.folder / "fail").touch()
    with pytest.raises(Exception, match="modulo by zero") as raised:
        lake.run("contract_flaky", light=True)
    assert isinstance(raised.value, PipelineError | ZeroDivisionError)
    failed = lake.runs()[0]
    assert (failed.pipeline, failed.state) == ("contract_flaky", "failed")
    (service.folder / "fail").unlink()
    resumed = lake.resume(failed.id)
    assert (resumed.id, resumed.state) == (failed.id, "published")


# ---- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "kind", "hint"),
    [
        pytest.param(lambda lake: lake.describe("nobody.nothing"), NoSuchTableError, "lake tables", id="table"),
        pytest.param(lambda lake: lake.history("a.b.c.d"), BadNameError, "NAMESPACE.TABLE", id="name"),
        pytest.param(lambda lake: lake.branch("nowhere"), NoSuchBranchError, "There are", id="branch"),
        pytest.param(lambda lake: lake.refs.branches.drop("nowhere"), NoSuchBranchError, "There are", id="drop"),
        pytest.param(lambda lake: lake.refs.branches.create("main"), LakeError, "", id="branch-exists"),
        pytest.param(lambda lake: lake.refs.branches.create("a b"), BadNameError, "letters", id="branch-name"),
        pytest.param(lambda lake: lake.refs.log.revert("999999"), NoSuchCommitError, "lake log", id="commit"),
        pytest.param(lambda lake: lake.undrop("nobody.nothing"), NotDroppedError, "", id="undrop"),
        pytest.param(lambda lake: lake.run("markt"), NoSuchPipelineError, "Did you mean market?", id="pipeline"),
        pytest.param(lambda lake: lake.run_record("nope"), NoSuchRunError, "lake runs", id="run"),
        pytest.param(lambda lake: lake.sql("select 1", engine="nope"), UnknownChoiceError, "duckdb", id="engine"),
        pytest.param(lambda lake: lake.sql("select read_text('/etc/passwd')"), StatementRefusedError, "", id="guard"),
        pytest.param(lambda lake: lake.ingest("nope.csv", into="x.y"), LakeError, "", id="file"),
    ],
)
def test_the_same_call_fails_with_the_same_error(lake: AnyLake, call: object, kind: type[LakeError], hint: str) -> None:
    with pytest.raises(kind) as raised:
        call(lake)  # type: ignore[operator]
    assert type(raised.value) is kind or kind is LakeError
    assert raised.value.is_user_error
    assert raised.value.message and hint in raised.value.hint


def test_a_when_that_is_none_says_what_would_be(lake: AnyLake, people: str) -> None:
    with pytest.raises(WhenError, match="whenever") as raised:
        lake.travel(people, "whenever")
    assert "snapshot id" in raised.value.hint


def test_bytes_and_special_numbers_survive(lake: AnyLake) -> None:
    encoded = base64.b64encode(b"\x00\xff").decode()
    (row,) = lake.sql(f"select unbase64('{encoded}') as b, cast('NaN' as double) as n").rows()
    assert row[0] == b"\x00\xff" and row[1] != row[1]
