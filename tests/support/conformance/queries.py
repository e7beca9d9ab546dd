"""Whole statements of the fixed part: joins, subqueries, groups, windows and what else no expression shows."""

from __future__ import annotations

import re


def queries() -> list[str]:
    """The statements, over the tables of edge values."""
    return [line.strip() for text in (_SUBQUERIES, _GROUPS, _OTHERS, _CALLS) for line in text.strip().splitlines()]


def is_ordered(sql: str) -> bool:
    """Whether a statement determines the order of its rows."""
    return re.search(r"order by [^()]*$", sql) is not None


_SUBQUERIES = """
    select id from edge.orders o where not o.customer in (select id from edge.customers c) or o.paid
    select id from edge.orders o where o.customer in (select id from edge.customers c) or o.item in (select item from edge.customers)
    select id from edge.orders o where not (o.customer in (select id from edge.customers c) and o.paid)
    select id, o.customer in (select id from edge.customers c) as e from edge.orders o
    select id, case when o.customer not in (select id from edge.customers c) then 1 else 2 end as e from edge.orders o
    select id from edge.orders o where o.customer not in (select c.id from edge.customers c where c.item = o.item)
    select id, exists (select 1 from edge.customers c where c.id = o.customer) as e from edge.orders o
    select id from edge.orders o where exists (select count(*) from edge.customers c where c.id = o.customer)
    select id from edge.orders o where exists (select c.id from edge.customers c where c.id = o.customer group by c.id having count(*) > 1)
    select id from edge.orders o where exists (select 1 from edge.customers c where c.id = o.customer union select 2)
    select id, (select count(*) from edge.customers c where c.id < o.customer) as n from edge.orders o
    select id, (select name from edge.customers c where c.id = o.customer limit 1) as n from edge.orders o where id = 1
    select id, (select distinct c.name from edge.customers c where c.id = o.customer and c.id = 10) as n from edge.orders o
    select id, (select max(name) from edge.customers c where exists (select 1 from edge.customers d where d.id = o.customer)) as n from edge.orders o
    select id, (select sum(o.price) from edge.customers c) as p from edge.orders o
    select (select max(name) from edge.customers c where exists (select 1 from edge.customers d where d.id = c.id)) from edge.orders o
    select item, (select max(c.id) from edge.customers c where c.item = o.item) as n from edge.orders o group by item
    select item, count(*) as n from edge.orders o group by item having (select count(*) from edge.customers c where c.item = o.item) > 0
    select id from edge.orders o order by (select max(c.id) from edge.customers c where c.item = o.item), id
    select o.id from edge.orders o join edge.customers c on o.customer = c.id and exists (select 1 from edge.customers d where d.id = o.customer)
    select o.id, l.n from edge.orders o left join lateral (select name as n from edge.customers c where c.id = o.customer) l
    select o.id, l.n from edge.orders o, lateral (select o.price + 1 as n) l
"""
_GROUPS = """
    select customer, weight, count(*) from edge.orders group by 1, 2
    select weight as w, count(*) from edge.orders group by w
    select price > 2, count(*) from edge.orders o group by o.price > 2 with rollup having o.price > 2 is not null
    select item, count(*) from edge.orders o group by o.item with rollup having o.item is not null
    select id, least(1.5, (price - (cast('12' as int)))) as l, price * cast('3' as int) as p from edge.orders
    select upper(item) as i, price > 2 as p, count(*) from edge.orders group by upper(item), rollup(price > 2, id % 2)
    select item, paid, id % 2 as r, count(*) from edge.orders group by rollup((item, paid), id % 2)
    select item, paid, count(*), grouping_id() as g from edge.orders group by cube(item, paid)
    select item, paid, count(*), grouping_id() as g from edge.orders group by grouping sets ((item, paid), (item), ())
    select item, paid, count(*) from edge.orders group by grouping sets (rollup(item, paid), (paid))
    select item, paid, count(*) from edge.orders group by rollup(item), cube(paid)
    select item, paid, count(*) from edge.orders group by item, rollup(item, paid)
    select item, paid, count(*) from edge.orders group by item, grouping sets ((paid), ())
    select id, least(cast(price as float), weight) as l, greatest(cast(-0.0D as float), cast(0 as float)) as g from edge.orders
    select item, count(*) from edge.orders group by cube(item) having grouping(item) = 1
    select item, count(*), grouping(item) as g from edge.orders group by cube(item) having g = 1
    select item, count(*) from edge.orders group by cube(item) order by grouping(item), item
    select count(*), max(o.weight), min(o.weight) from edge.orders o
    select o.id, sum(o.price) filter (where o.paid) over (partition by o.item order by o.id) as f from edge.orders o
"""
_OTHERS = """
    (select id, weight from edge.orders order by id limit 5) order by weight desc, id
    (select id, weight from edge.orders) union all (select id, 0.5D from edge.customers) order by weight desc, id
    select array() as a, named_struct('a', array(), 'b', null) as s
    select map() as m
"""
#: Calls that Spark refuses, although it takes such values in many other places.
_CALLS = """
    select greatest(l_i, r_s) from edge.pairs
    select least(l_ts, r_s) from edge.pairs
    select greatest(l_s, r_da) from edge.pairs
    select to_unix_timestamp(l_da, r_tn) from edge.pairs
    select unix_timestamp(l_ts, r_da) from edge.pairs
    select to_date(l_da, r_i) from edge.pairs
    select array_join(sa, 2.5) from edge.nested
    select array_append(ad, 2.5) from edge.nested
    select array_remove(ad, 2.5) from edge.nested
    select regr_count(st, id) from edge.nested
    select regr_count(l_da, r_da) from edge.pairs
"""
