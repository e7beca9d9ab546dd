"""What each engine is given of a statement, and where its complaint points in the user's text."""

from __future__ import annotations

import pytest

from lakehouse.core.errors import QueryRejectedError
from lakehouse.query.sql.parser import parse
from lakehouse.query.sql.render import for_spark, map_error_position


def spark(text: str, *names: str) -> str:
    statement = parse(text)
    return for_spark(statement, {use.start: name for use, name in zip(statement.uses, names, strict=True)})


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        pytest.param("SELECT  *\nFROM n.t -- x/y", ["A"], "SELECT  *\nFROM A", id="only-comments-go"),
        pytest.param("select * from n.a, n.b", ["LONGER_A", "B"], "select * from LONGER_A, B", id="lengths-differ"),
        pytest.param("select * from n.t version as of 5 x", ["T5"], "select * from T5 x", id="as-of-goes"),
        pytest.param("select * from `n`.`t`", ["T"], "select * from T", id="backquotes-go"),
        pytest.param("insert into n.t select 'n.t' from n.u", ["T", "U"], "insert into T select 'n.t' from U", id="text"),
        pytest.param("select t.a from n.t where t.a / 2 = 1", ["X AS t"], "select t.a from X AS t where t.a / 2 = 1", id="q"),
        pytest.param("select 1 / 2", [], "select 1 / 2", id="no-table"),
    ],
)  # fmt: skip
def test_spark_gets_the_users_text_with_other_names(text: str, names: list[str], expected: str) -> None:
    statement = parse(text)
    by_place = dict(zip(sorted(use.start for use in statement.uses), names, strict=True))
    assert for_spark(statement, by_place) == expected


USERS = "select a,\n  naem\nfrom n.t version as of 5"
GIVEN = 'SELECT a, naem FROM "t_at_0" AS "t"'


def test_a_complaint_about_the_translation_points_into_the_users_text() -> None:
    complaint = QueryRejectedError("No column naem.", "hint", sql=GIVEN, line=1, column=11)
    back = map_error_position(complaint, parse(USERS))
    assert back.message == "No column naem. (line 2, column 3)"
    assert back.hint == "hint"
    assert back.pointer() == "  naem\n  ^"


def test_a_complaint_about_something_the_user_did_not_write_points_nowhere() -> None:
    complaint = QueryRejectedError("Bad.", sql=GIVEN, line=1, column=22)
    back = map_error_position(complaint, parse(USERS))
    assert back.message == "Bad."
    assert back.pointer() == ""


def test_a_complaint_about_the_users_own_text_stays() -> None:
    statement = parse("select naem from n.t")
    complaint = QueryRejectedError("No.", sql=statement.text, line=1, column=8)
    assert map_error_position(complaint, statement) is complaint


def test_a_complaint_without_a_place_stays() -> None:
    complaint = QueryRejectedError("No.", sql=GIVEN)
    assert map_error_position(complaint, parse(USERS)) is complaint


@pytest.mark.parametrize(
    ("users", "given", "pointed", "expected"),
    [
        pytest.param("select a, a / 2 from n.t", 'SELECT "a", "a" / 2 FROM "n"."t"', 'a" / 2', "a / 2", id="second"),
        pytest.param(
            "select `a`, 'a' / 2 from n.t", 'SELECT "a", \'a\' / 2 FROM "n"."t"', '"a"', "`a`", id="backquotes"
        ),
        pytest.param('select "a", a / 2 from n.t', "SELECT 'a', \"a\" / 2 FROM t", '"a"', "a / 2", id="double-quotes"),
        pytest.param("select A / 2 -- a\nfrom n.t", 'SELECT "A" / 2 FROM "n"."t"', '"A"', "A / 2", id="comment"),
        pytest.param("select a, a / 2 from n.t", 'SELECT "a" / 2 FROM "n"."t"', '"a"', None, id="not-as-many"),
    ],
)
def test_the_same_word_is_pointed_at(users: str, given: str, pointed: str, expected: str | None) -> None:
    complaint = QueryRejectedError("No.", sql=given, line=1, column=given.index(pointed) + 1)
    error = map_error_position(complaint, parse(users))
    assert error.column == (users.index(expected) + 1 if expected else None)
