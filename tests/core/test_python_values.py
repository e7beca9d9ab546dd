"""Values of Arrow as Python's, and text for dates and times that Python's classes cannot hold."""

from __future__ import annotations

from datetime import date
from typing import Any

import duckdb
import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakehouse.core.python_values import far_time, values_of, with_short_floats
from lakehouse.core.result import ArrowRows
from lakehouse.core.tables import Column
from lakehouse.engines.duckdb.values import with_far_times

DAYS = pyarrow.date32()
TIMES = pyarrow.timestamp("us", "UTC")
_BEFORE, _AFTER = (date.min - date(1970, 1, 1)).days - 1, (date.max - date(1970, 1, 1)).days + 1


def values(items: list[Any], kind: pyarrow.DataType) -> list[Any]:
    return values_of(pyarrow.chunked_array([pyarrow.array(items, kind)]))


def test_far_dates_are_text_and_the_others_dates() -> None:
    assert values([_BEFORE, _BEFORE - 366, _AFTER, 0, None], DAYS) == [
        "0000-12-31",
        "-0001-12-31",
        "+10000-01-01",
        date(1970, 1, 1),
        None,
    ]


def test_nested_values_are_converted_too() -> None:
    kind = pyarrow.struct([("l", pyarrow.list_(DAYS)), ("m", pyarrow.map_(DAYS, TIMES)), ("n", pyarrow.int64())])
    items = [
        {"l": [_BEFORE, None], "m": [(_AFTER, -62_135_596_800_000_001)], "n": 1},
        None,
        {"l": None, "m": None, "n": None},
    ]
    assert values(items, kind) == [
        {"l": ["0000-12-31", None], "m": {"+10000-01-01": "0000-12-31 23:59:59.999999Z"}, "n": 1},
        None,
        {"l": None, "m": None, "n": None},
    ]


@pytest.fixture(scope="module")
def cursor() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    return connection


@given(micros=st.integers(-100_000_000_000_000_000, 300_000_000_000_000_000))
@settings(database=None, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_of_duckdb_and_of_arrow_are_the_same(cursor: duckdb.DuckDBPyConnection, micros: int) -> None:
    sql = (
        f"with t as (select make_timestamptz({micros}) as zoned, make_timestamp({micros}) as local, local::date as day)"
        " select zoned, local, day, [zoned], {'a': day}, map {'b': [local]}, map {[day]: 1} from t"
    )
    rows = cursor.execute(sql).fetchall()
    rows = with_far_times(rows, dict(enumerate(kind for _, kind, *_ in cursor.description or [])))
    (*scalars, in_list, in_struct, in_map, keyed) = rows[0]
    table = cursor.execute(sql).to_arrow_table()
    assert [values_of(column)[0] for column in table.columns[:6]] == [*scalars, in_list, in_struct, in_map]
    assert keyed == {"key": [[scalars[2]]], "value": [1]}
    assert values_of(table.column(6))[0] == [([scalars[2]], 1)]


def test_text_of_duckdb_that_is_no_far_time_stays() -> None:
    assert [far_time(text) for text in ("infinity", "2026-01-31x", "")] == ["infinity", "2026-01-31x", ""]


@given(st.floats(width=32))
@settings(database=None)
def test_a_float_is_printed_with_the_digits_that_it_needs(value: float) -> None:
    kind = pyarrow.struct([("l", pyarrow.list_(pyarrow.float32())), ("d", pyarrow.float64())])
    table = pyarrow.table(
        {
            "f": pyarrow.array([value, None], pyarrow.float32()),
            "s": pyarrow.array([{"l": [value], "d": value}, None], kind),
        }
    )
    columns = (Column("f", "float"), Column("s", "struct<l:array<float>,d:double>"))
    (printed, nested), missing = with_short_floats(columns, ArrowRows(table).fetch())
    (text,) = pyarrow.array([value], pyarrow.float32()).cast(pyarrow.string()).to_pylist()
    assert repr(printed) == repr(float(text)), "as Arrow writes it"
    assert repr(nested) == repr({"l": [printed], "d": value})
    assert missing == (None, None)
