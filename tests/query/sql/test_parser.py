"""Statements: what kind they are, which tables they use and where, and what is refused."""

from __future__ import annotations

import pytest

from lakehouse.core.errors import BadNameError, QueryRejectedError
from lakehouse.core.statement import Statement
from lakehouse.query.sql.ast import ParsedQuery
from lakehouse.query.sql.parser import parse


def uses(statement: Statement) -> list[str]:
    return [str(use.name) for use in statement.uses]


def spans(statement: Statement) -> list[str]:
    return [statement.text[use.start : use.end] for use in statement.uses]


# ---- queries that our own parser reads -------------------------------------------------------------------------------------------

QUERIES = [
    pytest.param("select 1", [], id="no-table"),
    pytest.param("SELECT * FROM crm.leads", ["crm.leads"], id="upper-case"),
    pytest.param("select count(*) from crm.leads;", ["crm.leads"], id="semicolon"),
    pytest.param("\n select id\n from Crm.Leads \n", ["crm.leads"], id="lines-and-case"),
    pytest.param("select l.id from crm.leads l where l.id >= 3 and not l.x <> 'a b'", ["crm.leads"], id="where"),
    pytest.param("select a, sum(b) from x.y group by a having sum(b) > 1.5 order by 2 desc limit 3", ["x.y"], id="all"),
    pytest.param("select a.x from n.a a join n.b b on a.x = b.x", ["n.a", "n.b"], id="join"),
    pytest.param("select x from n.a left join n.b on a.x = b.x where b.x is null", ["n.a", "n.b"], id="left-join"),
    pytest.param("select x from n.a where x in (select y from n.b)", ["n.a", "n.b"], id="subquery"),
    pytest.param("select x from (select x from n.a) t", ["n.a"], id="derived-table"),
    pytest.param("select x from n.a union select y from n.b", ["n.a", "n.b"], id="union"),
    pytest.param("select case when x > 1 then 'a' else 'b' end as k from n.a", ["n.a"], id="case"),
    pytest.param("select x from n.a where x between 1 and 2 or y like 'a%'", ["n.a"], id="between-like"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "tables"), QUERIES)
def test_a_query_needs_no_sqlglot(text: str, tables: list[str]) -> None:
    statement = parse(text)
    assert isinstance(statement.tree, ParsedQuery)
    assert statement.kind == "read"
    assert uses(statement) == tables
    assert [span.lower() for span in spans(statement)] == tables


@pytest.mark.parametrize(("text", "tables"), QUERIES)
def test_sqlglot_finds_the_same_tables(text: str, tables: list[str]) -> None:
    from lakehouse.query.sql.parsed import parse_with_sqlglot

    parsed = parse_with_sqlglot(parse(text).text)
    assert (parsed.kind, uses(parsed)) == ("read", tables)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("select /*+ broadcast(t) */ a from n.t", "a hint", id="hint"),
        pytest.param("select a from n.t tablesample (10 percent)", "TABLESAMPLE", id="sample"),
        pytest.param("select a from n.t sort by a", "SORT", id="sort-by"),
        pytest.param("select a from n.t where a like any ('x', 'y')", "LIKE ANY", id="like-any"),
    ],
)
def test_a_query_with_other_syntax_says_what_sent_it_to_spark(text: str, why: str) -> None:
    statement = parse(text)
    assert statement.untranslated == why
    assert not isinstance(statement.tree, ParsedQuery)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("select 1 -- java_method('x')", "select 1                   ", id="line"),
        pytest.param("select 1 /* a /* b */ c */ + 2", "select 1                   + 2", id="nested"),
        pytest.param("select 1 -- a\\\n+ 2", "select 1      \n+ 2", id="no-continuation"),
        pytest.param("select 1 -- a\r+ 2", "select 1     \r+ 2", id="carriage-return"),
        pytest.param("select '--', \"/*\" from n.t", "select '--', \"/*\" from n.t", id="text"),
    ],
)
def test_an_engine_sees_no_comment(text: str, expected: str) -> None:
    assert parse(text).text.rstrip() == expected.rstrip()


