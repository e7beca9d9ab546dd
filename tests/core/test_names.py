"""Names of tables: what is one, what is not, and which are near."""

from __future__ import annotations

import pytest

from lakehouse.core.errors import BadNameError
from lakehouse.core.names import LONGEST_NAME, TableName, check_part, nearest


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("crm.leads", "crm.leads", id="two-parts"),
        pytest.param("leads", "default.leads", id="one-part-is-in-default"),
        pytest.param("lake.crm.leads", "crm.leads", id="with-the-catalog"),
        pytest.param("LAKE.Crm.LEADS", "crm.leads", id="any-case"),
        pytest.param("`crm`.`leads`", "crm.leads", id="backquoted"),
        pytest.param("lake.leads", "lake.leads", id="a-namespace-may-be-called-lake"),
        pytest.param("_a1._b2", "_a1._b2", id="underscores-and-digits"),
        pytest.param("a." + "x" * LONGEST_NAME, "a." + "x" * LONGEST_NAME, id="longest"),
    ],
)
def test_a_good_name_is_read(text: str, expected: str) -> None:
    assert str(TableName.parse(text)) == expected


BAD = [
    pytest.param("../x", id="path-up"),
    pytest.param("crm/leads", id="path"),
    pytest.param("a;drop", id="second-statement"),
    pytest.param("crm.a;drop table b", id="second-statement-in-table"),
    pytest.param("crm.\N{GRINNING FACE}", id="emoji"),
    pytest.param("crm.stra\N{LATIN SMALL LETTER SHARP S}e", id="not-ascii"),
    pytest.param("crm." + "x" * 200, id="200-characters"),
    pytest.param("crm." + "x" * (LONGEST_NAME + 1), id="one-too-long"),
    pytest.param("crm.it's", id="single-quote"),
    pytest.param('crm."leads"', id="double-quotes"),
    pytest.param("crm.le`ads", id="backquote-inside"),
    pytest.param("crm.1st", id="starts-with-a-digit"),
    pytest.param("crm.leads\n", id="newline"),
    pytest.param("crm.le ads", id="space"),
    pytest.param("crm.le\x00ads", id="null-byte"),
    pytest.param("", id="nothing"),
    pytest.param("crm.", id="no-table"),
    pytest.param(".leads", id="no-namespace"),
    pytest.param("a.b.c", id="other-catalog"),
    pytest.param("a.b.c.d", id="four-parts"),
    pytest.param("crm.leads#1", id="the-catalogs-own-mark-of-dropped-tables"),
]


@pytest.mark.parametrize("text", BAD)
def test_a_bad_name_is_refused_with_the_rule(text: str) -> None:
    with pytest.raises(BadNameError) as refused:
        TableName.parse(text)
    assert refused.value.is_user_error
    assert "Use letters" in refused.value.hint or "NAMESPACE.TABLE" in refused.value.hint


def test_the_refusal_shows_the_part_and_says_what_it_was_for() -> None:
    with pytest.raises(BadNameError, match=r"Invalid table name: 'my table'\."):
        TableName.parse("crm.my table")
    with pytest.raises(BadNameError, match=r"Invalid namespace name: 'my space'\."):
        TableName.parse("my space.leads")


def test_a_letter_that_only_folds_to_a_plain_one_is_refused() -> None:
    with pytest.raises(BadNameError):
        check_part("\N{KELVIN SIGN}", "table")


def test_names_are_ordered_and_can_be_keys() -> None:
    assert sorted({TableName("b", "a"), TableName("a", "b"), TableName("a", "a"), TableName("a", "a")}) == [
        TableName("a", "a"),
        TableName("a", "b"),
        TableName("b", "a"),
    ]


KNOWN = ["crm.leads", "crm.deals", "shop.orders", "shop.order_items", "web.visits"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param("crm.leeds", "crm.leads", id="typing-error"),
        pytest.param("sales.orders", "shop.orders", id="wrong-namespace"),
        pytest.param("orders", "shop.orders", id="no-namespace"),
        pytest.param("web.visit", "web.visits", id="singular"),
    ],
)
def test_the_nearest_name_comes_first(given: str, expected: str) -> None:
    assert nearest(given, KNOWN)[0] == expected


def test_nothing_is_near_to_something_else_entirely() -> None:
    assert nearest("qqqq.zzzz", KNOWN) == []


def test_no_more_names_are_given_than_asked_for() -> None:
    assert len(nearest("a.t", [f"ns{number}.t" for number in range(10)])) == 3
    assert len(nearest("a.t", [f"ns{number}.t" for number in range(10)], most=1)) == 1
