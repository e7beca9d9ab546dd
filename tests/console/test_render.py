"""Rendering: formats of values, addresses, and JSON inside of pages."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lakehouse.console.render import address, age, data_text, moment

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("2026-01-31T11:59:30Z", "just now"),
        ("2026-01-31T11:59:00Z", "1 minute ago"),
        ("2026-01-31T09:00:00+00:00", "3 hours ago"),
        ("2026-01-30T12:00:00", "1 day ago"),
        ("2024-01-30T12:00:00Z", "2 years ago"),
        ("", ""),
    ],
)
def test_an_age_has_one_unit(at: str, words: str) -> None:
    assert age(at, NOW) == words


def test_a_moment_is_in_utc() -> None:
    assert moment("2026-01-31T12:00:00+02:00") == "2026-01-31 10:00:00"


def test_an_address_has_only_what_is_set() -> None:
    assert address("/ui/t/crm.leads", branch="", at="2 hours ago") == "/ui/t/crm.leads?at=2+hours+ago"


def test_json_in_a_page_cannot_end_its_element() -> None:
    assert "<" not in data_text({"a": "</script><script>alert(1)</script>"})