# ---- kinds and tables -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "tables", "target"),
    [
        pytest.param("select 1 / 2", "read", [], None, id="read-nothing"),
        pytest.param("select a / 2 from n.t", "read", ["n.t"], None, id="read"),
        pytest.param("select * from t", "read", ["default.t"], None, id="one-part"),
        pytest.param("select * from lake.n.t", "read", ["n.t"], None, id="three-parts"),
        pytest.param("select * from `n`.`t`", "read", ["n.t"], None, id="backquotes"),
        pytest.param("select * from n.a, n.b", "read", ["n.a", "n.b"], None, id="comma-join"),
        pytest.param("values (1, 2)", "read", [], None, id="values"),
        pytest.param("with x as (select * from n.t) select * from x", "read", ["n.t"], None, id="cte"),
        pytest.param("with t as (select * from n.t) select * from t, n.t", "read", ["n.t", "n.t"], None, id="cte-shadow"),
        pytest.param("with t as (select * from t) select * from t", "read", ["default.t"], None, id="a-cte-over-its-namesake"),
        pytest.param("with t as (select 1), u as (select * from t) select * from u, t", "read", [], None, id="cte-of-a-cte"),
        pytest.param("select * from (with t as (select 1) select * from t) x, t", "read", ["default.t"], None, id="cte-ends"),
        pytest.param("insert into n.t with u as (select * from u) select * from u", "write", ["n.t", "default.u"], "n.t", id="cte-in-a-write"),
        pytest.param("select substring((select max(a) from n.t), 1)", "read", ["n.t"], None, id="a-query-in-a-function"),
        pytest.param("select trim((select max(a) from n.t))", "read", ["n.t"], None, id="a-query-in-trim"),
        pytest.param("select 1 union all select x from n.t", "read", ["n.t"], None, id="union"),
        pytest.param("insert into n.t values (1)", "write", ["n.t"], "n.t", id="insert"),
        pytest.param("insert overwrite n.t select * from n.u", "write", ["n.t", "n.u"], "n.t", id="overwrite"),
        pytest.param("insert into n.t (a, b) select * from n.u", "write", ["n.t", "n.u"], "n.t", id="insert-columns"),
        pytest.param("update n.t set a = 1 where b in (select b from n.u)", "write", ["n.t", "n.u"], "n.t", id="update"),
        pytest.param("delete from n.t where a = 1", "write", ["n.t"], "n.t", id="delete"),
        pytest.param(
            "merge into n.t using n.u s on t.a = s.a when matched then delete", "write", ["n.t", "n.u"], "n.t", id="merge"
        ),
        pytest.param("create table n.t (a int)", "write", ["n.t"], "n.t", id="create"),
        pytest.param("create table n.t as select * from n.u", "write", ["n.t", "n.u"], "n.t", id="ctas"),
        pytest.param("create or replace table n.t using hudi as select 1 as a", "write", ["n.t"], "n.t", id="replace"),
        pytest.param("alter table n.t add column b int", "write", ["n.t"], "n.t", id="alter"),
        pytest.param("truncate table n.t", "write", ["n.t"], "n.t", id="truncate"),
        pytest.param("create schema n", "write", [], None, id="schema"),
        pytest.param("create temporary view v as select * from n.t", "session", ["n.t"], None, id="temporary-view"),
        pytest.param("drop table n.t", "drop", ["n.t"], "n.t", id="drop"),
        pytest.param("drop table if exists n.t", "drop", ["n.t"], "n.t", id="drop-if-exists"),
        pytest.param("drop view n.v", "write", ["n.v"], "n.v", id="drop-view"),
        pytest.param("set spark.sql.ansi.enabled = true", "session", [], None, id="set"),
        pytest.param("use n", "session", [], None, id="use"),
        pytest.param("create namespace n", "write", [], None, id="namespace"),
        pytest.param("drop namespace n", "write", [], None, id="drop-namespace"),
        pytest.param("refresh table n.t", "session", ["n.t"], "n.t", id="refresh"),
        pytest.param("analyze table n.t compute statistics", "write", ["n.t"], "n.t", id="analyze"),
        pytest.param("describe n.t", "other", ["n.t"], None, id="describe"),
        pytest.param("describe namespace n", "other", [], None, id="describe-namespace"),
        pytest.param("show tables in n", "other", None, None, id="show"),
        pytest.param("alter table n.t drop partition field days(ts)", "write", [], None, id="drop-partition-field"),
        pytest.param("call lake.system.rewrite_data_files(table => 'n.t')", "write", [], None, id="call"),
    ],
)  # fmt: skip
def test_a_statement_is_understood(text: str, kind: str, tables: list[str] | None, target: str | None) -> None:
    statement = parse(text)
    assert statement.kind == kind
    if tables is not None:
        assert sorted(uses(statement)) == sorted(tables)
    assert [str(use.name) for use in statement.uses if use.is_target] == ([target] if target else [])


