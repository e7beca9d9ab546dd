"""WHEN: every form it may have, and which snapshot it means."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lakehouse.core.errors import WhenError
from lakehouse.core.when import Version, parse, resolve

NOW = datetime(2026, 6, 15, 12, 0, tzinfo=UTC)


def ago(**parts: float) -> datetime:
    return NOW - timedelta(**parts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("now", NOW, id="now"),
        pytest.param("latest", NOW, id="latest"),
        pytest.param("yesterday", ago(days=1), id="yesterday"),
        pytest.param("  Yesterday ", ago(days=1), id="any-case-and-spaces"),
        pytest.param("2 hours ago", ago(hours=2), id="hours"),
        pytest.param("2  HOURS   ago", ago(hours=2), id="hours-with-spaces"),
        pytest.param("an hour ago", ago(hours=1), id="an-hour"),
        pytest.param("a week ago", ago(weeks=1), id="a-week"),
        pytest.param("1 second ago", ago(seconds=1), id="second"),
        pytest.param("90 minutes ago", ago(minutes=90), id="minutes"),
        pytest.param("3 days ago", ago(days=3), id="days"),
        pytest.param("1 month ago", ago(days=30), id="month-of-30-days"),
        pytest.param("2 years ago", ago(days=730), id="years-of-365-days"),
        pytest.param("0 days ago", NOW, id="zero"),
        pytest.param("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC), id="date"),
        pytest.param("2026-01-31T12:30:00", datetime(2026, 1, 31, 12, 30, tzinfo=UTC), id="time-is-utc"),
        pytest.param("2026-01-31 12:30", datetime(2026, 1, 31, 12, 30, tzinfo=UTC), id="with-a-space"),
        pytest.param("2026-01-31T12:30:00Z", datetime(2026, 1, 31, 12, 30, tzinfo=UTC), id="zulu"),
        pytest.param("2026-01-31T12:30:00+01:00", datetime(2026, 1, 31, 11, 30, tzinfo=UTC), id="offset"),
        pytest.param("2026-01-31T12:30:00.123", datetime(2026, 1, 31, 12, 30, 0, 123_000, tzinfo=UTC), id="millis"),
    ],
)
def test_a_time_is_read(text: str, expected: datetime) -> None:
    moment = parse(text, NOW)
    assert moment == expected
    assert moment.tzinfo is not None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("20260131", id="digits-are-an-id-though-python-reads-a-date"),
        pytest.param("20260131123000123", id="a-hudi-instant"),
        pytest.param("5781947118336215154", id="an-iceberg-snapshot"),
        pytest.param("monday_close", id="a-tag"),
        pytest.param("main", id="a-branch"),
        pytest.param("2 fortnights ago", id="an-unknown-unit"),
        pytest.param("hours ago", id="no-count"),
        pytest.param("-2 hours ago", id="negative"),
        pytest.param("1.5 hours ago", id="fraction"),
        pytest.param("2026-13-01", id="no-such-month"),
        pytest.param("", id="nothing"),
        pytest.param("\N{SUPERSCRIPT TWO}", id="a-digit-that-is-no-number"),
    ],
)
def test_what_is_not_a_time_is_left_for_ids_and_tags(text: str) -> None:
    assert parse(text, NOW) is None


VERSIONS = [
    Version("11", datetime(2026, 1, 1, tzinfo=UTC)),
    Version("22", datetime(2026, 2, 1, tzinfo=UTC)),
    Version("33", datetime(2026, 3, 1, tzinfo=UTC)),
]
REFS = {"main": "33", "close": "22", "2026-01-01": "33"}


def find(text: str, versions: list[Version] = VERSIONS, ids: tuple[str, ...] = ()) -> str:
    return resolve(text, versions, REFS, NOW, "crm.leads", ids)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("22", "22", id="an-id"),
        pytest.param("close", "22", id="a-tag"),
        pytest.param("main", "33", id="a-branch"),
        pytest.param("2026-01-01", "33", id="a-tag-that-looks-like-a-time-is-a-tag"),
        pytest.param("2026-01-15", "11", id="between-two-the-older"),
        pytest.param("2026-02-01", "22", id="the-very-moment"),
        pytest.param("2026-01-31T23:59:59.999", "11", id="a-millisecond-before"),
        pytest.param("now", "33", id="now"),
        pytest.param("4 months ago", "22", id="words"),
    ],
)
def test_a_when_means_the_last_snapshot_that_is_not_younger(text: str, expected: str) -> None:
    assert find(text) == expected


def test_a_snapshot_that_was_rolled_back_is_still_found_by_its_id() -> None:
    assert find("99", ids=("99",)) == "99"
    with pytest.raises(WhenError):
        find("99")


def test_after_a_rollback_a_time_means_what_was_present_then() -> None:
    rolled_back = [*VERSIONS, Version("11", datetime(2026, 4, 1, tzinfo=UTC))]
    assert find("2026-03-15", rolled_back) == "33"
    assert find("2026-04-15", rolled_back) == "11"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("2026-12-24", "is in the future", id="future"),
        pytest.param("2025-12-31", "did not exist yet at 2025-12-31 00:00:00.000Z", id="before-the-first"),
        pytest.param("moday_close", "Invalid WHEN for crm.leads: 'moday_close'", id="unknown-tag"),
        pytest.param("44", "Invalid WHEN for crm.leads: '44'", id="unknown-id"),
        pytest.param("20260115", "Invalid WHEN for crm.leads: '20260115'", id="digits"),
    ],
)
def test_a_wrong_when_lists_the_valid_ones(text: str, message: str) -> None:
    with pytest.raises(WhenError) as refused:
        find(text)
    assert message in refused.value.message
    hint = refused.value.hint
    assert "2026-01-01 00:00:00.000Z (11)" in hint
    assert "2026-03-01 00:00:00.000Z (33)" in hint
    assert "close, main" in hint
    assert "yesterday" in hint


def test_a_table_without_a_snapshot_has_no_when() -> None:
    with pytest.raises(WhenError, match="no snapshot yet"):
        find("now", [])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("99999999999 years ago", id="too-many-years-for-a-timedelta"),
        pytest.param("9000 years ago", id="before-the-year-one"),
        pytest.param("0001-01-01T00:00:00+05:00", id="an-offset-out-of-range"),
    ],
)
def test_a_time_that_python_cannot_hold_is_a_wrong_when(text: str) -> None:
    with pytest.raises(WhenError):
        find(text)
