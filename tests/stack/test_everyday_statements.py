"""Everyday statements that the guard allows: DuckDB, Spark and Trino return the same rows, and change a table in the same way."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from tests.support.repetitions import repetitions
from tests.support.servers.stack import Stack
from tests.support.tpc import for_trino, texts, with_namespace, written_to

from lakehouse.engines.duckdb.connection import load_extension
from lakehouse.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.stretch("sql")]

ROWS = """
    (1, 'tea', 1.50, date '2026-01-01'), (2, 'jam', 2.25, date '2026-01-02'), (3, null, null, date '2026-02-01'),
    (4, 'ham', 10.00, date '2026-02-28'), (5, 'tea', 0.75, date '2026-03-15')
"""
#: Each means the same in all three dialects. Rows are compared without their order.
READS = """
select 1
select * from day.t
select id from day.t where name = 'tea'
select id from day.t where name is null
select id, name from day.t where id between 2 and 4
select id from day.t where name in ('tea', 'jam')
select id from day.t where name like 't%'
select id from day.t where not (id > 2)
select count(*), count(name), sum(price), min(price), max(price) from day.t
select name, count(*) as n from day.t group by name having count(*) > 1
select name, sum(price) as total from day.t where price > 1 group by name
select distinct name from day.t
select count(distinct name) from day.t
select t.id, u.city from day.t t join day.u u on t.id = u.id
select t.id, u.city from day.t t left join day.u u on t.id = u.id
select t.id, u.id from day.t t full join day.u u on t.id = u.id
select t.id, u.id from day.t t cross join day.u u
select id from day.t where id in (select id from day.u)
select id from day.t t where exists (select 1 from day.u u where u.id = t.id)
select id, (select max(id) from day.u) from day.t
select id from day.t union all select id from day.u
select id from day.t union select id from day.u
select id from day.t intersect select id from day.u
select id from day.t except select id from day.u
with a as (select id, price from day.t), b as (select max(price) as most from a) select a.id from a, b where price = most
select case when price > 2 then 'dear' when price is null then 'unknown' else 'cheap' end, id from day.t
select coalesce(name, 'none'), nullif(name, 'tea') from day.t
select upper(name), lower(name), length(name), substring(name, 1, 2), trim('  x  ') from day.t
select concat(name, '!'), replace(name, 'a', 'o') from day.t
select abs(-2), floor(2.7), ceil(2.1), 7 % 3
select cast(id as varchar(10)), cast(price as double), cast('12' as int) from day.t
select extract(year from d), extract(month from d) from day.t
select year(d), month(d), day(d) from day.t
select id from day.t where d >= date '2026-02-01' and d < date '2026-03-01'
select date_trunc('month', d) = cast('2026-02-01' as timestamp), id from day.t
select id, row_number() over (order by id) from day.t
select id, rank() over (partition by name order by price desc) from day.t
select id, lag(id) over (order by id), lead(id) over (order by id) from day.t
select id, sum(price) over (order by id rows between unbounded preceding and current row) from day.t
select id, first_value(id) over (partition by name order by id) from day.t
select id from day.t order by price desc nulls last limit 2
select name, id, count(*) from day.t group by grouping sets ((name), (id))
select name, id, count(*) from day.t group by rollup (name, id)
select greatest(1, 2, 3), least(1, 2, 3)
select sum(case when name = 'tea' then 1 else 0 end) from day.t
select x.n from (select name as n, count(*) as c from day.t group by name) x where x.c > 1
select * from (values (1, 'a'), (2, 'b')) as v(id, name)
""".strip().splitlines()
#: Run one after the other in Spark and in Trino, each on a table of its own; the rows after each are compared.
WRITES = """
insert into {0} values (6, 'rum', 3.00, date '2026-04-01')
insert into {0} (name, id, d, price) values ('gin', 7, date '2026-05-01', 4.00)
insert into {0} select id + 10, name, price, d from {0} where id < 3
update {0} set price = price * 2 where name = 'tea'
update {0} set name = 'none', price = 0 where name is null
delete from {0} where id = 4
delete from {0} where d < date '2026-01-02' and id < 10
merge into {0} t using (select 2 as id) s on t.id = s.id when matched then update set name = 'jelly'
merge into {0} t using (select 2 as id) s on t.id = s.id when matched then delete
alter table {0} add column origin varchar(20)
update {0} set origin = 'here' where id > 5
alter table {0} rename column origin to place
alter table {0} drop column place
""".strip().splitlines()


@pytest.fixture(scope="module")
def lake(stack: Stack) -> Iterator[Lake]:
    stack.need("storage", "postgres", "rest", "trino")
    lake = stack.lake("sql")
    lake.sql("create schema day", engine="trino")
    lake.sql("create table day.t (id int, name varchar, price decimal(10, 2), d date)", engine="trino")
    lake.sql(f"insert into day.t values {ROWS}", engine="trino")
    lake.sql(
        "create table day.u as select * from (values (1, 'Rome'), (4, 'Oslo'), (9, 'Bonn')) v(id, city)", engine="trino"
    )
    yield lake


def values(rows: list[tuple[Any, ...]]) -> list[tuple[str, ...]]:
    """Rows as text, sorted: engines have other types for the same number."""
    return sorted(tuple(_value(cell) for cell in row) for row in rows)


def _value(value: object) -> str:
    return (
        f"{float(value):.4f}"
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        else str(value)
    )


def same_numbers(answer: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> bool:
    """Compare rows without their order; a decimal to its own scale, because Trino's average of decimals keeps theirs."""
    if len(answer) != len(expected):
        return False
    pairs = zip(sorted(answer, key=_row_key), sorted(expected, key=_row_key), strict=True)
    return all(_same(*cells) for rows in pairs for cells in zip(*rows, strict=True))