@pytest.mark.parametrize(
    ("text", "created"),
    [
        pytest.param("create table n.t (a int)", "iceberg", id="by-default"),
        pytest.param("create table n.t (a int) using ICEBERG", "iceberg", id="iceberg"),
        pytest.param("create table n.t using hudi as select 1 as a", "hudi", id="hudi"),
        pytest.param("create table n.t (a int) using delta", "delta", id="another"),
        pytest.param("create view n.v as select 1", "", id="a-view"),
        pytest.param("insert into n.t values (1)", "", id="nothing"),
    ],
)
def test_the_format_of_a_new_table_is_known(text: str, created: str) -> None:
    assert parse(text).creates == created


def test_a_rename_is_known() -> None:
    assert parse("alter table n.t rename to n.u").renames
    assert not parse("alter table n.t add column b int").renames
    assert not parse("alter table n.t rename column a to b").renames


# ---- AS OF ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clause", "as_of"),
    [
        pytest.param("version as of 123", "123", id="number"),
        pytest.param("VERSION AS OF 'monday'", "monday", id="text"),
        pytest.param("timestamp as of '2026-01-31 12:00'", "2026-01-31 12:00", id="timestamp"),
        pytest.param("for version as of 123", "123", id="for-version"),
        pytest.param("FOR TIMESTAMP AS OF 'yesterday'", "yesterday", id="for-timestamp"),
        pytest.param("for system_version as of 123", "123", id="for-system-version"),
        pytest.param("for system_time as of 'yesterday'", "yesterday", id="for-system-time"),
        pytest.param("system_version as of 123", "123", id="system-version"),
        pytest.param('for\n  system_time as of "yesterday"', "yesterday", id="two-lines-and-double-quotes"),
    ],
)
def test_as_of_is_read_and_lies_within_the_span(clause: str, as_of: str) -> None:
    statement = parse(f"select t.a from n.t {clause} t where t.a = 1")
    (use,) = statement.uses
    assert (use.as_of, use.alias) == (as_of, "t")
    assert statement.text[: use.start] == "select t.a from "
    assert statement.text[use.end :] == " t where t.a = 1"


def test_each_use_has_its_own_as_of() -> None:
    now, then = parse("select * from n.t a join n.t version as of 5 b on a.x = b.x").uses
    assert (now.as_of, now.alias) == ("", "a")
    assert (then.as_of, then.alias) == ("5", "b")


def test_as_of_something_that_is_not_a_literal_is_refused_with_an_example() -> None:
    with pytest.raises(QueryRejectedError, match="AS OF requires") as refused:
        parse("select * from n.t timestamp as of current_timestamp()")
    assert "version as of 'yesterday'" in refused.value.hint


def test_a_text_that_talks_of_as_of_is_left_alone() -> None:
    for text in ("'for version as of'", '"system_time as of"', "`for timestamp as of`"):
        assert text in parse(f"select {text} as a, 1 / 2").text


