"""The profile hive: Iceberg and Hudi side by side in one metastore and one bucket, for Spark, DuckDB and Trino."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.support.servers.stack import Stack

from lakehouse.catalogs.hive.metastore import Metastore
from lakehouse.config.profiles import resolve_profile
from lakehouse.config.settings import Settings
from lakehouse.core.errors import NotSupportedError
from lakehouse.core.names import TableName
from lakehouse.ingest.report import IngestReport
from lakehouse.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.stretch("hive")]


@pytest.fixture(scope="module")
def settings(stack: Stack) -> Settings:
    stack.need("storage", "postgres", "hive", "trino")
    return resolve_profile(replace(stack.settings, profile="hive"))


@pytest.fixture(scope="module")
def lake(stack: Stack, settings: Settings) -> Lake:
    return stack.lake("hive")


@dataclass(frozen=True)
class Desk:
    """Somebody who brings files in."""

    lake: Lake
    folder: Path

    def bring(self, table: str, text: str, **options: Any) -> IngestReport:
        file = self.folder / "brought.csv"
        file.write_text(text)
        return self.lake.ingest(file, into=table, **options)


@pytest.fixture(scope="module")
def desk(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A lake with leads in Iceberg and visits in Hudi, once plain and once partitioned, each upserted with a new column."""
    made = Desk(lake, tmp_path_factory.mktemp("files"))
    made.bring("crm.leads", "id,name\n1,Ada\n2,Bob\n", key=("id",))
    made.bring("crm.leads", "id,name,city\n2,Bob,Rome\n3,Cy,Bonn\n")
    for table, options in (("crm.visits", {}), ("crm.visits_by_country", {"partition_by": "country"})):
        first = "id,lead,country,at\n10,1,UK,2026-01-01 10:00:00\n11,2,US,2026-01-01 11:00:00\n"
        done = made.bring(table, first, key=("id",), format="hudi", **options)
        assert done.inserted == 2
        more = "id,lead,country,at,note\n11,2,US,2026-01-01 11:00:00,hi\n12,3,FR,2026-01-02 12:00:00,ho\nx,3,FR,,\n"
        done = made.bring(table, more, contract="quarantine")
        assert (done.inserted, done.updated, done.rejected) == (1, 1, 1)
    return made


@pytest.fixture
def columns(settings: Settings) -> Callable[[str], list[str]]:
    """The columns that the metastore itself knows of a table, those of the partitioning last."""

    def of(table: str) -> list[str]:
        entry = Metastore(settings.catalog.uri).entry(TableName.parse(table))
        names = [column.name for column in (*entry.sd.cols, *entry.partitionKeys)]
        return [name for name in names if not name.startswith("_hoodie_")]

    return of


def asked(lake: Lake, sql: str, engine: str = "", **how: str) -> list[tuple[object, ...]]:
    return lake.sql(sql, engine=engine or None, **how).rows()


# ---- one metastore, one bucket ----------------------------------------------------------------------------------


def test_tables_of_both_formats_stand_in_one_metastore_and_lie_in_one_bucket(lake: Lake, desk: Desk) -> None:
    tables = {str(info.name): info for info in lake.tables() if info.name.namespace == "crm"}
    assert (tables["crm.leads"].format, tables["crm.visits"].format) == ("iceberg", "hudi")
    assert {info.location.partition("/warehouse/")[0] for info in tables.values()} == {"s3://lakehouse"}


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        ("crm.leads", ["id", "name", "city"]),
        ("crm.visits", ["id", "lead", "country", "at", "note"]),
        ("crm.visits_by_country", ["id", "lead", "at", "note", "country"]),
    ],
)
def test_the_metastore_has_a_new_column_with_the_commit_that_brought_it(
    desk: Desk, columns: Callable[[str], list[str]], table: str, wanted: list[str]
) -> None:
    assert columns(table) == wanted


@pytest.mark.parametrize("table", ["crm.visits", "crm.visits_by_country"])
def test_bad_rows_of_a_hudi_table_are_kept_beside_it(lake: Lake, desk: Desk, table: str) -> None:
    assert asked(lake, f"select line, reason from {table}__rejected") == [(4, "id: 'x' is not a valid bigint")]


