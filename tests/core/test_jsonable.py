"""Every SQL value has one form in JSON."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.core.jsonable import iso_interval, jsonable, reader

BERLIN = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(None, None, id="null"),
        pytest.param(True, True, id="boolean"),
        pytest.param(2**63, 2**63, id="large-integer"),
        pytest.param("it's \N{GRINNING FACE}", "it's \N{GRINNING FACE}", id="text"),
        pytest.param(1.5, 1.5, id="double"),
        pytest.param(float("nan"), "nan", id="nan"),
        pytest.param(float("inf"), "inf", id="infinity"),
        pytest.param(float("-inf"), "-inf", id="minus-infinity"),
        pytest.param(Decimal("2.50"), "2.50", id="money-with-its-scale"),
        pytest.param(Decimal("0E-18"), "0.000000000000000000", id="no-exponent"),
        pytest.param(Decimal("12345678901234567890.12"), "12345678901234567890.12", id="too-long-for-a-double"),
        pytest.param(Decimal("0.12345678901234567890"), "0.12345678901234567890", id="too-fine-for-a-double"),
        pytest.param(Decimal("NaN"), "NaN", id="decimal-nan"),
        pytest.param(date(2026, 1, 31), "2026-01-31", id="date"),
        pytest.param(time(12, 30, 1), "12:30:01", id="time"),
        pytest.param(datetime(2026, 1, 31, 12, 30), "2026-01-31T12:30:00", id="timestamp-without-zone"),
        pytest.param(datetime(2026, 1, 31, 12, 30, tzinfo=UTC), "2026-01-31T12:30:00Z", id="utc"),
        pytest.param(datetime(2026, 1, 31, 12, 30, tzinfo=BERLIN), "2026-01-31T10:30:00Z", id="other-zones-become-utc"),
        pytest.param(datetime(2026, 1, 31, 0, 0, 0, 1, tzinfo=UTC), "2026-01-31T00:00:00.000001Z", id="microseconds"),
        pytest.param(timedelta(minutes=1, milliseconds=500), "PT1M0.5S", id="interval"),
        pytest.param(b"\x00\xff", "AP8=", id="bytes-in-base64"),
        pytest.param(bytearray(b"\x00\xff"), "AP8=", id="bytearray"),
        pytest.param(memoryview(b"\x00\xff"), "AP8=", id="memoryview"),
        pytest.param(
            UUID("12345678-1234-5678-1234-567812345678"), "12345678-1234-5678-1234-567812345678", id="uuid-is-text"
        ),
        pytest.param({1: [Decimal("0.5"), {"at": date(2026, 1, 1)}], None: ()}, {
            "1": ["0.5", {"at": "2026-01-01"}],
            "None": [],
        }, id="nested"),
    ],
)  # fmt: skip
def test_a_value_has_its_form(value: Any, expected: Any) -> None:
    form = jsonable(value)
    assert form == expected
    assert type(form) is type(expected)
    json.dumps(form, allow_nan=False)


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_no_decimal_loses_a_digit(value: Decimal) -> None:
    assert Decimal(str(jsonable(value))) == value


@pytest.mark.parametrize(
    ("months", "days", "nanoseconds", "expected"),
    [
        (0, 0, 0, "PT0S"),
        (14, 3, 0, "P1Y2M3D"),
        (-14, 0, 0, "P-1Y-2M"),
        (0, 1, 3_723_000_000_001, "P1DT1H2M3.000000001S"),
        (0, 0, -90_500_000_000, "PT-1M-30.5S"),
    ],
)
def test_an_interval_is_iso_8601(months: int, days: int, nanoseconds: int, expected: str) -> None:
    assert iso_interval(months, days, nanoseconds) == expected


def test_a_negative_duration_has_one_sign() -> None:
    assert jsonable(-timedelta(days=1, hours=2)) == "-P1DT2H"


def test_an_infinite_decimal_is_text() -> None:
    assert jsonable(Decimal("Infinity")) == "Infinity"
    assert jsonable(Decimal("NaN")) == "NaN"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        pytest.param(datetime(2026, 1, 31, 12, 30, 0, 5, UTC), "timestamp", id="timestamp"),
        pytest.param(datetime(2026, 1, 31, 12, 30), "timestamp_ntz", id="timestamp-without-zone"),
        pytest.param("0000-12-31 00:00:00Z", "timestamp", id="time-that-python-cannot-hold"),
        pytest.param(date(2026, 1, 31), "date", id="date"),
        pytest.param("+10000-01-01", "date", id="date-that-python-cannot-hold"),
        pytest.param(Decimal("2.50"), "decimal(10,2)", id="decimal"),
        pytest.param(float("-inf"), "double", id="infinity"),
        pytest.param(b"\x00\xff", "binary", id="bytes"),
    ],
)
def test_text_of_a_value_is_read_by_its_type(value: Any, kind: str) -> None:
    read = reader(kind)
    assert read is not None
    restored = read(jsonable(value))
    assert (restored, type(restored)) == (value, type(value))


def test_text_is_the_value_of_text() -> None:
    assert reader("string") is None