def test_a_comment_or_a_text_does_not_hide_an_as_of() -> None:
    (use,) = parse("select 'it\\'s' -- isn't it?\nfrom n.t for version as of 5").uses
    assert use.as_of == "5"


# ---- aliases and metadata tables --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "alias"),
    [
        pytest.param("select x.a from n.t x", "x", id="plain"),
        pytest.param("select x.a / 2 from n.t x", "x", id="parsed"),
        pytest.param("select x.a / 2 from n.t as x", "x", id="parsed-with-as"),
        pytest.param("select a from n.t where a = 1", "", id="none"),
        pytest.param("select x.a from n.t as x", "x", id="plain-with-as"),
    ],
)
def test_an_alias_is_known(text: str, alias: str) -> None:
    assert [use.alias for use in parse(text).uses] == [alias]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("select * from n.t.snapshots", id="three-parts"),
        pytest.param("select * from lake.n.t.snapshots", id="four-parts"),
    ],
)
def test_a_metadata_table_is_one_of_its_table(text: str) -> None:
    (use,) = parse(text).uses
    assert (str(use.name), use.metadata_table) == ("n.t", "snapshots")


def test_backquotes_are_within_the_span() -> None:
    assert spans(parse("select * from `n`.`t` join lake.`n`.u on 1 = 1")) == ["`n`.`t`", "lake.`n`.u"]


# ---- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "   ", ";", "\n;\n"])
def test_no_statement_is_refused(text: str) -> None:
    with pytest.raises(QueryRejectedError, match="There is no statement") as refused:
        parse(text)
    assert "lake sql" in refused.value.hint


def test_a_comment_alone_is_no_statement() -> None:
    with pytest.raises(QueryRejectedError, match="There is no statement"):
        parse("-- nothing here")


@pytest.mark.parametrize(
    "text", ["select 1; select 2", "select 1; drop table n.t", "select a from n.t where x = 'y'; delete from n.t;"]
)
def test_two_statements_are_refused(text: str) -> None:
    with pytest.raises(QueryRejectedError, match="one statement at a time"):
        parse(text)


def test_a_semicolon_in_a_text_is_no_second_statement() -> None:
    assert parse("select ';' as a from n.t").kind == "read"
    assert parse("select ';' as a, 1 / 2 from n.t;").kind == "read"


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        pytest.param("select a frm n.t where / b", 1, 14, id="one-line"),
        pytest.param("select a / 2\nfrom n.t\nwhere a = ) 1", 3, 11, id="third-line"),
        pytest.param("selct 1 / 2", 1, 7, id="after-the-first-word"),
        pytest.param("select (1 / 2 from n.t", 1, 15, id="a-parenthesis"),
    ],
)
def test_a_mistake_is_pointed_at(text: str, line: int, column: int) -> None:
    with pytest.raises(QueryRejectedError) as refused:
        parse(text)
    assert (refused.value.line, refused.value.column) == (line, column)
    pointer = refused.value.pointer().splitlines()
    assert pointer == [text.splitlines()[line - 1], " " * (column - 1) + "^"]


def test_a_quote_left_open_is_refused() -> None:
    with pytest.raises(QueryRejectedError) as refused:
        parse("select 'abc from n.t")
    assert refused.value.message == "A quote or a comment is not closed."


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("select * from other.n.t", id="three-parts"),
        pytest.param("select * from other.n.t where x / 2 = 1", id="not-plain"),
        pytest.param("select * from a.b.c.d", id="four-parts"),
    ],
)
def test_a_table_of_another_catalog_is_refused(text: str) -> None:
    with pytest.raises(QueryRejectedError, match="is not a table of the lake"):
        parse(text)


@pytest.mark.parametrize(
    "text",
    ["select * from `a b`.t", "select * from n.`a;drop`", "select * from n." + "x" * 200, "select * from n.`\N{PILE OF POO}`"],
    ids=["space", "statement", "long", "emoji"],
)  # fmt: skip
def test_a_bad_name_in_sql_is_refused(text: str) -> None:
    with pytest.raises(BadNameError):
        parse(text)
