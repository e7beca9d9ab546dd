"""What is typed is split into SQL, short commands and backslash commands."""

from __future__ import annotations

import pytest

from lakehouse.cli.shell.parser import (
    Command,
    Sql,
    current_fragment,
    danger,
    is_complete,
    parse_input,
    parse_script,
    substitute,
    target,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select 1;", [Sql("select 1")]),
        ("select 1; select 2;", [Sql("select 1"), Sql("select 2")]),
        ("select ';' as a, \";\", `;`;", [Sql("select ';' as a, \";\", `;`")]),
        ("select 1 -- not here;\n;", [Sql("select 1 -- not here;")]),
        ("select /* ; */ 1;", [Sql("select /* ; */ 1")]),
        (r"select 'it\'s; one';", [Sql(r"select 'it\'s; one'")]),
        ("select 'it''s; one';", [Sql("select 'it''s; one'")]),
        ("-- a comment\n;;select 1;", [Sql("select 1")]),
        ("tables", [Command("tables", (), "tables")]),
        ("tables;", [Command("tables", (), "tables")]),
        ("tables\nselect 1;", [Command("tables", (), "tables"), Sql("select 1")]),
        ("travel t '2 hours ago'", [Command("travel", ("t", "2 hours ago"), "travel t '2 hours ago'")]),
        (r"\set path C:\x", [Command("\\set", ("path", r"C:\x"), r"\set path C:\x")]),
        ("\\o 'my file.csv';", [Command("\\o", ("my file.csv",), "\\o 'my file.csv';")]),
        ("DESC crm.leads", [Command("describe", ("crm.leads",), "DESC crm.leads")]),
        (".tables\nselect 1;", [Command(".tables", (), ".tables"), Sql("select 1")]),
        (".mode csv;", [Command(".mode", ("csv",), ".mode csv;")]),
        ("tabels\nselect 1;", [Command("tabels", (), "tabels"), Sql("select 1")]),
        ("descibe crm.leads", [Command("descibe", ("crm.leads",), "descibe crm.leads")]),
        ("selct 1\nfrom t;", [Sql("selct 1\nfrom t")]),
        ("droop table t;", [Sql("droop table t")]),
    ],
)
def test_input_is_split_into_statements(text: str, expected: list[Sql | Command]) -> None:
    assert list(parse_input(text).statements) == expected
    assert is_complete(text)


@pytest.mark.parametrize(
    ("text", "is_short"),
    [
        ("insert a.csv into crm.leads key id", True),
        ("insert a.csv b.csv into crm.leads", True),
        ("INSERT INTO crm.leads VALUES (1)", False),
        ("insert into crm.leads select * from t", False),
        ("insert overwrite crm.leads select 1", False),
        ("use exp", True),
        ("use lake.crm", True),
        ("use catalog lake", False),
        ("describe crm.leads", True),
        ("describe table crm.leads", False),
        ("describe extended crm.leads", False),
        ("show tables", False),
        ("history crm.leads", True),
    ],
)
def test_sql_with_the_first_word_of_a_command_stays_sql(text: str, is_short: bool) -> None:
    (statement,) = parse_script(text + ";")
    assert isinstance(statement, Command) == is_short


@pytest.mark.parametrize("text", ["select 1", "select\n1", "select ';", "select 1 /* ;", "insert into t values ("])
def test_sql_without_its_end_goes_on_in_the_next_line(text: str) -> None:
    assert not is_complete(text)


def test_a_script_may_lack_its_last_semicolon_and_knows_its_lines() -> None:
    statements = parse_script("select 1;\n\ntables\n-- last\nselect 2")
    assert [(type(statement).__name__, statement.line) for statement in statements] == [
        ("Sql", 1),
        ("Command", 3),
        ("Sql", 5),
    ]


def test_variables_are_replaced_outside_of_literals_and_comments() -> None:
    variables = {"day": "2026-01-31", "name": "O'Hara", "n": "3"}
    text = "select :n, ':n', x::int, :'name' from t -- :n\n where day = :'day' and b = :unknown"
    assert substitute(text, variables) == (
        "select 3, ':n', x::int, 'O\\'Hara' from t -- :n\n where day = '2026-01-31' and b = :unknown"
    )


def test_completion_sees_only_the_statement_that_is_typed() -> None:
    assert current_fragment("select 1; select ';' from ") == "select ';' from "


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("drop table crm.leads", True),
        ("DROP VIEW v", True),
        ("delete from crm.leads", True),
        ("delete from crm.leads where id = 1", False),
        ("delete from crm.leads -- where id = 1", True),
        ("update t set a = ' where '", True),
        ("update t set a = 1 where b = 2", False),
        ("truncate table t", True),
        ("insert overwrite t select 1", True),
        ("alter table t drop column a", True),
        ("alter table t add column a int", False),
        ("create or replace table t as select 1", True),
        ("select 'drop table x'", False),
        ("branch drop exp", True),
        ("branch create drop", False),
        ("undrop crm.leads", False),
    ],
)
def test_destructive_statements_are_recognised(text: str, asks: bool) -> None:
    (statement,) = parse_script(text)
    assert bool(danger(statement)) == asks


def test_a_long_script_is_split_quickly() -> None:
    import time

    script = "insert into t values (1, 'a;b');\n" * 5_000
    started = time.monotonic()
    assert len(parse_script(script)) == 5_000
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("drop table if exists lake.crm.leads;", "crm.leads"),
        ("DELETE FROM crm.leads;", "crm.leads"),
        ("update crm.leads set a = 'x';", "crm.leads"),
        ("create or replace table crm.leads as select 1;", "crm.leads"),
        ("truncate table crm.leads;", "crm.leads"),
        ("drop namespace crm;", "crm"),
        ("drop table `crm`.leads;", ""),
        ("branch drop Exp", "exp"),
    ],
)
def test_the_target_of_a_dangerous_statement(text: str, name: str) -> None:
    (statement,) = parse_input(text).statements
    assert danger(statement)
    assert target(statement) == name
