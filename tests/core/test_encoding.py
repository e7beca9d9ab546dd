"""Arrow's text of a column is that of its single values, and rows read back as what they were."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from lakehouse.core.arrow_text import csv_parts, json_parts, row_texts
from lakehouse.core.encoding import BATCH_ROWS, SUMMARY_KEY, encoder, pieces_of
from lakehouse.core.jsonable import csv_field, jsonable
from lakehouse.core.tables import Column

_MAP = pyarrow.map_(pyarrow.string(), pyarrow.int64())
_ENTRIES = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.int64())]))
_STRUCT = pyarrow.struct([("a", pyarrow.decimal128(5, 2)), ("b", pyarrow.list_(pyarrow.string()))])
#: A type, values of it, and their JSON if that is not what `jsonable` says of the Python value.
COLUMNS: list[tuple[str, Any, list[Any]]] = [
    ("bigint", pyarrow.int64(), [1, -(2**63), None, 2**63 - 1]),
    ("boolean", pyarrow.bool_(), [True, False, None]),
    ("text", pyarrow.string(), ["", "a", None, 'say "hi"', "a,b", "back\\slash", "new\nline\r\t", "\x01\x1f", "ü😀"]),
    ("large text", pyarrow.large_string(), ["a", None, '"']),
    ("text view", pyarrow.string_view(), ["a", None, '"']),
    ("date", pyarrow.date32(), [date(2026, 1, 31), None, date(1, 1, 1)]),
    ("time", pyarrow.time64("us"), [time(10, 0), time(10, 0, 0, 1), None]),
    ("timestamp", pyarrow.timestamp("us", "UTC"), [datetime(2026, 1, 31, 10, tzinfo=UTC), None]),
    ("of Berlin", pyarrow.timestamp("us", "Europe/Berlin"), [datetime(2026, 1, 31, 10, 0, 0, 120, tzinfo=UTC), None]),
    ("without zone", pyarrow.timestamp("us"), [datetime(2026, 1, 31, 10, 0, 0, 5), datetime(1, 1, 1), None]),
    ("decimal", pyarrow.decimal128(20, 2), [Decimal("1.50"), Decimal("0.00"), None, Decimal("-123456789012345678.25")]),
    ("fine decimal", pyarrow.decimal128(38, 18), [Decimal("0"), Decimal("0.000000000000000001"), Decimal("7"), None]),
    ("binary", pyarrow.binary(), [b"ab", b"", None]),
    ("interval", pyarrow.month_day_nano_interval(), [(1, 2, 3_500_000_000), (0, 0, -300_000_000_000), None]),
    ("duration", pyarrow.duration("us"), [timedelta(days=1, hours=2), -timedelta(seconds=1.5), timedelta(), None]),
    ("list", pyarrow.list_(pyarrow.int64()), [[1, 2], [], None, [None]]),
    ("lists", pyarrow.list_(pyarrow.list_(pyarrow.string())), [[["a"], None, []], None, [['"', "\n"]]]),
    ("struct", _STRUCT, [{"a": Decimal("1.50"), "b": ["x", None]}, None, {"a": None, "b": None}]),
    ("entries", _ENTRIES, [[{"key": "a", "value": 1}], None, []]),
    ("category", pyarrow.dictionary(pyarrow.int8(), pyarrow.string()), ["a", "b", None, "a"]),
    ("nothing", pyarrow.null(), [None, None]),
]  # fmt: skip


def json_column(column: Any) -> Any:
    return row_texts(json_parts(column))


def csv_column(column: Any) -> Any:
    return row_texts(csv_parts(column))


def column_of(kind: Any, values: list[Any]) -> Any:
    """A column, also one that begins in the middle of its buffers."""
    if pyarrow.types.is_dictionary(kind):
        return pyarrow.array(values, pyarrow.string()).dictionary_encode()
    return pyarrow.concat_arrays([pyarrow.array(values, kind)] * 2).slice(len(values))


@pytest.mark.parametrize(("kind", "values"), [case[1:] for case in COLUMNS], ids=[case[0] for case in COLUMNS])
def test_a_column_has_the_text_of_its_values(kind: Any, values: list[Any]) -> None:
    column = column_of(kind, values)
    assert [json.loads(text) for text in json_column(column).to_pylist()] == [jsonable(v) for v in column.to_pylist()]
    expected = [None if value is None else csv_field(value) for value in column.to_pylist()]
    assert csv_column(column).to_pylist() == expected
    batch = pyarrow.record_batch([column, column], ["a", "b"])
    rows = [json.loads(line) for line in encoded("json_lines", batch).splitlines()]
    assert rows == [dict.fromkeys("ab", jsonable(value)) for value in column.to_pylist()]
    assert encoded("csv", batch).decode() == "a,b\n" + "".join(f"{field or ''},{field or ''}\n" for field in expected)


def test_a_map_is_an_object_and_a_list_of_entries_is_a_list() -> None:
    column = column_of(_MAP, [[("a", 1), ('"b', None)], None, []])
    assert [json.loads(text) for text in json_column(column).to_pylist()] == [{"a": 1, '"b': None}, None, {}]
    numbers = column_of(pyarrow.map_(pyarrow.int32(), pyarrow.decimal128(3, 1)), [[(1, Decimal("2.0"))]])
    assert json_column(numbers).to_pylist() == ['{"1": "2.0"}']


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([0.1, 1.0, 1e300, -0.0], pyarrow.float64(), ["0.1", "1.0", "1e+300", "-0.0"]),
        ([0.0, -0.0, -7.0], pyarrow.float64(), ["0.0", "-0.0", "-7.0"]),
        ([0.0, -0.0, 5.0], pyarrow.float32(), ["0.0", "-0.0", "5.0"]),
        ([0.1, 16777216.0, 3.4e38], pyarrow.float32(), ["0.1", "16777216.0", "3.4e+38"]),
        ([float("nan"), float("inf"), float("-inf"), 2.5], pyarrow.float64(), ['"nan"', '"inf"', '"-inf"', "2.5"]),
    ],
)
def test_a_float_is_the_shortest_text_of_its_number(values: list[float], kind: Any, expected: list[str]) -> None:
    assert json_column(pyarrow.array(values, kind)).to_pylist() == expected


@given(st.lists(st.floats(), min_size=1))
def test_no_float_changes(values: list[float]) -> None:
    read = [float(json.loads(text)) for text in json_column(pyarrow.array(values, pyarrow.float64())).to_pylist()]
    assert str(read) == str(values)


@settings(max_examples=200)
@given(st.lists(st.none() | st.text(), min_size=1))
def test_any_text_reads_back(values: list[str | None]) -> None:
    column = pyarrow.array(values, pyarrow.string())
    assert [json.loads(text) for text in json_column(column).to_pylist()] == values
    lines = encoded("csv", pyarrow.record_batch([column, column], ["a", "b"]))
    rows = list(csv.reader(io.StringIO(lines.decode(), newline="")))
    assert rows == [["a", "b"], *([value or "", value or ""] for value in values)]


@pytest.mark.parametrize("values", [['"', "a", "b", ","], ["a", '"', "\n", "b"], ["x", "", "", "y"]], ids=repr)
def test_only_the_texts_of_a_slice_decide_how_it_is_written(values: list[str]) -> None:
    part = pyarrow.array(values).slice(1, 2)
    assert json_column(part).to_pylist() == [json.dumps(value) for value in values[1:3]]
    assert csv_column(part).to_pylist() == [csv_field(value) for value in values[1:3]]
    assert json_column(part.slice(0, 0)).to_pylist() == csv_column(part.slice(2)).to_pylist() == []


@pytest.mark.parametrize("largest", [0.0, -0.0, 999_999.0, 1e6, 1e9, 1e15, 1e16, 1e22, -1e300])
def test_whole_floats_are_written_as_floats(largest: float) -> None:
    texts = json_column(pyarrow.array([1.0, None, largest])).to_pylist()
    assert texts[:2] == ["1.0", "null"]
    assert "." in texts[2] or "e" in texts[2]
    assert float(texts[2]) == largest


def encoded(format: str, batch: Any, **summary: Any) -> bytes:
    encode = encoder(format)
    columns = [Column(name, "string") for name in batch.schema.names]
    begin = encode.begin(columns, batch.schema)
    return begin + b"".join(encode.rows(part) for part in pieces_of(batch)) + encode.end(summary)


def test_null_and_empty_text_differ_in_csv() -> None:
    batch = pyarrow.record_batch({"a": [None, "", "x"], "b": pyarrow.array(["", None, "NULL"])})
    assert encoded("csv", batch) == b'a,b\n,""\n"",\nx,NULL\n'


@pytest.mark.parametrize("count", [0, 1, BATCH_ROWS + 1])
def test_each_form_of_json_has_all_rows(count: int) -> None:
    batch = pyarrow.record_batch({"n": pyarrow.array(range(count), pyarrow.int64()), "t": ["x"] * count})
    expected = [{"n": number, "t": "x"} for number in range(count)]
    assert json.loads(encoded("json", batch, row_count=count))["rows"] == expected
    assert json.loads(encoded("json_array", batch)) == expected
    assert [json.loads(line) for line in encoded("json_lines", batch).splitlines()] == expected
    encode = encoder("json_chunks")
    encode.begin([], batch.schema)
    chunks = [json.loads(encode.rows(part)) for part in pieces_of(batch) if part.num_rows]
    assert [row for chunk in chunks for row in chunk] == [[number, "x"] for number in range(count)]


def test_a_parquet_file_has_its_summary() -> None:
    content = encoded("parquet", pyarrow.record_batch({"n": [1]}), truncated=True)
    metadata = parquet.read_metadata(io.BytesIO(content)).metadata
    assert json.loads(metadata[SUMMARY_KEY.encode()]) == {"truncated": True}


def test_wide_rows_are_encoded_in_small_pieces() -> None:
    batch = pyarrow.record_batch({"t": ["x" * (9 << 20)] * 8})
    assert [part.num_rows for part in pieces_of(batch)] == [2, 2, 2, 2]
