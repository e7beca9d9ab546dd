"""Both engines give the same answer over tables as they are: every column type, changed columns, partitions, deletes, branches, snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from tests.support.conformance.canonical import answer_of, difference
from tests.support.conformance.check import NoAnswer, ask_duckdb

from lakehouse.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.slow]

#: The columns of both formats; Iceberg has `tn` too, which hudi-rs does not read.
_COLUMNS = (
    "id int, bo boolean, i int, bi bigint, f float, d double, d5 decimal(5,2), d38 decimal(38,10), s string, by binary, da date, ts timestamp,"
    " ai array<int>, ms map<string,int>, st struct<a:int,b:string>, sts array<struct<k:string,v:decimal(9,2)>>, part string"
)
_ROWS = (
    "(1, true, 2147483647, 9223372036854775807, float('inf'), double('NaN'), 999.99, 999999999999999999999999999.9999999999, 'ß😀', X'00ff7f', date'0001-01-01',"
    " timestamp'0001-01-01 00:00:00', array(1, null, -1), map('a', 1, 'b', null), named_struct('a', 1, 'b', 'x'), array(named_struct('k', 'a', 'v', 1.25)), 'north')",
    "(2, false, -2147483648, -9223372036854775808, -0.0F, -0.0D, -999.99, -0.0000000001, '', X'', date'1582-10-04', timestamp'1582-10-04 23:59:59.999999',"
    " array(), map(), named_struct('a', null, 'b', ''), array(), null)",
    "(3, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, 'it''s')",
    "(4, true, 0, 0, 0.1F, 0.0D, 0.00, 0.0000000000, ' a ', X'61', date'1582-10-10', timestamp'1582-10-10 12:00:00', array(5), map('', 0),"
    " named_struct('a', 0, 'b', null), array(null), null)",
    "(5, false, 7, 7, 1.5F, 1e300, 1.50, 1.5, 'tea', X'c328', date'1969-12-31', timestamp'1969-12-31 23:59:59.999999', array(2, 1), map('k', 2),"
    " named_struct('a', 5, 'b', 'y'), array(named_struct('k', null, 'v', null), named_struct('k', 'z', 'v', -0.01)), 'north')",
    "(6, true, 8, 8, float('NaN'), double('-inf'), 2.50, 2.5, 'Tea', X'74', date'9999-12-31', timestamp'9999-12-31 23:59:59.999999', array(3), map('k', 3),"
    " named_struct('a', 6, 'b', 'z'), null, 'ß')",
)
_LATER = (
    "(7, null, 9, 9, 0.0F, 0.0D, 0.01, 0.01, 'mate', X'ff', date'2020-02-29', timestamp'2020-02-29 12:30:45.123456', array(null), map('x', 1),"
    " named_struct('a', 7, 'b', 'q'), array(named_struct('k', 'b', 'v', 9999999.99)), null)",
    "(8, false, 10, 10, -2.5F, 2.5D, -0.01, 3.25, 'tea', X'00', date'1582-10-15', timestamp'2026-10-25 01:30:00', array(8, 8), map('y', 2),"
    " named_struct('a', 8, 'b', 'r'), array(), '')",
)

#: Each over every column type; `{t}` is the table, `{s}` its column of text.
_STATEMENTS = (
    "select * from {t}",
    "select id, bo is null, i + 1L, bi div 2, f + d, d / 3, d5 * 2, d38 + 1, length({s}), hex(by), trunc(da, 'year'), hour(ts), ai[0], ms['k'], st.a, sts[0].v from {t}",
    "select id, cast(i as string), cast(d5 as double), cast(d38 as string), cast(da as timestamp), cast(ts as date) from {t}",
    "select id, year(da), month(ts), dayofweek(da), date_format(ts, 'yyyy-MM-dd'), datediff(da, date'1582-10-10'), last_day(da), unix_timestamp(ts) from {t}",
    "select id, size(ai), size(ms), map_keys(ms), st.b, sts.k, array_contains(ai, 1), length(by), part is null, coalesce(part, '?') from {t}",
    "select part, count(*), count({s}), min(da), max(da), min(ts), max(ts), min(i), max(bi), sum(d5), avg(d5), min({s}), max(f), count(distinct bo) from {t} group by part",
    "select count(*), min(f), max(f), min(d), max(d), min(da), max(ts), min(d38), max({s}), max(by), count(part) from {t}",
    "select id from {t} where da < date'1582-10-10'",
    "select id from {t} where ts <= timestamp'1582-10-10 12:00:00' or ts > '9999-01-01'",
    "select id from {t} where isnan(d) or f < 1",
    "select id from {t} where d5 > 0 and d38 < 10",
    "select id from {t} where part is null",
    "select id from {t} where part in ('north', 'ß') and i > 0",
    "select id from {t} where part <> 'north'",
    "select id from {t} where part <=> null or part = ''",
    "select id from {t} where by = X'61' or by > X'c3'",
    "select id from {t} where st.a = 1 or st.b is null",
    "select id, row_number() over (partition by part order by da desc nulls last, id), lag({s}) over (order by id) from {t}",
    "select id, f, d from {t} order by f desc, d, id",
    "select id, part, {s} from {t} order by part nulls last, {s} desc, id limit 5",
    "select a.id, b.id from {t} a join {t} b on a.part <=> b.part and a.id < b.id",
    "select id, x from {t} lateral view outer explode(ai) as x",
    "select id, e.k, e.v from (select id, explode(sts) as e from {t})",
    "select distinct part, bo from {t}",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A table in one state: of main, of a branch or of a snapshot."""

    table: str
    text: str = "s"
    branch: str = ""
    as_of: str = ""