def test_bad_rows_of_an_iceberg_table_are_published_after_the_good_ones(lake: Lake, desk: Desk) -> None:
    desk.bring("crm.scores", "id,score\n1,10\n", key=("id",))
    done = desk.bring("crm.scores", "id,score\n2,20\n3,many\n", contract="quarantine")
    assert (done.inserted, done.rejected) == (1, 1)
    assert asked(lake, "select count(*) from crm.scores") == [(2,)]
    assert asked(lake, "select count(*) from crm.scores__rejected") == [(1,)]
    assert lake.branches() == []


def test_a_file_is_brought_in_once(desk: Desk) -> None:
    for options in ({"format": "hudi", "key": ("id",)}, {}):
        table, text = f"crm.once_{len(options)}", "id,name\n1,Ada\n"
        assert desk.bring(table, text, **options).inserted == 1
        again = desk.bring(table, text)
        assert (again.rows_read, len(again.skipped)) == (0, 1)


def test_a_time_without_a_zone_is_kept_as_utc_and_stays_the_same_row(lake: Lake, desk: Desk) -> None:
    """A metastore has no word for such a type."""
    same = desk.bring("crm.visits", "id,lead,country,at,note\n12,3,FR,2026-01-02 12:00:00,ho\n", contract="quarantine")
    assert same.unchanged == 1
    for engine in ("duckdb", "spark"):
        rows = asked(lake, "select at from crm.visits where id = 12", engine)
        assert rows == [(datetime(2026, 1, 2, 12, tzinfo=UTC),)]


# ---- one SQL over both ------------------------------------------------------------------------------------------

JOINED = (
    "select l.name, l.city, v.country, v.note from crm.leads l join {visits} v on v.lead = l.id order by v.id".format
)
ROWS = [("Ada", None, "UK", None), ("Bob", "Rome", "US", "hi"), ("Cy", "Bonn", "FR", "ho")]


@pytest.mark.parametrize("visits", ["crm.visits", "crm.visits_by_country"])
@pytest.mark.parametrize("engine", ["spark", "duckdb", "trino"])
def test_hudi_is_joined_with_iceberg(lake: Lake, desk: Desk, engine: str, visits: str) -> None:
    result = lake.sql(JOINED(visits=visits), engine=engine)
    assert result.engine == engine
    assert result.rows() == ROWS


def test_in_trino_hudi_has_a_catalog_of_its_own_too(lake: Lake, desk: Desk) -> None:
    assert asked(lake, JOINED(visits="hudi.crm.visits"), "trino") == ROWS
    assert asked(lake, "select count(*) from hudi.crm.visits_by_country where country = 'FR'", "trino") == [(1,)]


# ---- time -------------------------------------------------------------------------------------------------------


@pytest.fixture
def stock(desk: Desk, request: pytest.FixtureRequest) -> str:
    """A Hudi table of the test's own: two commits, the second with a new column."""
    table = f"shop.{request.node.name.removeprefix('test_')[:40]}"
    desk.bring(table, "item,pieces\npen,1\ncup,2\n", key=("item",), format="hudi")
    desk.bring(table, "item,pieces,shelf\ncup,5,A\nhat,3,B\n")
    return table


def test_history_and_a_look_back(lake: Lake, stock: str) -> None:
    first, second = lake.history(stock)
    assert (first.rows_total, second.rows_total, second.is_current) == (2, 3, True)
    then = [("cup", 2), ("pen", 1)]
    for engine in ("duckdb", "spark"):
        assert asked(lake, f"select * from {stock} order by item", engine, as_of=first.id) == then
    info = lake.describe(stock)
    assert (info.format, info.key, [column.name for column in info.columns]) == (
        "hudi",
        ("item",),
        ["item", "pieces", "shelf"],
    )


def test_a_rollback_is_a_commit_that_everybody_sees(lake: Lake, stock: str) -> None:
    lake.rollback(stock, lake.history(stock)[0].id)
    for engine in ("duckdb", "spark", "trino"):
        assert asked(lake, f"select item, pieces, shelf from {stock} order by item", engine) == [
            ("cup", 2, None),
            ("pen", 1, None),
        ]
    assert len(lake.history(stock)) == 3


