"""Branches on a real Spark: statements stay where they are meant, nothing deletes shared files, the log knows who."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import Command
from tests.support.ingest_fixture import IngestFixture
from tests.support.sales_pipeline import lake_with

from lakehouse.core.errors import LakeError, NotSupportedError
from lakehouse.core.names import TableName
from lakehouse.lake import Lake
from lakehouse.pipelines import FilesTable, Pipeline
from lakehouse.runs.attempt import COMMITTED_LAST, NOT_COMMITTED

pytestmark = pytest.mark.spark


@pytest.fixture
def orders(local_lake: Lake, namespace: str) -> str:
    table = f"{namespace[:60]}.orders"
    local_lake.sql(f"create table {table} (id int, item string)")
    local_lake.sql(f"insert into {table} values (1, 'tea'), (2, 'mate')")
    return table


@pytest.fixture
def exp(local_lake: Lake, namespace: str) -> str:
    name = f"b_{namespace[-40:]}"
    return local_lake.refs.branches.create(name)


def ids(lake: Lake, table: str, branch: str = "") -> list[int]:
    return [row[0] for row in lake.sql(f"select id from {table} order by id", branch=branch).rows()]


def test_every_kind_of_statement_stays_on_its_branch(local_lake: Lake, orders: str, namespace: str) -> None:
    lake = local_lake
    exp = lake.refs.branches.create(f"b_{namespace[-40:]}")
    first = lake.history(orders)[0].id
    fresh = orders.replace("orders", "fresh")
    with lake.branch(exp) as on_exp:
        on_exp.sql(f"delete from lake.{orders} where id = 1")
        on_exp.sql(f"alter table {orders} add column note string")
        on_exp.sql(f"create table {fresh} as select * from {orders}")
        on_exp.sql(f"merge into {orders} t using {fresh} s on t.id = s.id when matched then update set note = 'x'")
        assert on_exp.sql(f"select id, note from {orders}").rows() == [(2, "x")]
        on_exp.sql(f"call lake.system.rollback_to_snapshot('{orders}', {first})")
        assert ids(on_exp, orders) == [1, 2]
        on_exp.sql(f"call lake.system.set_current_snapshot(table => '{orders}', snapshot_id => {first})")
    assert ids(lake, orders) == [1, 2]
    assert [column.name for column in lake.describe(orders).columns] == ["id", "item"]
    assert fresh not in {str(info.name) for info in lake.tables()}
    with lake.branch(exp) as on_exp:
        on_exp.sql(f"insert into {orders} (select 7, 'x', 'y')")
    assert lake.refs.branches.merge(exp, "all of it").entry
    assert ids(lake, orders) == [1, 2, 7]
    assert ids(lake, fresh) == [2]


def test_the_branch_is_one_more_catalog_to_a_plain_spark(local_lake: Lake, orders: str, exp: str) -> None:
    spark = local_lake.spark.newSession()
    for key, value in local_lake.refs.branches.catalog.on(exp).spark_conf().items():  # type: ignore[attr-defined]
        spark.conf.set(key, value)
    assert spark.table(f"{exp}.{orders}").count() == 2
    spark.sql(f"insert into {exp}.{orders} values (3, 'x')")
    assert (spark.table(f"{exp}.{orders}").count(), spark.table(f"lake.{orders}").count()) == (3, 2)
    local_lake.refs.branches.drop(exp)


@pytest.mark.parametrize("branch", [False, True], ids=["main", "branch"])
def test_no_engine_deletes_files_that_others_may_need(local_lake: Lake, orders: str, exp: str, branch: bool) -> None:
    spark = local_lake.spark.newSession()
    name = "lake"
    if branch:
        for key, value in local_lake.refs.branches.catalog.on(exp).spark_conf().items():  # type: ignore[attr-defined]
            spark.conf.set(key, value)
        name = exp
    for statement in (
        f"DROP TABLE {name}.{orders} PURGE",
        f"CALL {name}.system.expire_snapshots(table => '{orders}', older_than => timestamp '2100-01-01')",
        f"CALL {name}.system.remove_orphan_files(table => '{orders}')",
    ):
        with pytest.raises(Exception, match="GC is disabled"):
            spark.sql(statement)
    assert ids(local_lake, orders) == [1, 2]
    local_lake.refs.branches.drop(exp)


def test_a_statement_is_in_the_log_with_its_author_and_without_its_data(local_lake: Lake, orders: str) -> None:
    local_lake.sql(f"insert into {orders} values (3, 'secret')")
    lines = local_lake.refs.log.lines(TableName.parse(orders))
    assert [line.what for line in lines] == ["sql", "sql", "sql"]
    assert lines[0].message == f"insert into {orders} values (…, '…')"
    assert all(line.author and line.commit for line in lines)
    local_lake.refs.log.revert(lines[0].commit)
    assert ids(local_lake, orders) == [1, 2]
    local_lake.spark.sql(f"insert into lake.{orders} values (4, 'direct')")
    direct = local_lake.refs.log.lines(TableName.parse(orders))[0]
    assert (direct.what, direct.commit) == ("append", "")


def test_spark_joins_tables_of_one_moment(local_lake: Lake, orders: str) -> None:
    other = orders.replace("orders", "other")
    local_lake.sql(f"create table {other} as select * from {orders}")
    join = f"select count(*) from {orders} a join {other} b on a.id = b.id"
    assert local_lake.sql(join, engine="spark").rows() == [(2,)]
    local_lake.sql(f"alter table {other} add column note string")
    assert local_lake.sql(f"select b.note from {orders} a join {other} b on a.id = b.id", engine="spark").rows() == [
        (None,),
        (None,),
    ]
    local_lake.refs.branches.create_tag("t_joins")
    local_lake.sql(f"insert into {orders} values (3, 'x')")
    local_lake.sql(f"insert into {other} values (3, 'x', 'y')")
    assert local_lake.sql(join, engine="spark").rows() == [(3,)]
    assert local_lake.sql(join, engine="spark", as_of="t_joins").rows() == [(2,)]
    local_lake.refs.branches.drop_tag("t_joins")


def test_the_command_line_from_a_branch_to_a_revert(fixture: IngestFixture, command: Command, namespace: str) -> None:
    fixture.ingest("id,n\n1,10\n", "one.csv", key=("id",))
    name = f"c_{namespace[-30:]}"
    assert command("branch", "create", name, "-m", "try").returncode == 0
    done = command("--branch", name, "sql", f"insert into {fixture.table} values (2, 20)")
    assert done.returncode == 0, done.stderr
    file = fixture.file("more.csv", "id,n\n3,30\n")
    assert command("ingest", str(file), "--into", fixture.table, "--branch", name).returncode == 0
    assert fixture.rows() == [(1, 10)]
    told = command("branch", "diff", name)
    assert fixture.table in told.stdout and "2" in told.stdout
    assert "30" in command("branch", "diff", name, fixture.table).stdout
    assert name in command("branch", "list", "-o", "json").stdout
    merged = command("branch", "merge", name, "-m", "done")
    assert merged.returncode == 0, merged.stderr
    assert fixture.rows() == [(1, 10), (2, 20), (3, 30)]
    commit = merged.stderr.rstrip(".\n").rpartition(" ")[2]
    assert "done" in command("log", fixture.table).stdout
    assert command("revert", commit).returncode == 0
    assert fixture.rows() == [(1, 10)]
    assert command("branch", "merge", name).returncode == 2
    assert command("revert", "nothing").returncode == 2


def test_a_view_is_neither_made_nor_read_on_a_branch(local_lake: Lake, orders: str, exp: str) -> None:
    view = orders.replace("orders", "few")
    local_lake.sql(f"create view {view} as select id from {orders} where id = 1")
    assert ids(local_lake, view) == [1]
    with local_lake.branch(exp) as on_exp:
        for statement in (f"create view {view}_2 as select 1 as id", f"select * from {view}"):
            with pytest.raises(NotSupportedError, match="main's tables"):
                on_exp.sql(statement)
    local_lake.refs.branches.drop(exp)


def test_the_rows_of_a_view_are_not_changed_and_its_commit_can_be_reverted(local_lake: Lake, orders: str) -> None:
    view = orders.replace("orders", "latest")
    local_lake.sql(f"create view {view} as select id from {orders}")
    made, before = local_lake.refs.log.lines(limit=1)[0], ids(local_lake, orders)
    for statement in (
        f"delete from {view}",
        f"update {view} set id = 7",
        f"insert into {view} values (7)",
        f"merge into {view} t using {orders} s on t.id = s.id when matched then delete",
    ):
        with pytest.raises(NotSupportedError, match=f"{view} is a view"):
            local_lake.sql(statement)
    assert ids(local_lake, orders) == before
    assert [change.table for change in local_lake.refs.log.preview_revert(made.commit)] == [view]
    local_lake.refs.log.revert(made.commit)
    assert view not in map(str, local_lake.views())
    assert ids(local_lake, orders) == before


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        pytest.param("drop schema {space}", "not empty", id="a-schema-with-tables"),
        pytest.param("select raise_error('no such city')", "no such city", id="raise-error"),
        pytest.param("select assert_true(id > 100) from {orders}", "is not true", id="assert-true"),
        pytest.param("select element_at(array(id), 0) from {orders}", "index 0", id="an-index-of-zero"),
        pytest.param("select id from {orders} group by", r"end of input\.", id="syntax"),
        pytest.param("alter table {orders} rename to {space}.taken", "already exists", id="a-name-that-exists"),
        pytest.param("select 'open from {orders}", "not closed", id="an-open-quote"),
    ],
)
def test_what_a_statement_did_wrong_is_its_users_error(local_lake: Lake, orders: str, sql: str, message: str) -> None:
    space = orders.partition(".")[0]
    local_lake.sql(f"create table {space}.taken (id int)")
    with pytest.raises(LakeError, match=message) as raised:
        local_lake.sql(sql.format(orders=orders, space=space)).rows()
    assert raised.value.is_user_error
    assert "Spark failed" not in raised.value.message


def test_a_hudi_table_of_a_run_is_committed_last_and_only_if_the_run_is_published(
    local_lake: Lake, namespace: str, tmp_path: Path
) -> None:
    space = namespace[:60]
    (tmp_path / "one.csv").write_text("id,n\n1,10\n")
    pipeline = Pipeline(
        name="mixed",
        tables=(
            FilesTable(f"{space}.folder", "path", {"key": ("id",), "format": "hudi"}),
            FilesTable(f"{space}.plain", "path", {"key": ("id",)}),
        ),
        settings={"path": "where the files are"},
    )
    lake = lake_with(local_lake, {"mixed": {"path": str(tmp_path)}})
    kept = lake.run(pipeline, publish=False)
    assert kept.state == "kept"
    assert [(report.table.rpartition(".")[2], report.note) for report in kept.tables] == [
        ("plain", ""),
        ("folder", f"hudi {NOT_COMMITTED}"),
    ]
    assert not [info for info in lake.tables() if info.name.namespace == space]
    lake.refs.branches.drop(kept.branch)
    done = lake.run(pipeline)
    assert done.state == "published"
    assert {report.table: report.note for report in done.tables} == {
        f"{space}.plain": "",
        f"{space}.folder": f"hudi {COMMITTED_LAST}",
    }
    assert [lake.sql(f"select n from {space}.{name}").rows() for name in ("plain", "folder")] == [[(10,)], [(10,)]]