def _create(lake: Lake, table: str, rows: str, rest: str) -> str:
    lake.sql(f"create table {table} ({_COLUMNS}) {rest}")
    lake.sql(f"insert into {table} values {rows}")
    return lake.history(table)[0].id


@pytest.fixture(scope="module")
def iceberg(shared_lake: Lake) -> dict[str, Case]:
    """A table whose columns are renamed, widened and added and whose rows are deleted after a snapshot; a branch has more rows."""
    lake, table = shared_lake, "as_they_are.kinds"
    lake.sql("create namespace as_they_are")
    first = _create(
        lake,
        table,
        ", ".join(_ROWS),
        "partitioned by (part, months(da)) tblproperties ('write.delete.mode' = 'merge-on-read')",
    )
    for change in (
        "rename column s to text", "alter column i type bigint", "alter column f type double", "alter column d5 type decimal(9,2)",
        "add column tn timestamp_ntz after ts", "rename column st.b to c", "add column st.b string", "drop column bo", "add column bo boolean after id",
    ):  # fmt: skip
        lake.sql(f"alter table {table} {change}")
    names = "id, bo, i, bi, f, d, d5, d38, text, by, da, ts, ai, ms, st, sts, part, tn"
    later = ", ".join(f"{row[:-1]}, timestamp_ntz'1582-10-10 00:00:00.000001')" for row in _LATER)
    later = later.replace("'b', 'q'", "'c', 'old', 'b', 'q'").replace("'b', 'r'", "'c', null, 'b', 'r'")
    lake.sql(f"insert into {table} ({names}) values {later}")
    lake.sql(f"delete from {table} where id in (5, 6)")
    lake.refs.branches.create("as_they_are")
    row = f"9, {'null, ' * (names.count(',') - 2)}'north', timestamp_ntz'9999-12-31 23:59:59'"
    lake.sql(f"insert into {table} ({names}) values ({row})", branch="as_they_are")
    lake.sql(f"update {table} set d = null where id = 1", branch="as_they_are")
    return {
        "main": Case(table, "text"),
        "branch": Case(table, "text", branch="as_they_are"),
        "snapshot": Case(table, as_of=first),
    }


def _without_null_elements(rows: Sequence[str]) -> str:
    """Rows as Hudi's writer takes them: it fails on a NULL in an array."""
    return ", ".join(
        row.replace("array(1, null, -1)", "array(1, -1)").replace("array(null)", "array()") for row in rows
    )


@pytest.fixture(scope="module")
def hudi(shared_lake: Lake) -> dict[str, Case]:
    """A table with updated and deleted rows and NULL and empty partitions; hudi-rs reads it for DuckDB."""
    lake, table = shared_lake, "as_they_are_hudi.kinds"
    first = _create(
        lake, table, _without_null_elements(_ROWS), "using hudi partitioned by (part) tblproperties (primaryKey = 'id')"
    )
    lake.sql(f"insert into {table} values {_without_null_elements(_LATER)}")
    lake.sql(f"delete from {table} where id = 5")
    return {"main": Case(table), "snapshot": Case(table, as_of=first)}


@pytest.mark.parametrize("state", ["main", "branch", "snapshot"])
def test_an_iceberg_table_has_sparks_answer(shared_lake: Lake, iceberg: dict[str, Case], state: str) -> None:
    assert _compared(shared_lake, iceberg[state]) >= len(_STATEMENTS) - 2


@pytest.mark.parametrize("state", ["main", "snapshot"])
def test_a_hudi_table_has_sparks_answer(shared_lake: Lake, hudi: dict[str, Case], state: str) -> None:
    assert _compared(shared_lake, hudi[state]) >= len(_STATEMENTS) - 2


def _compared(lake: Lake, case: Case) -> int:
    """Compare all statements over a table; returns how many of them DuckDB answers."""
    differences, answered = [], 0
    for statement in _STATEMENTS:
        sql = statement.format(t=case.table, s=case.text)
        got = ask_duckdb(lake, sql, branch=case.branch, as_of=case.as_of)
        expected = answer_of(lake.sql(sql, engine="spark", branch=case.branch, as_of=case.as_of))
        if isinstance(got, NoAnswer):
            print(f"to Spark: {sql}: {got.reason}")  # noqa: T201 - shown by pytest -rP
            continue
        answered += 1
        if detail := difference(expected, got, close=True, ordered=" order by " in sql and " over " not in sql):
            differences.append(f"{sql}\n    {detail}")
    assert not differences, f"{len(differences)} differences\n  " + "\n  ".join(differences)
    return answered
