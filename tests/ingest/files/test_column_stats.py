"""A type matches every value, and represents it exactly."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isinf, isnan
from typing import Any

import pytest

from lakehouse.ingest.files.column_stats import ColumnStats, infer_type

pytestmark = pytest.mark.slow

Typed = Callable[..., tuple[str, list[Any]]]


@pytest.mark.parametrize(
    ("values", "type"),
    [
        (["1", "-5", "0"], "bigint"),
        (["9223372036854775807", "-9223372036854775808"], "bigint"),
        (["9223372036854775808", "1"], "decimal(38,0)"),
        (["9" * 38], "decimal(38,0)"),
        (["9" * 39], "string"),
        (["1.5", "2", "-0.25", ".5"], "double"),
        (["1e5", "2.5E-3"], "double"),
        (["1", "NaN", "-Infinity"], "double"),
        (["1", "-0"], "double"),
        (["0.30000000000000004"], "double"),
        (["1.1234567890123456789", "5"], "decimal(38,19)"),
        (["12345678901234567", "0.5"], "decimal(38,1)"),
        (["12.500000000000000", "0.000000000000000"], "double"),
        (["48.12345678901234000", "7.500000000000000"], "double"),
        (["1.1234567890123456789000", "5.000000000000000000000000"], "decimal(38,19)"),
        (["12345678901234567.5" + "0" * 60, "3.00"], "decimal(38,1)"),
        (["12345678901234567.00", "3.00"], "decimal(38,1)"),
        (["1.1234567890123456789", "1e5"], "string"),
        (["0." + "1" * 39], "string"),
        (["1e400"], "string"),
        (["1e-400"], "string"),
        (["007", "8"], "string"),
        (["00", "1"], "string"),
        (["+49", "1"], "string"),
        (["01.5"], "string"),
        (["1_000"], "string"),
        (["0x10"], "string"),
        (["1,5"], "string"),
        (["true", "FALSE", "True"], "boolean"),
        (["true", "1"], "string"),
        (["0", "1"], "bigint"),
        (["yes", "no"], "string"),
        (["t", "f"], "string"),
        (["2024-02-29", "2024-1-5"], "date"),
        (["2024/02/29"], "date"),
        (["2023-02-29"], "string"),
        (["0000-01-01"], "string"),
        (["20240101"], "bigint"),
        (["2024-01-01T10:00:00", "2024-01-01 10:00", "2024-01-01"], "timestamp_ntz"),
        (["2024-01-01T10:00:00Z", "2024-01-01T10:00:00.5+02:00"], "timestamp"),
        (["2024-01-01T10:00:00Z", "2024-01-01T10:00:00"], "string"),
        (["2024-01-01T24:00:00"], "string"),
        (["2024/01/01 10:00", "2024/01/01 23:59:59.5"], "timestamp_ntz"),
        (["2024/01/01T10:00:00Z"], "timestamp"),
        (["2024/01-01 10:00"], "string"),
        (["31/12/2024", "01/02/2024"], "date"),
        (["12/31/2024", "01/02/2024"], "date"),
        (["31.12.2024"], "date"),
        (["01/02/2024", "03/04/2024"], "string"),
        (["31/12/2024", "12/31/2024"], "string"),
        (["31/12/2024", "31-12-2024"], "string"),
        (["31/02/2024"], "string"),
        (["31/12/24"], "string"),
        (["31/12/2024 23:59"], "timestamp_ntz"),
        (["12/31/2024 11:59:59 PM"], "timestamp_ntz"),
        (["31/12/2024 13:00 PM"], "string"),
        (["", "NA", "\\N"], "string"),
        (["", "5"], "bigint"),
        (["x", "5"], "string"),
        ([" 5", "6 "], "bigint"),
        (["10:30"], "string"),
        (["1.2.3.4"], "string"),
    ],
    ids=lambda value: "|".join(value)[:40] if isinstance(value, list) else value,
)
def test_a_column_has_the_narrowest_type_that_holds_it(column: Typed, values: list[str], type: str) -> None:
    assert column(*values)[0] == type


def test_numbers_keep_every_digit(column: Typed) -> None:
    assert column("9223372036854775808")[1] == [Decimal("9223372036854775808")]
    assert column("1.1234567890123456789", "2")[1] == [Decimal("1.1234567890123456789"), Decimal(2)]


def test_not_numbers_are_doubles(column: Typed) -> None:
    _, (one, nan, inf) = column("1.5", "nan", "-inf")
    assert one == 1.5
    assert isnan(nan)
    assert isinf(inf)


def test_times_with_an_offset_become_utc(column: Typed) -> None:
    assert column("2024-01-01T10:00:00+0130", "2024-01-01 10:00:00Z")[1] == [
        datetime(2024, 1, 1, 8, 30, tzinfo=UTC),
        datetime(2024, 1, 1, 10, tzinfo=UTC),
    ]


def test_local_orders_are_read_as_they_are_meant(column: Typed) -> None:
    assert column("31/12/2024", "1/2/2024")[1] == [date(2024, 12, 31), date(2024, 2, 1)]
    assert column("12/31/2024", "1/2/2024")[1] == [date(2024, 12, 31), date(2024, 1, 2)]
    assert column("12/31/2024 01:30 PM")[1] == [datetime(2024, 12, 31, 13, 30)]


def test_nanoseconds_are_truncated_and_noted(read: Callable[..., Any]) -> None:
    result = read("id,at\n1,2024-01-01T00:00:00.123456789\n")
    assert result.values("at") == [datetime(2024, 1, 1, 0, 0, 0, 123456)]
    assert "truncated to microseconds" in result.plan.notes[0]


@pytest.mark.usefixtures("tiny_sample")
def test_nanoseconds_that_come_late_are_noted_too(read: Callable[..., Any]) -> None:
    rows = "".join(f"{number},2024-01-01T00:00:00\n" for number in range(100))
    result = read(f"id,at\n{rows}1,2024-01-01T00:00:00.123456789Z\n")
    assert result.types["at"] == "string"
    result = read(f"id,at\n{rows}1,2024-01-01T00:00:00.123456789\n")
    assert result.types["at"] == "timestamp_ntz"
    assert "truncated to microseconds" in result.plan.notes[0]


LATE = [
    ("1", "x", "string"),
    ("1", "007", "string"),
    ("1", "9223372036854775808", "decimal(38,0)"),
    ("1", "1.5", "double"),
    ("1.5", "1.1234567890123456789", "decimal(38,19)"),
    ("1.1234567890123456789", "1e5", "string"),
    ("true", "maybe", "string"),
    ("2024-01-01", "2024-01-01T10:00:00", "timestamp_ntz"),
    ("", "5", "bigint"),
    ("", "", "string"),
    ("01/02/2024", "31/12/2024", "date"),
    ("31/12/2024", "12/31/2024", "string"),
]


@pytest.mark.usefixtures("tiny_sample")
@pytest.mark.parametrize(("usual", "last", "type"), LATE, ids=[f"{usual} then {last}" for usual, last, _ in LATE])
def test_the_last_of_many_rows_counts_like_the_first(
    read: Callable[..., Any], usual: str, last: str, type: str
) -> None:
    result = read("id;v\n" + f"1;{usual}\n" * 100 + f"2;{last}\n", delimiter=";")
    assert result.types == {"id": "bigint", "v": type}
    assert len(result.rows) == 101
    assert result.plan.confirmed


def test_the_sum_of_two_statistics_is_that_of_the_whole() -> None:
    one = ColumnStats(values=2, integers=2, max_digits=3)
    two = ColumnStats(values=1, locals=1, not_day_first=1, max_digits=1, min_shape="9/9/9", max_shape="9/9/9")
    both = one + two
    assert (both.values, both.max_digits, both.min_shape, both.max_shape) == (3, 3, "9/9/9", "9/9/9")
    assert infer_type(both).type == "string"
    assert infer_type(two + ColumnStats()).format == "%m/%d/%Y"
