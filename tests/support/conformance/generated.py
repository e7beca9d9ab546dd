"""Generated statements, for hypothesis: nested expressions over `edge.pairs`, and queries over `edge.orders` and `edge.customers`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[str]], str]

# ---- expressions ------------------------------------------------------------------------------------------------

#: Expressions of each type; a type in braces stands for an expression of it.
_LEAVES = {
    "int": "l_i r_i 0 1 -3 cast(l_si|as|smallint) cast(r_ti|as|tinyint)",
    "bigint": "l_bi r_bi 5L",
    "double": "l_d r_d 0.5D l_f",
    "decimal": "l_d5 r_d5 l_d18 r_d18 1.5 0.0 r_d38",
    "string": "l_s r_s '' '12' 'a' '2020-02-29'",
    "date": "l_da r_da date'2020-02-29'",
    "timestamp": "l_ts r_ts timestamp'2020-02-29|12:30:45'",
    "boolean": "l_bo r_bo true",
}
_RULES = {
    "int": """{int} + {int};{int} - {int};{int} * 3;{int} % {int};length({string});year({date});month({timestamp});day({date});datediff({date}, {date});
        cast({double} as int);cast({string} as int);cast({decimal} as int);cast({boolean} as int);abs({int});instr({string}, '1');dayofweek({date});hour({timestamp})""",
    "bigint": "{bigint} + {int};{int} div {int};cast({int} as bigint);cast({string} as bigint);{bigint} % {int};unix_timestamp({timestamp});floor({double})",
    "double": """{double} + {int};{int} / {int};{double} * {double};{double} - {decimal};cast({decimal} as double);cast({string} as double);round({double}, 2);
        {double} / {double};abs({double});cast({bigint} as double);{double} % 3;sqrt(abs({double}))""",
    "decimal": """{decimal} + {decimal};{decimal} * {decimal};{decimal} - {int};{decimal} / {decimal};{decimal} % {decimal};cast({int} as decimal(10,2));
        cast({string} as decimal(12,3));cast({double} as decimal(20,5));round({decimal}, 1);abs({decimal});- {decimal}""",
    "string": """upper({string});lower({string});concat({string}, {string});substring({string}, 2, 3);substring({string}, {int}, 2);trim({string});cast({int} as string);
        cast({double} as string);cast({decimal} as string);cast({date} as string);cast({timestamp} as string);cast({boolean} as string);replace({string}, '1', 'x');
        {string} || {int};lpad({string}, 4, '*');date_format({timestamp}, 'yyyy-MM-dd')""",
    "date": "date_add({date}, 3);date_sub({date}, {int});last_day({date});cast({timestamp} as date);cast({string} as date);add_months({date}, 1);trunc({date}, 'month');to_date({string})",
    "timestamp": "cast({date} as timestamp);date_trunc('hour', {timestamp});cast({string} as timestamp);{timestamp} + interval 1 day;to_timestamp({string})",
    "boolean": """{int} = {int};{int} < {double};{decimal} >= {int};{string} = {string};{string} < {string};{string} = {int};{date} > {date};{timestamp} <= {timestamp};
        {date} = {timestamp};{date} < {string};{double} = {double};{double} <=> {double};{boolean} and {boolean};{boolean} or {boolean};not {boolean};{int} is null;
        {string} is not null;{int} in ({int}, {int}, 3);{string} like '%1%';{int} between {int} and {bigint};{decimal} <=> {decimal};{string} in ('a', {string})""",
}
_ANY = (
    "coalesce({t}, {t})",
    "nullif({t}, {t})",
    "if({boolean}, {t}, {t})",
    "case when {boolean} then {t} else {t} end",
    "case {int} when 1 then {t} end",
    "greatest({t}, {t})",
    "least({t}, {t})",
)
_DEPTH = 3


@st.composite
def expressions(draw: Draw) -> str:
    """An expression over the columns of `edge.pairs`."""
    return _expression(draw, draw(st.sampled_from(sorted(_RULES))), _DEPTH)


def _expression(draw: Draw, kind: str, depth: int) -> str:
    leaves = [leaf.replace("|", " ") for leaf in _LEAVES[kind].split()]
    if depth == 0 or (depth < _DEPTH and draw(st.sampled_from("no yes".split())) == "no"):
        return draw(st.sampled_from(leaves))
    rules = [rule.strip() for rule in _RULES[kind].split(";")] + [
        rule.replace("{t}", "{" + kind + "}") for rule in _ANY
    ]
    rule = draw(st.sampled_from(rules))
    return re.sub(r"\{(\w+)\}", lambda hole: _within(_expression(draw, hole[1], depth - 1)), rule)


def _within(expression: str) -> str:
    return f"({expression})" if " " in expression and not expression.endswith("'") else expression


# ---- statements -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Statement:
    """A generated statement, and how its answers are compared."""

    sql: str
    ordered: bool = False
    close: bool = False
    zeros: bool = False


_ORDER_COLUMNS = ("o.item", "o.price", "o.weight", "o.day", "o.paid", "o.customer", "o.at")
_DIRECTIONS = (
    "",
    " asc",
    " desc",
    " nulls last",
    " nulls first",
    " asc nulls last",
    " desc nulls first",
    " desc nulls last",
)
_CONDITIONS = (
    "o.price > 2", "o.item = 'tea'", "o.item is null", "o.weight > 1.0", "o.paid", "not o.paid", "o.day >= '2026-01-31'", "o.customer in (10, 20)", "o.item like 't%'",
    "o.price between 0 and 3", "o.weight <> 0.0", "o.item <=> null", "o.at < '2026-02-01'", "O.PRICE is not null", "o.customer = 10 or o.paid",
)  # fmt: skip
_COLUMNS = (
    "o.id",
    "o.ITEM",
    "o.price",
    "o.weight",
    "o.day",
    "o.paid as was_paid",
    "o.customer",
    "upper(o.item) as u",
    "o.price * 2",
    "o.price + o.customer",
    "coalesce(o.item, 'none')",
    "o.day as `the day`",
    "o.weight / 2",
)
_JOINS = ("join", "inner join", "left join", "right join", "full outer join", "left outer join")
_AGGREGATES = (
    "count(*)",
    "count(o.item)",
    "count(distinct o.item)",
    "sum(o.price)",
    "sum(o.customer)",
    "min(o.item)",
    "max(o.weight)",
    "min(o.day)",
    "avg(o.customer)",
    "avg(o.price) as mean",
    "sum(o.weight)",
    "max(o.at)",
    "count(distinct o.paid)",
    "sum(distinct o.price)",
    "count(*) filter (where o.paid)",
    "sum(o.price) filter (where o.item like 't%') as t",
    "min(o.paid)",
    "max_by(o.id, o.id)",
    "sort_array(collect_list(o.id)) as ids",
    "sort_array(collect_set(o.item)) as items",
    "sum(if(o.paid, 1, 0))",
    "count(distinct o.item, o.paid)",
    "max(o.price) - min(o.price) as spread",
    "stddev(o.customer)",
    "bool_and(o.paid)",
    "percentile(o.customer, 0.5)",
)
_KEYS = ("o.item", "o.paid", "o.customer", "o.day", "o.weight", "year(o.day)", "upper(o.item)", "o.price > 2")
_FRAMES = (
    "", " rows between unbounded preceding and current row", " rows between 1 preceding and 1 following", " rows between current row and unbounded following",
    " rows between 2 preceding and 1 preceding", " range between unbounded preceding and current row", " range between unbounded preceding and unbounded following",
)  # fmt: skip


@st.composite
def statements(draw: Draw) -> Statement:
    """A statement over `edge.orders` (o) and `edge.customers` (c)."""
    make = draw(st.sampled_from(_KINDS))  # type: ignore[arg-type]
    made: Statement = make(draw)  # type: ignore[operator]
    return made


def _some(draw: Draw, choices: tuple[str, ...], least: int = 3, most: int = 7) -> str:
    chosen = draw(st.lists(st.sampled_from(choices), min_size=least, max_size=most, unique=True))  # type: ignore[arg-type]
    return ", ".join(chosen)


def _pick(draw: Draw, *choices: str) -> str:
    return draw(st.sampled_from(choices))


def _where(draw: Draw) -> str:
    chosen = draw(st.lists(st.sampled_from(_CONDITIONS), max_size=2))  # type: ignore[arg-type]
    return f" where {_pick(draw, ' and ', ' or ').join(f'({condition})' for condition in chosen)}" if chosen else ""


def _ordered(draw: Draw) -> Statement:
    keys = draw(st.lists(st.sampled_from(_ORDER_COLUMNS), min_size=1, max_size=2, unique=True))  # type: ignore[arg-type]
    keys += [
        _pick(
            draw,
            "o.price * -1",
            "length(o.item)",
            "1",
            "coalesce(o.item, 'm')",
            "o.paid and o.price > 2",
            "abs(o.weight)",
        )
    ]
    order = ", ".join(key + _pick(draw, *_DIRECTIONS) for key in keys)
    limit = _pick(draw, "", "", " limit 3", " limit 0", " limit 5 offset 2")
    selected = _pick(draw, "*", "o.*", _some(draw, _COLUMNS))
    return Statement(f"select {selected} from edge.orders o{_where(draw)} order by {order}, o.id{limit}", ordered=True)


def _joined(draw: Draw) -> Statement:
    tables = f"edge.orders o {_pick(draw, *_JOINS)} edge.customers c on {_pick(draw, 'o.customer = c.id', 'o.item = c.item', 'o.customer <=> c.id', 'o.customer = c.id and c.name is not null', 'o.customer < c.id')}"
    selected = _pick(
        draw, "*", "o.*, c.name", "c.*, o.id", "o.id, c.id, o.item, c.item", f"{_some(draw, _COLUMNS)}, c.name"
    )
    if draw(st.integers(0, 3)) == 0:  # type: ignore[arg-type]
        tables += f" {_pick(draw, *_JOINS)} edge.customers d on {_pick(draw, 'd.id = c.id', 'd.item = o.item', 'd.id = o.customer and d.name <> c.name')}"
    return Statement(f"select {selected} from {tables}{_where(draw)}")


def _joined_by_names(draw: Draw) -> Statement:
    join = _pick(draw, *_JOINS)
    tables = _pick(
        draw,
        f"edge.orders o {join} edge.customers c using (item)",
        f"edge.orders o {join} edge.customers c using (id)",
        f"edge.orders o {join} edge.customers c using (id, item)",
        f"edge.orders o natural {join.replace('inner ', '')} edge.customers c",
        f"(select item, price, id from edge.orders) o {join} (select ITEM, name, id as k from edge.customers) c using (Item)",
        f"edge.orders o {join} edge.customers c using (item) {join} (select item, id as id2 from edge.customers) d using (item)",
    )
    return Statement(
        f"select {_pick(draw, '*', 'item, name, price', 'o.id, name', 'item, o.item, c.item')} from {tables}"
    )


def _half_joined(draw: Draw) -> Statement:
    join = _pick(draw, "left semi join", "left anti join", "semi join", "anti join")
    return Statement(
        f"select {_some(draw, _COLUMNS)} from edge.orders o {join} edge.customers c on o.customer = c.id{_where(draw)}"
    )


#: Columns of both tables that can be combined: of one type, or of types that have one in common.
_COMBINED = {
    "item": ("name", "region"), "id": ("id",), "item, id": ("item, id", "name, id"), "customer": ("id",), "price": ("id", "2.5D", "null"), "day": ("since", "name"),
    "weight": ("id", "1.5", "0.0D"), "paid": ("true", "null"), "at": ("since", "null"), "price, customer": ("id, 1.5", "null, id"), "tags": ("array(name)", "null"),
}  # fmt: skip


def _combined(draw: Draw) -> Statement:
    operators = "union", "union all", "intersect", "except", "minus", "intersect all", "except all", "union distinct"
    left = _pick(draw, *_COMBINED)
    right = _pick(draw, *_COMBINED[left])
    sides = [f"select {left} from edge.orders o{_where(draw)}", f"select {right} from edge.customers"]
    if draw(st.booleans()):  # type: ignore[arg-type]
        sides.append(
            _pick(
                draw,
                sides[1],
                f"select {left} from edge.orders where id < 3",
                f"(select {right} from edge.customers limit 0)",
            )
        )
    sql = sides[0] + "".join(f" {_pick(draw, *operators)} {side}" for side in sides[1:])
    if left == "tags":
        return Statement(sql)
    keys = ", ".join(f"{place}{_pick(draw, *_DIRECTIONS)}" for place in range(1, left.count(",") + 2))
    ending = _pick(draw, "", f" order by {keys}", f" order by {keys} limit 3", f" order by {keys} limit 4 offset 1")
    whole = f"({sql}){ending}" if ending and draw(st.booleans()) else sql + ending  # type: ignore[arg-type]
    return Statement(whole, ordered=bool(ending), zeros=bool(ending))  # 0.0 and -0.0 are equal keys


_SUBQUERY_CONDITIONS = (
    "o.customer in (select id from edge.customers)", "o.customer not in (select id from edge.customers where id is not null)", "o.customer not in (select id from edge.customers)",
    "exists (select 1 from edge.customers c where c.id = o.customer)", "not exists (select 1 from edge.customers c where c.id = o.customer)",
    "o.price > (select avg(price) from edge.orders)", "o.price = (select max(p.price) from edge.orders p where p.item = o.item)",
    "o.item in (select item from edge.customers where region = 'north')", "(select count(*) from edge.customers c where c.id = o.customer) > 0",
    "o.customer in (select c.id from edge.customers c where c.item = o.item)", "o.customer not in (select c.id from edge.customers c where c.item = o.item)",
    "exists (select 1 from edge.customers c where c.id > o.customer and c.region = 'north')", "exists (select count(*) from edge.customers c where c.id = o.customer)",
    "exists (select c.id from edge.customers c where c.id = o.customer group by c.id having count(*) > 1)", "exists (select 1 from edge.customers c where c.id = o.customer limit 1)",
    "(select max(c.id) from edge.customers c where c.item = o.item and c.id <> o.customer) is null", "(select count(*) from edge.customers c where c.item <=> o.item) = 0",
    "o.id in (select max(id) from edge.orders group by item)", "(o.customer, o.item) in (select id, item from edge.customers)",
    "o.customer = (select max(x.id) from (select id, item from edge.customers) x where x.item = o.item)", "o.price >= (select min(price) from edge.orders where item = 'nothing')",
)  # fmt: skip
_SUBQUERY_VALUES = (
    "(select max(name) from edge.customers) as top", "(select min(c.name) from edge.customers c where c.id = o.customer)", "(select count(*) from edge.customers)",
    "(select count(*) from edge.customers c where c.id = o.customer) as n", "o.customer in (select id from edge.customers) as i", "(select count(*) + sum(c.id) from edge.customers c where c.id < o.customer) as n",
    "exists (select 1 from edge.customers c where c.id = o.customer) as e", "(select name from edge.customers c where c.id = 20) as bob", "(select name from edge.customers where id = -1) as nobody",
    "case when exists (select 1 from edge.customers c where c.item = o.item) then 'yes' else o.item end as k", "(select c.name from edge.customers c where c.id = o.customer) as f",
)  # fmt: skip


def _with_subquery(draw: Draw) -> Statement:
    joined = _pick(draw, " and ", " or ", " and not ", " or not ")
    conditions = draw(st.lists(st.sampled_from(_SUBQUERY_CONDITIONS), min_size=1, max_size=2, unique=True))  # type: ignore[arg-type]
    values = draw(st.lists(st.sampled_from(_SUBQUERY_VALUES), max_size=2, unique=True))  # type: ignore[arg-type]
    selected = ", ".join([_some(draw, _COLUMNS), *values])
    return Statement(f"select {selected} from edge.orders o where {joined.join(conditions)}")


_RANKINGS = (
    "row_number()", "rank()", "dense_rank()", "ntile(3)", "percent_rank()", "cume_dist()", "lag(o.item)", "lead(o.price, 2)", "lag(o.id, 1, -1)", "lead(o.weight)",
    "lag(o.item) ignore nulls", "nth_value(o.item, 2)", "nth_value(o.item, 2) ignore nulls",
)  # fmt: skip
_FRAMED = (
    "sum(o.price)", "count(*)", "min(o.item)", "max(o.day)", "first_value(o.id)", "last_value(o.id)", "avg(o.customer)", "sum(o.customer)", "max(o.weight)", "avg(o.price)", "count(o.item)",
    "first_value(o.item) ignore nulls", "last_value(o.item) ignore nulls", "first(o.item, true)", "sum(o.price) filter (where o.paid)", "count_if(o.paid)", "bool_or(o.paid)", "min(o.at)",
    "collect_list(o.id)", "max_by(o.item, o.id)", "stddev(o.customer)", "count(distinct o.item)",
)  # fmt: skip


def _windowed(draw: Draw) -> Statement:
    order = f"order by {_pick(draw, *_ORDER_COLUMNS)}{_pick(draw, *_DIRECTIONS)}, o.id"
    partition = _pick(
        draw,
        "",
        "partition by o.item ",
        "partition by o.paid, o.item ",
        "partition by o.weight ",
        "partition by year(o.day) ",
    )
    function, framed = _pick(draw, *_RANKINGS), _pick(draw, *_FRAMED)
    frame = _pick(draw, *_FRAMES)
    if draw(st.booleans()):  # type: ignore[arg-type]
        windows = f"select o.id, {function} over w as n, {framed} over ({partition}{order}{frame}) as f from edge.orders o{_where(draw)} window w as ({partition}{order})"
        return Statement(windows, close=True)
    among = _pick(draw, order, f"order by {_pick(draw, *_ORDER_COLUMNS)}{_pick(draw, *_DIRECTIONS)}")
    # Rows that the order leaves equal have one value with a frame of RANGE only.
    frame = (
        frame
        if among == order
        else _pick(
            draw,
            "",
            " range between unbounded preceding and current row",
            " range between current row and unbounded following",
        )
    )
    framed = (
        framed
        if among == order
        else _pick(draw, "sum(o.price)", "count(*)", "min(o.item)", "max(o.weight)", "avg(o.customer)")
    )
    sql = f"select o.id, {function} over ({partition}{order}), {framed} over ({partition}{among}{frame}) as f from edge.orders o{_where(draw)}"
    return Statement(sql, close=True)


def _grouped(draw: Draw) -> Statement:
    keys = draw(st.lists(st.sampled_from(_KEYS), min_size=1, max_size=2, unique=True))  # type: ignore[arg-type]
    listed = ", ".join(keys)
    by = _pick(
        draw,
        listed,
        listed,
        f"rollup({listed})",
        f"cube({listed})",
        f"grouping sets (({listed}), ({keys[0]}), ())",
        f"{listed} with rollup",
        f"{listed} with cube",
        f"{keys[0]}, rollup({keys[-1]}, o.id % 2)",
        ", ".join(str(place + 1) for place in range(len(keys))),
        "all",
    )
    having = _pick(
        draw, "", "", " having count(*) > 1", " having sum(o.price) > 2", f" having {keys[0]} is not null",
        " having count(distinct o.item) > 1 or max(o.paid)", " having max(o.customer) in (select id from edge.customers)",
    )  # fmt: skip
    is_set = by not in (listed, "all") and not by[0].isdigit()
    grouping = _pick(draw, "", ", grouping_id()", f", grouping({keys[0]})") if is_set else ""
    if is_set and draw(st.integers(0, 9)) == 0:  # type: ignore[arg-type]
        having = f" having grouping({keys[0]}) = 1"
    return Statement(
        f"select {listed}, {_some(draw, _AGGREGATES)}{grouping} from edge.orders o{_where(draw)} group by {by}{having}",
        close=True,
    )


def _aggregated(draw: Draw) -> Statement:
    return Statement(f"select {_some(draw, _AGGREGATES, 4, 10)} from edge.orders o{_where(draw)}", close=True)


def _exploded(draw: Draw) -> Statement:
    view = _pick(
        draw,
        "lateral view explode(o.tags) t as tag",
        "lateral view outer explode(o.tags) t as tag",
        "lateral view posexplode(o.tags) t as pos, tag",
        "lateral view outer posexplode(o.tags) t as pos, tag",
        "lateral view explode(split(o.item, '')) t as tag",
        "lateral view outer inline(array(struct(o.id, o.item), struct(0, null))) t as n, tag",
        "lateral view explode(o.tags) t as tag lateral view explode(array(1, 2)) u as n",
        "lateral view outer explode(o.tags) t as tag join edge.customers c on c.item = tag",
        "lateral view stack(2, o.id, 'a', 0, 'b') t as n, tag",
        ", lateral (select max(c.name) as tag from edge.customers c where c.id = o.customer)",
        "left join lateral (select c.name as tag from edge.customers c where c.item = o.item)",
        "join lateral explode(o.tags) as t(tag)",
    )
    return Statement(f"select {_some(draw, _COLUMNS)}, tag from edge.orders o {view}{_where(draw)}")


def _pivoted(draw: Draw) -> Statement:
    aggregate = _pick(draw, "sum(price)", "count(price)", "max(customer) as m", "sum(price) as s, count(1) as n")
    values = _pick(draw, "'tea', 'Mate'", "'tea' as tea, 'none' as none")
    return Statement(
        f"select * from (select item, paid, price, customer from edge.orders) pivot ({aggregate} for item in ({values}))"
    )


def _named(draw: Draw) -> Statement:
    inner = f"select {_pick(draw, 'id, item, price', 'ID, Item, PRICE', 'id, item, price * 2 as price')} from edge.orders o{_where(draw)}"
    outer = _pick(
        draw,
        "select * from x",
        "select X.Id, x.`price` from x",
        "select a.id, b.id from x a join x b on a.item = b.item",
        "select item, count(*) from x group by item",
        "select price as p, p + 1 as q from x",
        "select distinct item from x",
        "select y.* from (select x.*, row_number() over (order by id desc) as N from x) as Y where n <= 3",
        "select k, max(n) from (select upper(item), id from x) as y(k, n) group by k",
        "select * from x a join x b using (id) join x c using (ID)",
        "select a.*, b.price from x a left join x b on a.id = b.id + 1 and a.item = b.item",
        "select A.ID from x a left anti join x b on a.id < b.id",
        "select * from (select * from x) union all select * from x",
        "select item, sum(price) as s from x group by item having s > 1 order by s desc, item",
        "select id as item, item as id from x order by id, item",
        "select x.item as i, upper(i) as u, u || '!' as w from x",
        "select count(*), count(distinct item) from x where id in (select id from x where price > 0)",
        "select * from x a cross join (select max(price) as m from x) where price = m",
        "select * from (with z as (select id, price + 1 as more from x) select * from z)",
    )
    return Statement(f"with x as ({inner}) {outer}")


def _listed(draw: Draw) -> Statement:
    return Statement(
        _pick(
            draw,
            "select * from values (1, 'a'), (2, null), (null, 'b') as v(n, s)", "values (1, 2.5), (2, 3)", "select * from (values (1), (2)) order by 1 desc",
            "select n + 1 as m, m * 2 from values (1), (2.5) as v(n)", "select distinct paid, item from edge.orders", "select distinct o.customer from edge.orders o",
            "select count(*) from edge.orders cross join edge.customers", "select o.id from edge.orders o, edge.customers c where o.customer = c.id",
            "select item as a, a || '!' as b from edge.orders", "select *, price > 2 from edge.orders", "select * except (tags, at) from edge.orders",
            "select o.item i, count(*) n from edge.orders o group by i order by n desc, i nulls last", "select item, count(*) from edge.orders group by 1",
            "select max(price) - min(price) from edge.orders where item = 'nothing'", "select case when price > 2 then 'dear' else item end k, id from edge.orders order by k, id",
            "select item, sum(price) over () from edge.orders", "select `item` from edge.`orders` where `price` > 1", "select any_value(1), 1 + 1, 'x'",
        )
    )  # fmt: skip


_KINDS = (
    _ordered,
    _joined,
    _joined_by_names,
    _half_joined,
    _combined,
    _with_subquery,
    _windowed,
    _grouped,
    _aggregated,
    _exploded,
    _pivoted,
    _named,
    _listed,
)
