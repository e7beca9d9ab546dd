"""Which rows a statement may change, and which of its conditions can be asked again."""

from __future__ import annotations

import pytest

from lakehouse.core.names import TableName
from lakehouse.core.result import RowChanges
from lakehouse.query.affected import counted_update, effects_of
from lakehouse.query.sql.parser import parse

MERGE = "merge into a.t using a.s on t.id = s.id "


@pytest.mark.parametrize(
    ("sql", "effects"),
    [
        ("insert into a.t values (1)", {"insert"}),
        ("insert overwrite a.t select 1", {"insert", "overwrite"}),
        ("update a.t set x = 1", {"update"}),
        ("delete from a.t", {"delete"}),
        ("truncate table a.t", {"delete"}),
        (MERGE + "when matched then update set * when not matched then insert *", {"update", "insert"}),
        (MERGE + "when matched and s.gone then delete when not matched by source then delete", {"delete"}),
        ("create table a.u as select 1 as x", set()),
        ("alter table a.t add column y int", set()),
    ],
)
def test_a_statement_has_the_effects_that_its_clauses_name(sql: str, effects: set[str]) -> None:
    assert effects_of(parse(sql).tree) == effects


@pytest.mark.parametrize(
    ("sql", "query"),
    [
        ("update a.t set x = 1", "SELECT count(*) FROM `a`.`t` VERSION AS OF '7'"),
        (
            "update a.t u set x = 1 where u.x between 1 and :most and lower(u.name) like 'a%'",
            "SELECT count(*) FROM `a`.`t` VERSION AS OF '7' AS `u` WHERE u.x BETWEEN 1 AND :most AND LOWER(u.name) LIKE 'a%'",
        ),
    ],
)
def test_the_rows_of_an_update_are_counted_as_of_before_it(sql: str, query: str) -> None:
    asked: list[str] = []

    def count(sql: str) -> int:
        asked.append(sql.strip())
        return 4

    changes = counted_update(RowChanges(inserted=0, deleted=0), parse(sql).tree, TableName("a", "t"), "7", count)
    assert (asked, changes) == ([query], RowChanges(4, 0, 4, 0))


@pytest.mark.parametrize(
    "condition",
    [
        "at < now()",
        "x > rand()",
        "x in (select y from a.s)",
        "own_function(x)",
        "exists (select 1 from a.s)",
        "day < current_date",
    ],
)
def test_a_condition_that_may_change_is_not_asked_again(condition: str) -> None:
    def count(sql: str) -> int:
        raise AssertionError(sql)

    tree = parse(f"update a.t set x = 1 where {condition}").tree
    assert counted_update(RowChanges(inserted=0, deleted=0), tree, TableName("a", "t"), "7", count).total is None
