"""Generated statements: our own parser reads the same tables in them as sqlglot."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot.dialects.spark import Spark
from tests.support.repetitions import repetitions

from lakehouse.core.errors import LakeError, QueryRejectedError
from lakehouse.core.statement import Statement
from lakehouse.query.sql.ast import ParsedQuery
from lakehouse.query.sql.parsed import parse_with_sqlglot
from lakehouse.query.sql.parser import parse

NAMES = st.sampled_from(["a", "b", "id", "Item", "day", "x1", "_y", "count", "first", "key", "row", "value", "rank"])
TABLES = st.builds("{}.{}".format, st.sampled_from(["shop", "S2", "default", "temp"]), NAMES)
LITERALS = st.sampled_from(["1", "2.50", "'tea'", "'from s.t'", "null", "true", "99999999999999999999"])
COLUMNS = NAMES | st.builds("{}.{}".format, NAMES, NAMES) | st.builds("{}.{}".format, TABLES, NAMES)
COMPARISONS = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "!=", "<=>", "like", "and", "or", "+", "-", "*", "/"])
ALIASES = st.just("") | st.builds(" as {}".format, NAMES) | st.builds(" {}".format, NAMES)
JOINS = st.sampled_from(["join", "left join", "full outer join", "cross join", "left semi join", ",", "natural join"])
#: What a change of a statement inserts: words and signs of Spark and DuckDB, some of which begin or end something.
WORDS = st.sampled_from(
    "select from join on where ( ) , . * - -- ; /* */ ` ' \" [ ] { } :p ? || :: -> => as of version timestamp table values"
    " lateral view pivot sample using distinct is not in exists any all with recursive qualify window over except exclude"
    " replace rename union intersect limit offset order by group having case when then else end cast interval date x'ff'"
    " shop.a shop.a.b lake.shop.a read_csv( range( unnest( positional asof semi anti left right only summarize describe".split()
)


def _many(parts: st.SearchStrategy[str], separator: str) -> st.SearchStrategy[str]:
    return st.lists(parts, min_size=1, max_size=3).map(separator.join)


def _expressions(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return (
        st.builds("{} {} {}".format, inner, COMPARISONS, inner)
        | st.builds("{}({})".format, st.sampled_from(["count", "sum", "lower", "concat", "date"]), inner)
        | st.builds("({})".format, inner)
        | st.builds("{} in ({})".format, COLUMNS, _many(inner, ", "))
        | st.builds("{} between {} and {}".format, COLUMNS, inner, inner)
        | st.builds("{} is {}null".format, COLUMNS, st.sampled_from(["", "not "]))
        | st.builds("case when {} then {} else {} end".format, inner, inner, inner)
        | st.builds("{} is distinct from {}".format, inner, inner)
        | st.builds("(select {} from {})".format, inner, TABLES)
        | st.builds("{} in (select {} from {}{})".format, COLUMNS, inner, TABLES, ALIASES)
    )


EXPRESSIONS = st.recursive(COLUMNS | LITERALS | st.just("*"), _expressions, max_leaves=5)


def _queries(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    source = st.builds("{}{}".format, TABLES | st.builds("({})".format, inner), ALIASES)
    joined = st.builds(
        "{}{}".format,
        source,
        st.just("")
        | st.builds(" {} {} on {}".format, JOINS, source, EXPRESSIONS)
        | st.builds(" {} {}".format, JOINS, source),
    )
    tail = st.lists(
        st.builds(" where {}".format, EXPRESSIONS)
        | st.builds(" group by {}".format, _many(COLUMNS, ", "))
        | st.builds(" order by {} desc".format, COLUMNS)
        | st.just(" limit 3"),
        max_size=3,
    ).map("".join)
    items = _many(st.builds("{}{}".format, EXPRESSIONS, ALIASES), ", ")
    query = st.builds("select {}{} from {}{}".format, st.sampled_from(["", "distinct "]), items, joined, tail)
    return query | st.builds("{} {} {}".format, query, st.sampled_from(["union", "union all", "except"]), inner)


QUERIES = st.recursive(st.builds("select {} from {}".format, EXPRESSIONS, TABLES), _queries, max_leaves=3)


@st.composite
def changed(draw: st.DrawFn) -> str:
    """A query of which some words are replaced, removed or doubled."""
    words = draw(QUERIES).split(" ")
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(words)))
        words[place : place + draw(st.integers(0, 1))] = draw(st.lists(WORDS, max_size=2))
    return " ".join(words)


def uses(statement: Statement) -> list[object]:
    return sorted((use.start, use.end, use.name, use.as_of, use.metadata_table) for use in statement.uses)


@pytest.mark.faults
@settings(max_examples=repetitions(smoke=400, full=10_000), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=changed())
def test_our_own_parser_reads_the_same_tables_as_sqlglot(text: str) -> None:
    try:
        own = parse(text)
    except LakeError:
        return
    if not isinstance(own.tree, ParsedQuery):
        return
    assert own.kind == "read"
    try:
        parsed = parse_with_sqlglot(text)
    except QueryRejectedError:
        return  # a syntax error; the guard's StatementRefusedError is another one
    assert (parsed.kind, uses(parsed)) == (own.kind, uses(own))


#: Statements in which `{}` is the name of a table to Spark, or no SQL at all.
WITH_A_TABLE = (
    "select a from {}", "select a from {} x", "select a from {}, s.t", "select a from {}.t x", "select a from {} limit 3",
    "select a from {} where true", "select a from {} union select a from s.t", "select a from s.t, {} x",
    "select a from s.t, {} true", "select a from s.t join {} on true", "select a from s.t where a in (select b from {})",
    "select a from {} lateral view explode(b) v as c", "select a from s.t, {}.t", "with q as (select a from {}) table q",
    "from {} select a", "insert into s.t table {}",
    "select a from {} null", "select a from {} x(a, b)", "select a from {} current_date",
)  # fmt: skip


def test_no_word_of_sql_hides_a_table() -> None:
    """A word that sqlglot takes for a clause where Spark reads a table's name: nobody would check who may read the table."""
    words = {word.lower() for keyword in Spark.Tokenizer.KEYWORDS for word in re.findall("[A-Za-z_]+", keyword)}
    assert {"select", "describe", "fetch", "where", "from", "lateral", "tablesample", "values"} < words
    accepted = 0
    for word, text in itertools.product(sorted(words), WITH_A_TABLE):
        sql = text.format(word)
        try:
            parsed = parse_with_sqlglot(sql)
        except LakeError:
            continue
        # A word that is replaced in front of another table leaves no statement that an engine can run.
        accepted += 1
        is_read = text.index("{}") in [use.start for use in parsed.uses]
        assert is_read or sql == "select a from lateral x(a, b)", sql
    assert accepted > 1000


@pytest.mark.parametrize("before", ["", "explain ", "create view s.v as "])
def test_a_clause_behind_a_comma_is_no_clause(before: str) -> None:
    with pytest.raises(QueryRejectedError, match="FETCH is not expected here") as refused:
        parse(f"{before}select a as fetch from s.t, fetch x")
    assert "`fetch`" in refused.value.hint
    parse(f"{before}select fetch, t.fetch as where_fetched from s.t, shop.`fetch`")


def test_a_table_may_have_any_name_in_backquotes() -> None:
    for word in ("select", "describe", "fetch", "where", "from", "lateral", "tablesample", "values"):
        for parse_it in (parse, parse_with_sqlglot):
            statement = parse_it(f"select `{word}` from shop.t, shop.`{word}`, `{word}`.t x where `{word}` > 1")
            assert [str(use.name) for use in statement.uses] == ["shop.t", f"shop.{word}", f"{word}.t"]


def test_a_text_in_a_list_is_no_subquery_whatever_word_it_is() -> None:
    statement = parse("select id from shop.a where kind in ('select', 'with', 'values')")
    assert statement.untranslated == ""
    assert [str(use.name) for use in statement.uses] == ["shop.a"]
