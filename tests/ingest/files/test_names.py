"""Headers of all sorts become names that every engine takes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.core.names import check_part
from lakehouse.ingest.files import clean_names

HEADERS = st.lists(st.text(max_size=200) | st.sampled_from(["a", "A", "a_2", "select", "", "_lake_x", "column_1", "é"]))


@given(HEADERS)
@pytest.mark.slow
def test_clean_names_are_names_and_all_different(headers: list[str]) -> None:
    names = clean_names(headers)
    assert len(names) == len(headers) == len(set(names))
    for name in names:
        assert len(name) <= 128
        assert check_part(name, "column") == name if name.isascii() else re.fullmatch(r"[^\W\d]\S*", name)
        assert not name.startswith(("_hoodie_", "_lake_"))


@given(HEADERS)
def test_clean_names_stay_as_they_are(headers: list[str]) -> None:
    names = clean_names(headers)
    assert clean_names(names) == names


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("First Name", "first_name"),
        ("  Città di nascita ", "città_di_nascita"),
        ("Straße", "straße"),
        ("Łódź (km²)", "łódź_km2"),
        ("Größe in cm", "größe_in_cm"),
        ("cafe\u0301", "café"),
        ("日本 語", "日本_語"),
        ("Имя", "имя"),
        ("हिन्दी", "हिन्दी"),
        ("../x", "x"),
        ("a;drop table", "a_drop_table"),
        ("2024", "c_2024"),
        ("🙂", "column_1"),
        ("", "column_1"),
        ("___", "column_1"),
        ("select", "select_"),
        ("ORDER", "order_"),
        ("date", "date"),
        ("_hoodie_commit_time", "c_hoodie_commit_time"),
        ("_lake_line", "c_lake_line"),
        ("x" * 300, "x" * 128),
        ('"; --', "column_1"),
        ("ﬁeld", "field"),
    ],
)
def test_a_header_becomes_a_name(header: str, name: str) -> None:
    assert clean_names([header]) == [name]


def test_names_that_engines_take_for_equal_get_a_number() -> None:
    assert clean_names(["ΣΟΦΟΣ", "σοφοσ", "Straße", "STRASSE"]) == ["σοφος", "σοφοσ_2", "straße", "strasse_2"]


def test_the_second_of_a_name_gets_a_number_that_no_other_header_has() -> None:
    assert clean_names(["a", "A", "a_2", "a", "b"]) == ["a", "a_3", "a_2", "a_4", "b"]


def test_an_empty_header_is_named_by_its_place() -> None:
    assert clean_names(["id", "", "x", "🙂"]) == ["id", "column_2", "x", "column_4"]


def test_numbered_names_stay_short_enough() -> None:
    names = clean_names(["x" * 128, "x" * 128])
    assert names[1].endswith("_2")
    assert all(re.fullmatch(r"[a-z_][a-z0-9_]{0,127}", name) for name in names)