def _row_key(row: tuple[Any, ...]) -> list[str]:
    return [f"{float(cell):.1f}" if isinstance(cell, float | Decimal) else str(cell) for cell in row]


def _same(cell: object, expected: object) -> bool:
    if isinstance(cell, Decimal) and isinstance(expected, int | float | Decimal):
        unit = 10.0 ** int(cell.as_tuple().exponent)
        return abs(float(cell) - float(expected)) <= unit / 2 + 1e-4
    return _value(cell) == _value(expected)


def test_there_are_many() -> None:
    assert len(READS) + len(WRITES) >= 60


@pytest.mark.parametrize("engine", ["spark", "trino"])
def test_reads_return_what_duckdb_returns(lake: Lake, engine: str) -> None:
    for sql in READS:
        assert values(lake.sql(sql, engine=engine).rows()) == values(lake.sql(sql, engine="duckdb").rows()), sql


def test_writes_change_a_table_in_the_same_way(lake: Lake) -> None:
    lake.sql("create table day.by_trino as select * from day.t", engine="trino")
    lake.sql("create table day.by_spark as select * from day.t", engine="spark")
    for sql in WRITES:
        for engine in ("spark", "trino"):
            lake.sql(sql.format(f"day.by_{engine}"), engine=engine)
        answers = [
            values(lake.sql(f"select * from day.by_{engine}", engine="duckdb").rows()) for engine in ("spark", "trino")
        ]
        assert answers[0] == answers[1], sql
        assert answers[0]


@pytest.mark.faults
@pytest.mark.parametrize(
    ("suite", "generate", "smoke"),
    [("tpch", "dbgen(sf = 0.001)", slice(2, None, 8)), ("tpcds", "dsdgen(sf = 0.01)", slice(2, None, 40))],
)
def test_the_texts_of_tpc_answer_as_duckdb_alone(lake: Lake, suite: str, generate: str, smoke: slice) -> None:
    """Some of its texts at a small scale; with TEST_REPEAT=full all of them."""
    with duckdb.connect() as plain:
        load_extension(plain, suite)
        plain.execute(f"CALL {generate}")
        tables = [name for (name,) in plain.execute("show tables").fetchall()]
        written_to(lake, plain, suite)
        for text in texts(plain, suite)[repetitions(smoke=smoke, full=slice(None))]:
            expected = plain.execute(text).fetchall()
            for engine in ("duckdb", "spark", "trino"):
                written = for_trino(text) if engine == "trino" else text
                dialect = "trino" if engine == "trino" else "spark"
                answer = lake.sql(with_namespace(written, tables, suite, dialect), engine=engine).rows()
                assert same_numbers(answer, expected), f"{engine}: {text}\n{answer}\n{expected}"
