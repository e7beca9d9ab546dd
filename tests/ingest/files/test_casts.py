"""Text of a CSV as a value of a nested column: everything in it is kept, or the row is rejected."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from lakehouse.ingest.files.casts import cast_of
from lakehouse.ingest.files.model import PlannedColumn

ORDER = "struct<n:bigint,at:date,items:array<struct<sku:string,price:decimal(5,2)>>,tags:map<string,int>>"
EMPTY = {"n": None, "at": None, "items": None, "tags": None}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", EMPTY),
        ('{"n": 2}', EMPTY | {"n": 2}),
        ('{"items": [{"sku": "a"}, null], "at": "2026-01-14"}', None),
        ('{"tags": {"k": 1, "l": null}}', EMPTY | {"tags": {"k": 1, "l": None}}),
        ('{"items": [{"price": 1.25}]}', EMPTY | {"items": [{"sku": None, "price": 1.25}]}),
    ],
)
def test_text_that_fits_is_the_value(text: str, value: Any) -> None:
    matches, read = cast(text)
    assert matches
    assert value is None or read == value


@pytest.mark.parametrize(
    "text",
    [
        '{"n": 1, "vip": true}',
        '{"n": 1, "n": 2}',
        '{"N": 1}',
        '{"n": 1.5}',
        '{"n": 99999999999999999999}',
        '{"at": "soon"}',
        '{"items": [{"sku": "a", "size": 1}]}',
        '{"items": [{"price": 1.255}]}',
        '{"items": {"sku": "a"}}',
        '{"tags": {"k": "x"}}',
        "[1]",
        '"x"',
        "{",
        "x",
    ],
)
def test_text_with_anything_that_the_column_cannot_hold_does_not_match(text: str) -> None:
    assert not cast(text)[0]


def cast(text: str) -> tuple[bool, Any]:
    """Whether a text matches the type, and its value."""
    typed = cast_of(PlannedColumn("c", "c", ORDER, recorded=ORDER), "v", "v")
    assert typed is not None
    row = duckdb.execute(f"SELECT {typed.matches_type}, {typed.value} FROM (SELECT $1 AS v)", [text]).fetchone()
    assert row is not None
    return row[0], row[1]
