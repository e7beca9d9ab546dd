"""The staged file has what Python's csv module reads, and no type loses part of a value."""

from __future__ import annotations

import csv
import io
import tempfile
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.support.csv_texts import CELLS, DIALECTS
from tests.support.repetitions import repetitions

from .conftest import ReadResult, read_paths

pytestmark = [pytest.mark.faults, pytest.mark.slow]

FEW = settings(
    max_examples=repetitions(10, 100),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
MORE = settings(FEW, max_examples=repetitions(20, 200))


@st.composite
def tables(draw: st.DrawFn) -> list[list[str]]:
    width = draw(st.integers(1, 5))
    return draw(st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=12))


def read_text(text: str, **settings: Any) -> ReadResult:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "in.csv"
        path.write_bytes(text.encode())
        return read_paths([path], Path(folder) / "staged", **settings)


@pytest.mark.parametrize(
    "dialect", DIALECTS, ids=["commas", "semicolons", "single quotes", "all quoted", "backslashes"]
)
@given(table=tables())
@example(table=[["{", ";"]])
@FEW
def test_what_python_reads_is_what_is_staged(dialect: dict[str, Any], table: list[list[str]]) -> None:
    out = io.StringIO()
    csv.writer(out, **dialect).writerows(table)
    text = out.getvalue()
    expected = [tuple(row) for row in csv.reader(io.StringIO(text, newline=""), **dialect) if row]
    result = read_text(
        text,
        delimiter=dialect["delimiter"],
        quote=dialect["quotechar"],
        escape=dialect.get("escapechar") or dialect["quotechar"],
        encoding="utf-8",
        header=False,
        all_text=True,
        null_words=(),
    )
    assert result.rejects == []
    assert result.rows == expected


VALUES = (
    st.integers(-(10**40), 10**40).map(str)
    | st.integers(-100, 100).map(str)
    | st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-1000, max_value=1000).map(str)
    | st.floats().map(repr)
    | st.dates(date(1, 1, 1)).map(str)
    | st.dates(date(2000, 1, 1), date(2030, 1, 1)).map(lambda day: f"{day:%d/%m/%Y}")
    | st.datetimes().map(lambda at: at.isoformat())
    | st.datetimes(timezones=st.just(UTC)).map(lambda at: at.isoformat())
    | st.sampled_from(["true", "False", "007", "+5", "", "NA", "x", "1e5", "-0", " 7", "1.50", "NaN", "1_0", ".5"])
)
COLUMNS = st.lists(VALUES, min_size=1, max_size=6) | st.lists(st.integers(-(10**20), 10**20).map(str), min_size=1)


def means_the_same(text: str, value: Any, type: str, format: str) -> bool:
    """Whether a staged value represents its text exactly."""
    if type == "string":
        return bool(value == text)
    if type == "boolean":
        return str(value).lower() == text.strip().lower()
    if type == "double":
        return repr(float(text)) == repr(value) and same_number(text, repr(value))
    if type == "bigint" or type.startswith("decimal"):
        return same_number(text, str(value))
    if format:
        return bool(datetime.strptime(text.strip(), format) == datetime.combine(value, datetime.min.time()))
    if type == "date":
        return bool(date.fromisoformat(text.strip()) == value)
    return bool(datetime.fromisoformat(text.strip()) == value)


def same_number(one: str, other: str) -> bool:
    try:
        left, right = Decimal(one.strip()), Decimal(other)
    except InvalidOperation:
        return False
    return left == right or (left.is_nan() and right.is_nan())


@given(values=COLUMNS)
@MORE
def test_no_value_loses_anything_by_its_type(values: list[str]) -> None:
    result = read_text("v;w\n" + "".join(f"{value};x\n" for value in values), delimiter=";", header=True)
    assert result.rejects == []
    column = result.plan.column("v")
    staged = result.values("v")
    assert len(staged) == len(values)
    for text, value in zip(values, staged, strict=True):
        if text in ("", "NA"):
            assert value is None
        else:
            assert means_the_same(text, value, column.type, column.format), (text, value, column.type)


@pytest.mark.usefixtures("tiny_sample")
@given(values=COLUMNS, more=COLUMNS)
@FEW
def test_types_from_a_sample_are_those_of_the_whole(values: list[str], more: list[str]) -> None:
    text = "v;w\n" + f"{values[0]};x\n" * 20 + "".join(f"{value};x\n" for value in more)
    short = "v;w\n" + "".join(f"{value};x\n" for value in [values[0], *more])
    assert read_text(text, delimiter=";", header=True).types == read_text(short, delimiter=";", header=True).types


ROUGH = st.text(st.sampled_from(list('a1,"\n')), max_size=60)


@given(text=ROUGH)
@MORE
def test_of_any_text_every_line_is_in_a_row_or_among_the_rejects(text: str) -> None:
    result = read_text("h1,h2\n1,2\n" + text, delimiter=",", quote='"', escape='"', header=True, all_text=True)
    kept = "".join(cell or "" for row in result.rows for cell in row) + "".join(reject.raw for reject in result.rejects)
    for letter in "a1":
        assert kept.count(letter) == ("1,2" + text).count(letter)
