"""Statements set out in lines: how they look, and that nothing but white space changes."""

from __future__ import annotations

import pytest
import sqlglot
from tests.support.conformance.answers import load

from lakehouse.core.errors import QueryRejectedError
from lakehouse.query.sql.layout import set_out

WRITTEN = """with recent as (select id, count(*) as n from shop.orders where at > date '2026-01-01' and state<>'x' group by id)
select r.id,r.n, case when r.n > 5 and r.id > 2 then 'many' else 'few' end as word from recent r left join shop.customers c
on c.id=r.id and c.state = 'active' and c.country in (select country from shop.countries) where r.n between 1 and 9 limit 10;
-- the second
select a, -- first
  b /* inline */ from t where a = 'x
  and  y' -- end"""
SET_OUT = """with recent as (
  select id, count(*) as n
  from shop.orders
  where at > date '2026-01-01' and state <> 'x'
  group by id
)
select r.id, r.n, case when r.n > 5 and r.id > 2 then 'many' else 'few' end as word
from recent r
left join shop.customers c
  on c.id = r.id
  and c.state = 'active'
  and c.country in (select country from shop.countries)
where r.n between 1 and 9
limit 10;

-- the second
select
  a, -- first
  b /* inline */
from t
where a = 'x
  and  y' -- end"""


def test_clauses_conditions_and_subqueries_have_lines_of_their_own_and_comments_stay() -> None:
    assert set_out(WRITTEN) == SET_OUT
    assert set_out(SET_OUT) == SET_OUT


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        ("select left(a,2), m.from, 21L, x::int, -1, extract(day from d) from `a b`.t", 2),
        ("merge into a using b on a.id = b.id when matched then update set a.x = b.x when not matched then insert (id) values (b.id)", 5),
        ("create table shop.t (id bigint, price decimal(10,2)) using iceberg partitioned by (days(at))", 3),
        ("update shop.orders set price=2.80,item='tea' where id=1", 3),
        ("insert into t values (1, 'a'), (2, 'b')", 2),
        ("select /*+ broadcast(t) */ * from t lateral view explode(xs) e as v union all select 1", 5),
        ("show tables in shop", 1),
        ("-- nothing yet", 1),
        ("", 1),
    ],
)  # fmt: skip
def test_words_that_begin_a_clause_are_known_by_their_place(written: str, lines: int) -> None:
    result = set_out(written)
    assert len(result.split("\n")) == lines, result
    assert "".join(result.split()) == "".join(written.split())


def test_statements_that_spark_answered_have_the_same_tokens_when_they_are_set_out() -> None:
    for statement in load().statements[::100]:
        result = set_out(statement.sql)
        assert "".join(result.split()) == "".join(statement.sql.split())
        assert tokens(result) == tokens(statement.sql)


def tokens(sql: str) -> list[str]:
    return [token.text for token in sqlglot.tokenize(sql, "spark")]


@pytest.mark.parametrize("broken", ["select 'a", "select (1", "select /* a"])
def test_a_text_that_does_not_end_is_refused(broken: str) -> None:
    with pytest.raises(QueryRejectedError):
        set_out(broken)