def test_a_dropped_table_comes_back_where_it_was_and_is_written_to(lake: Lake, desk: Desk, stock: str) -> None:
    place = lake.describe(stock).location
    lake.drop(stock)
    assert stock not in [str(info.name) for info in lake.tables()]
    assert stock in lake.dropped()
    assert lake.undrop(stock).location == place, "a drop moves no files"
    desk.bring(stock, "item,pieces,shelf\nbox,9,C\n")
    for engine in ("duckdb", "spark", "trino"):
        assert asked(lake, f"select count(*) from {stock}", engine) == [(4,)]


def test_a_new_table_takes_the_name_of_a_dropped_one_and_not_its_files(lake: Lake, desk: Desk, stock: str) -> None:
    lake.drop(stock)
    desk.bring(stock, "item,pieces\nkey,7\n", key=("item",), format="hudi")
    desk.bring(stock, "item,pieces,shelf\nkey,8,D\n")
    for engine in ("duckdb", "spark", "trino"):
        assert asked(lake, f"select item, pieces, shelf from {stock}", engine) == [("key", 8, "D")]
    lake.drop(stock)
    lake.undrop(stock)
    assert asked(lake, f"select pieces from {stock}") == [(8,)], "the newer of the two"


def test_sql_writes_hudi_tables_as_well(lake: Lake, stock: str, columns: Callable[[str], list[str]]) -> None:
    copy = f"{stock}_copy"
    lake.sql(f"create table {copy} using hudi tblproperties (primaryKey = 'item') as select * from {stock}")
    lake.sql(f"alter table {copy} add columns (colour string)")
    assert columns(copy) == ["item", "pieces", "shelf", "colour"]
    lake.sql(f"insert into {copy} values ('ink', 4, 'E', 'blue')")
    lake.sql(f"update {copy} set pieces = 6 where item = 'ink'")
    lake.sql(f"delete from {copy} where item = 'pen'")
    for engine in ("duckdb", "spark", "trino"):
        assert asked(lake, f"select item, pieces, colour from {copy} order by item", engine) == [
            ("cup", 5, None),
            ("hat", 3, None),
            ("ink", 6, "blue"),
        ]


# ---- what Hive cannot -------------------------------------------------------------------------------------------


def test_a_run_of_several_tables_is_refused_before_any_work(lake: Lake) -> None:
    before = lake.runs()
    with pytest.raises(NotSupportedError, match="cannot publish several at once") as refused:
        lake.run("market")
    assert "--table" in refused.value.hint
    assert (lake.runs(), lake.branches()) == (before, [])


def test_a_branch_with_one_changed_table_is_merged_and_with_two_is_refused(lake: Lake, desk: Desk) -> None:
    desk.bring("crm.one", "id\n1\n")
    desk.bring("crm.two", "id\n1\n")
    lake.refs.branches.create("exp")
    lake.sql("insert into crm.one values (2)", branch="exp")
    assert asked(lake, "select count(*) from crm.one", branch="exp") == [(2,)]
    assert asked(lake, "select count(*) from crm.one") == [(1,)]
    lake.refs.branches.merge("exp")
    assert asked(lake, "select count(*) from crm.one", "trino") == [(2,)]
    lake.refs.branches.create("exp")
    for table in ("crm.one", "crm.two"):
        lake.sql(f"insert into {table} values (3)", branch="exp")
    with pytest.raises(NotSupportedError, match=r"several tables at once: crm\.one, crm\.two"):
        lake.refs.branches.merge("exp")
    assert asked(lake, "select count(*) from crm.two") == [(1,)]
    lake.refs.branches.drop("exp")


def test_spark_keeps_no_connections_of_what_it_wrote(lake: Lake, desk: Desk, settings: Settings) -> None:
    """It lives long: were a few left open by each write, S3A would soon have none left, and every statement would wait."""

    def open_now() -> int:
        port, held = settings.stack.storage_port, (psutil.CONN_ESTABLISHED, psutil.CONN_CLOSE_WAIT)
        connections = [
            connection
            for connection in psutil.net_connections("tcp")
            if connection.raddr and connection.raddr.port == port
        ]
        return len([connection for connection in connections if connection.status in held])

    before = open_now()
    for number in range(3):
        desk.bring("crm.visits_by_country", f"id,lead,country,at,note\n{number},1,UK,,\n")
    assert open_now() - before < 10
