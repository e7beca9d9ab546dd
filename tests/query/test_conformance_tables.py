"""Both engines give the same answer over tables as they are: every column type, changed columns, partitions, deletes, branches, snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

import pyarrow
import pytest
from tests.support.conformance.canonical import Answer, answer_of, difference
from tests.support.conformance.check import NoAnswer, ask_duckdb
from tests.support.shop_lake import pyiceberg_on

from lakehouse.core.errors import EngineError
from lakehouse.core.tables import split_arguments
from lakehouse.lake import Lake
from lakehouse.storage.local import LocalHome

if TYPE_CHECKING:
    from pyiceberg.schema import Schema

pytestmark = [pytest.mark.spark, pytest.mark.slow]

#: The columns of both formats.
_COLUMNS = (
    "id int, bo boolean, i int, bi bigint, f float, d double, d5 decimal(5,2), d38 decimal(38,10), s string, by binary, da date, ts timestamp, tn timestamp_ntz,"
    " ai array<int>, ms map<string,int>, st struct<a:int,b:string>, sts array<struct<k:string,v:decimal(9,2)>>, part string"
)
_ROWS = (
    "(1, true, 2147483647, 9223372036854775807, float('inf'), double('NaN'), 999.99, 999999999999999999999999999.9999999999, 'ß😀', X'00ff7f', date'0001-01-01',"
    " timestamp'0001-01-01 00:00:00', timestamp_ntz'0001-01-01 00:00:00', array(1, null, -1), map('a', 1, 'b', null), named_struct('a', 1, 'b', 'x'), array(named_struct('k', 'a', 'v', 1.25)), 'north')",
    "(2, false, -2147483648, -9223372036854775808, -0.0F, -0.0D, -999.99, -0.0000000001, '', X'', date'1582-10-04', timestamp'1582-10-04 23:59:59.999999', timestamp_ntz'1582-10-04 23:59:59.999999',"
    " array(), map(), named_struct('a', null, 'b', ''), array(), null)",
    "(3, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, 'it''s')",
    "(4, true, 0, 0, 0.1F, 0.0D, 0.00, 0.0000000000, ' a ', X'61', date'1582-10-10', timestamp'1582-10-10 12:00:00', timestamp_ntz'1582-10-10 00:00:00.000001', array(5), map('', 0),"
    " named_struct('a', 0, 'b', null), array(null), null)",
    "(5, false, 7, 7, 1.5F, 1e300, 1.50, 1.5, 'tea', X'c328', date'1969-12-31', timestamp'1969-12-31 23:59:59.999999', timestamp_ntz'1969-12-31 23:59:59.5', array(2, 1), map('k', 2),"
    " named_struct('a', 5, 'b', 'y'), array(named_struct('k', null, 'v', null), named_struct('k', 'z', 'v', -0.01)), 'north')",
    "(6, true, 8, 8, float('NaN'), double('-inf'), 2.50, 2.5, 'Tea', X'74', date'9999-12-31', timestamp'9999-12-31 23:59:59.999999', timestamp_ntz'9999-12-31 23:59:59.999999', array(3), map('k', 3),"
    " named_struct('a', 6, 'b', 'z'), null, 'ß')",
)
_LATER = (
    "(7, null, 9, 9, 0.0F, 0.0D, 0.01, 0.01, 'mate', X'ff', date'2020-02-29', timestamp'2020-02-29 12:30:45.123456', timestamp_ntz'2026-03-29 02:30:00', array(null), map('x', 1),"
    " named_struct('a', 7, 'b', 'q'), array(named_struct('k', 'b', 'v', 9999999.99)), null)",
    "(8, false, 10, 10, -2.5F, 2.5D, -0.01, 3.25, 'tea', X'00', date'1582-10-15', timestamp'2026-10-25 01:30:00', null, array(8, 8), map('y', 2),"
    " named_struct('a', 8, 'b', 'r'), array(), '')",
)

#: Over every column type; `{s}` is the column of text. Spark is asked for all of them at once.
_SELECTED = (
    "bo is null, i + 1L, bi div 2, f + d, d / 3, d5 * 2, d38 + 1, length({s}), hex(by), trunc(da, 'year'), hour(ts), ai[0], ms['k'], st.a, sts[0].v",
    "cast(i as string), cast(d5 as double), cast(d38 as string), cast(da as timestamp), cast(ts as date), cast(tn as date), cast(tn as string)",
    "year(da), month(ts), dayofweek(da), date_format(ts, 'yyyy-MM-dd'), datediff(da, date'1582-10-10'), last_day(da), unix_timestamp(ts), hour(tn), minute(tn)",
    "size(ai), size(ms), map_keys(ms), st.b, sts.k, array_contains(ai, 1), length(by), part is null, coalesce(part, '?')",
)  # fmt: skip
_WITH_LITERAL = "tn >= timestamp_ntz'1582-10-10 00:00:00.000001'"
#: Each of a query of its own, by which files and partitions are skipped; Spark is asked for their union.
_FILTERS = (
    _WITH_LITERAL,
    "da < date'1582-10-10'",
    "ts <= timestamp'1582-10-10 12:00:00' or ts > '9999-01-01'",
    "tn < '1582-10-10 00:00:00' or tn > '9999-01-01'",
    "isnan(d) or f < 1",
    "d5 > 0 and d38 < 10",
    "part is null",
    "part in ('north', 'ß') and i > 0",
    "part <> 'north'",
    "part <=> null or part = ''",
    "by = X'61' or by > X'c3'",
    "st.a = 1 or st.b is null",
)
#: `{t}` is the table.
_STATEMENTS = (
    "select * from {t}",
    "select part, count(*), count({s}), min(da), max(da), min(ts), max(ts), min(tn), min(i), max(bi), sum(d5), avg(d5), min({s}), max(f), count(distinct bo) from {t} group by part",
    "select count(*), min(f), max(f), min(d), max(d), min(da), max(ts), max(tn), min(d38), max({s}), max(by), count(part) from {t}",
    "select id, row_number() over (partition by part order by da desc nulls last, id), lag({s}) over (order by id) from {t}",
    "select id, f, d from {t} order by f desc, d, id",
    "select id, part, {s} from {t} order by part nulls last, {s} desc, id limit 5",
    "select a.id, b.id from {t} a join {t} b on a.part <=> b.part and a.id < b.id",
    "select id, x from {t} lateral view outer explode(ai) as x",
    "select id, e.k, e.v from (select id, explode(sts) as e from {t})",
    "select distinct part, bo from {t}",
)  # fmt: skip


_COUNT = len(_SELECTED) + len(_FILTERS) + len(_STATEMENTS)


@dataclass(frozen=True)
class Case:
    """A table in one state: of main, of a branch or of a snapshot, and what is asked of it."""

    table: str
    text: str = "s"
    branch: str = ""
    as_of: str = ""
    selected: tuple[str, ...] = _SELECTED
    filters: tuple[str, ...] = _FILTERS
    statements: tuple[str, ...] = _STATEMENTS


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
        "add column later timestamp_ntz after ts", "rename column st.b to c", "add column st.b string", "drop column bo", "add column bo boolean after id",
    ):  # fmt: skip
        lake.sql(f"alter table {table} {change}")
    names = "id, bo, i, bi, f, d, d5, d38, text, by, da, ts, tn, ai, ms, st, sts, part, later"
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
    return {"main": Case(table), "snapshot": Case(table, as_of=first, filters=_FILTERS[1:])}


@pytest.mark.parametrize("state", ["main", "branch", "snapshot"])
def test_an_iceberg_table_has_sparks_answer(shared_lake: Lake, iceberg: dict[str, Case], state: str) -> None:
    assert _compared(shared_lake, iceberg[state]) >= _COUNT - 2


@pytest.mark.parametrize("state", ["main", "snapshot"])
def test_a_hudi_table_has_sparks_answer(shared_lake: Lake, hudi: dict[str, Case], state: str) -> None:
    assert _compared(shared_lake, hudi[state]) >= _COUNT - 2


def test_duckdb_takes_a_literal_that_hudis_parser_of_time_travel_does_not(
    shared_lake: Lake, hudi: dict[str, Case]
) -> None:
    table, first = hudi["snapshot"].table, hudi["snapshot"].as_of
    sql = f"select id from {table} where {_WITH_LITERAL} order by id"
    with pytest.raises(EngineError, match="Literals of type 'TIMESTAMP_NTZ'"):
        shared_lake.sql(sql, engine="spark", as_of=first)
    assert shared_lake.sql(sql, as_of=first).rows() == [(4,), (5,), (6,)]


def test_uuids_and_fixed_bytes_of_iceberg_have_sparks_answer(shared_lake: Lake) -> None:
    """Spark reads a UUID as text and fixed bytes as binary; only other programs create such columns."""
    table = _created_by_pyiceberg(shared_lake)
    case = Case(
        table,
        selected=("u, x, m, e", "length(u), upper(u), concat(u, '!'), hex(x), length(x), m[0], e.u"),
        filters=(f"u = '{UUID(int=5)}'", "u > '0' and u < '1'", "u like '7fff%'", "u is null", "x >= X'00ff7f61'", "e.u = u"),
        statements=("select max(u), min(u), min(x), count(distinct u) from {t}", "select id, u from {t} order by u desc, id", "select u, count(*) from {t} group by u"),
    )  # fmt: skip
    assert _compared(shared_lake, case) == len(case.selected) + len(case.filters) + len(case.statements)


def test_a_time_of_day_is_in_no_answer(shared_lake: Lake) -> None:
    """Spark reads no table with such a column, so DuckDB answers only without it."""
    from pyiceberg.schema import Schema
    from pyiceberg.types import IntegerType, NestedField, TimeType

    schema = Schema(NestedField(1, "id", IntegerType()), NestedField(2, "opens", TimeType()))
    rows = {"id": pyarrow.array([1, 2], pyarrow.int32()), "opens": pyarrow.array([1, None], pyarrow.time64("us"))}
    _append(shared_lake, "as_they_are_others.timed", schema, pyarrow.table(rows))
    refused = ask_duckdb(shared_lake, "select opens from as_they_are_others.timed")
    assert isinstance(refused, NoAnswer)
    assert "the type of the column opens" in refused.reason
    with pytest.raises(EngineError, match="Spark does not support time fields"):
        shared_lake.sql("select * from as_they_are_others.timed")
    assert shared_lake.sql("select id from as_they_are_others.timed order by id").rows() == [(1,), (2,)]


def _created_by_pyiceberg(lake: Lake) -> str:
    from pyiceberg.schema import Schema
    from pyiceberg.types import FixedType, IntegerType, ListType, NestedField, StructType, UUIDType

    schema = Schema(
        NestedField(1, "id", IntegerType()),
        NestedField(2, "u", UUIDType()),
        NestedField(3, "x", FixedType(4)),
        NestedField(4, "m", ListType(5, UUIDType(), element_required=False)),
        NestedField(6, "e", StructType(NestedField(7, "u", UUIDType()))),
    )
    ids = pyarrow.array([UUID(int=5).bytes, None, UUID(int=2**127 - 1).bytes, UUID(int=2**100).bytes], pyarrow.uuid())
    rows = {
        "id": pyarrow.array(range(4), pyarrow.int32()),
        "u": ids,
        "x": pyarrow.array([b"\x00\xff\x7fa", None, b"\xff" * 4, bytes(4)], pyarrow.binary(4)),
        "m": pyarrow.ListArray.from_arrays(pyarrow.array([0, 2, 2, 3, 4], pyarrow.int32()), ids),
        "e": pyarrow.StructArray.from_arrays([ids], ["u"]),
    }
    return _append(lake, "as_they_are_others.kinds", schema, pyarrow.table(rows))


def _append(lake: Lake, table: str, schema: Schema, rows: pyarrow.Table) -> str:
    catalog = pyiceberg_on(LocalHome(lake.folder))
    catalog.create_namespace_if_not_exists(table.partition(".")[0])
    catalog.create_table(table, schema).append(rows)
    catalog.close()
    return table


def _compared(lake: Lake, case: Case) -> int:
    """Compare all statements over a table; returns how many of them DuckDB answers."""
    differences, answered = [], 0
    for sql, expected in _sparks_answers(lake, case):
        got = ask_duckdb(lake, sql, branch=case.branch, as_of=case.as_of)
        if isinstance(got, NoAnswer):
            print(f"to Spark: {sql}: {got.reason}")  # noqa: T201 - shown by pytest -rP
            continue
        answered += 1
        if detail := difference(expected, got, close=True, ordered=" order by " in sql and " over " not in sql):
            differences.append(f"{sql}\n    {detail}")
    assert not differences, f"{len(differences)} differences\n  " + "\n  ".join(differences)
    return answered


def _sparks_answers(lake: Lake, case: Case) -> Iterator[tuple[str, Answer]]:
    """Each statement with Spark's answer. What one query of Spark can answer, one does: starting it is the dear part."""

    def ask(sql: str) -> Answer:
        return answer_of(lake.sql(sql, engine="spark", branch=case.branch, as_of=case.as_of))

    table = case.table
    selected = [text.format(s=case.text) for text in case.selected]
    whole, place = ask(f"select id, {', '.join(selected)} from {table}"), 1
    for text in selected:
        places = [0, *range(place, place + len(split_arguments(text)))]
        place += len(places) - 1
        rows = [[row[at] for at in places] for row in whole.rows]
        yield f"select id, {text} from {table}", Answer([whole.columns[at] for at in places], rows)
    assert place == len(whole.columns)
    branches = (f"select {at} as filter, id from {table} where {text}" for at, text in enumerate(case.filters))
    union = ask(" union all ".join(branches))
    for at, text in enumerate(case.filters):
        yield f"select id from {table} where {text}", Answer(union.columns[1:], [[id] for own, id in union.rows if own == at])  # fmt: skip
    for statement in case.statements:
        sql = statement.format(t=table, s=case.text)
        yield sql, ask(sql)
