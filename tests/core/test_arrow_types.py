"""Rows of Python values as Arrow, by types in Spark's words; and the first rows of a stream."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow
import pytest

from lakehouse.core.arrow_types import arrow_schema, record_batch
from lakehouse.core.result import first_rows
from lakehouse.core.tables import Column

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
ID = uuid.UUID(int=7)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("tinyint", 1, 1),
        ("bigint", 2**62, 2**62),
        ("float", 0.5, 0.5),
        ("boolean", True, True),
        ("string", "é", "é"),
        ("binary", b"\x00", b"\x00"),
        ("decimal(10,2)", Decimal("1.50"), Decimal("1.50")),
        ("date", date(2026, 1, 31), date(2026, 1, 31)),
        ("timestamp", AT, AT),
        ("timestamp_ntz", AT.replace(tzinfo=None), AT.replace(tzinfo=None)),
        ("array<decimal(3,1)>", [Decimal("1.5"), None], [Decimal("1.5"), None]),
        ("map<string,array<int>>", {"a": [1]}, [("a", [1])]),
        ("struct<x:int,y:map<string,int>>", (1, {"k": None}), {"x": 1, "y": [("k", None)]}),
        ("void", None, None),
        ("string", ID, str(ID)),
        ("interval day to second", 5, "5"),
    ],
)
def test_a_value_of_each_type(kind: str, value: Any, expected: Any) -> None:
    schema = arrow_schema([Column("v", kind)])
    batch = record_batch(schema, [(None,), (value,)])
    assert batch.to_pylist() == [{"v": None}, {"v": expected}]


def test_all_batches_have_one_schema_although_the_first_has_only_nulls() -> None:
    schema = arrow_schema([Column("v", "bigint")])
    batches = [record_batch(schema, [(None,)]), record_batch(schema, [(1,)])]
    assert pyarrow.Table.from_batches(batches).column("v").to_pylist() == [None, 1]


@pytest.mark.parametrize(("limit", "read", "count"), [(None, 4, 12), (5, 2, 5), (6, 2, 6), (0, 1, 0), (100, 4, 12)])
def test_the_first_rows_end_the_stream(limit: int | None, read: int, count: int) -> None:
    computed, closed = [], []

    def batches() -> Iterator[pyarrow.RecordBatch]:
        try:
            for number in range(4):
                computed.append(number)
                yield pyarrow.RecordBatch.from_pydict({"n": [number] * 3})
        finally:
            closed.append(True)

    assert sum(batch.num_rows for batch in first_rows(batches(), limit)) == count
    assert (len(computed), closed) == (read, [True])
