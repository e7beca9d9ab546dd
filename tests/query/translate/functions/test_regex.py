"""Java's regular expressions for RE2."""

from __future__ import annotations

import pytest

from lakehouse.query.translate.functions.regex import translated
from lakehouse.query.translate.types import NotTranslatedError


@pytest.mark.parametrize(
    ("java", "text", "matches"),
    [
        (r"a\sb", "a\x0bb", True),  # RE2's own \s has no vertical tab
        (r"^.$", "\u2028", False),  # RE2's own dot leaves out \n only
        (r"^.$", "\r", False),
        (r"(?s)^.$", "\n", True),
        (r"[\s\S]+", "\n", True),
        (r"^[\w-]+$", "a-b_1", True),
        (r"(a|b){2}c", "abc", True),
        (r"\x41\u00e9", "Aé", True),
        (r"a{2,3}?$", "aaaa", True),
        (r"\p{Punct}", "-", True),
        ("{0}".replace("{", r"\{").replace("}", r"\}"), "{0}", True),
    ],
)
def test_a_pattern_matches_as_in_java(java: str, text: str, matches: bool) -> None:
    import duckdb

    with duckdb.connect() as connection:
        row = connection.execute("SELECT regexp_matches(?, ?)", [text, translated(java).re2]).fetchone()
    assert row == (matches,)


@pytest.mark.parametrize(
    "java",
    [
        r"(?=a)",
        r"(a)\1",
        "a++",
        "(a*)*",
        "[a-z&&[b]]",
        "a{",
        "(?m)^a",
        r"\p{IsLatin}",
        "(a",
        "a)",
        "[]a]",
        "[z-a]",
        "^*",
    ],
)
def test_what_the_engines_match_otherwise_is_refused(java: str) -> None:
    with pytest.raises(NotTranslatedError, match="regular expression"):
        translated(java)


def test_a_pattern_says_for_which_texts_it_holds() -> None:
    assert translated(r"\bword").needs_ascii
    assert translated("(?i)word").needs_ascii
    assert translated("end$").needs_no_line_end
    assert not translated("word").where("x", "sql", "BOOLEAN").startswith("CASE")


def test_a_pattern_that_may_match_nothing_is_known() -> None:
    assert translated("a*").is_nullable
    assert translated("a|").is_nullable
    assert translated("a{0,2}").is_nullable
    assert not translated("a*b").is_nullable


def test_no_part_of_a_pattern_is_a_field_of_a_rule() -> None:
    assert "{2}" not in translated("a{2}").re2
