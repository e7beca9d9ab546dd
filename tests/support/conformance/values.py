"""The edge values of every type, as tables of a lake that are written without a JVM."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pyarrow

from lakehouse.storage.local import LocalHome
from tests.support.shop_lake import pyiceberg_on

_LARGEST_FLOAT, _SMALLEST_FLOAT = 3.4028234663852886e38, 1.401298464324817e-45
_LARGEST_DOUBLE, _SMALLEST_DOUBLE = 1.7976931348623157e308, 5e-324

TEXTS: tuple[str | None, ...] = (
    None, "", " ", "  a b  ", "a", "A", "abc", "Spark SQL", "0", "1", "-1", "+5", " 12 ", "\t7\n", "007", "3.7", "-3.7", ".5", "1.", "-.5",
    "1e3", "1E-2", "-1e400", "0x1F", "1,000", "1_000", "12abc", "127", "128", "32768", "2147483647", "2147483648", "-2147483649",
    "9223372036854775807", "9223372036854775808", "99999999999999999999999999999999999999", "123456789012345678901234567890.123456789",
    "0.1", "1.5d", "1.5f", "10L", "inf", "Infinity", "-inf", "+Infinity", "NaN", "nan", "null", "true", "TRUE", "t", "yes", "y", "on",
    "false", "f", "no", "n", "off", "2020", "2020-2", "2020-2-3", "2020-02-03", "2020-02-29", "2021-02-29", "2020-02-30", "2020-13-01", "20200203",
    "2020/02/03", " 2020-02-03 ", "2020-02-03T", "2020-02-03 1:2:3", "2020-02-29 12:30", "2020-02-29 12:30:45", "2020-02-29T12:30:45.123456Z",
    "2020-02-29T12:30:45.1234567Z", "2020-02-29 12:30:45+02:00", "2020-02-29 12:30:45 Europe/Berlin", "2020-03-29 02:30:00", "2020-10-25 02:30:00",
    "12:30:45", "24:00:00", "0001-01-01", "1582-10-04", "1582-10-10", "1582-10-15", "1900-02-28", "9999-12-31", "9999-12-31 23:59:59.999999",
    "10000-01-01", "-0001-01-01", "epoch", "now", "ß", "STRASSE", "İstanbul", "ı", "é", "e\u0301", "Ångström", "ﬁ", "Σίσυφος", "日本語", "😀", "👩\u200d👩\u200d👧", "a😀b",
    "%", "_", "a%b", "a\\b", "a.b*c", "it's", '"quoted"', "a,b;c", "line\nbreak", "tab\there", "{\"a\": 1, \"b\": [1, 2]}", "[1, 2, 3]",
    "http://user@example.com:8080/p/a?q=1&r=2#f", "nul\x00byte",
)  # fmt: skip

DATES = (
    None, date(1, 1, 1), date(1, 12, 31), date(1581, 12, 31), date(1582, 10, 4), date(1582, 10, 10), date(1582, 10, 15), date(1583, 1, 1),
    date(1899, 12, 31), date(1900, 1, 1), date(1900, 2, 28), date(1900, 3, 1), date(1969, 12, 31), date(1970, 1, 1), date(1999, 12, 31),
    date(2000, 2, 29), date(2016, 1, 3), date(2020, 2, 29), date(2020, 3, 29), date(2020, 12, 31), date(2021, 1, 1), date(2021, 2, 28),
    date(2024, 2, 29), date(2026, 1, 31), date(2038, 1, 19), date(2100, 2, 28), date(9999, 1, 1), date(9999, 12, 31),
)  # fmt: skip

TIMES = (
    None, datetime(1, 1, 1), datetime(1, 1, 1, 0, 0, 0, 1), datetime(1582, 10, 4, 23, 59, 59), datetime(1582, 10, 10, 12), datetime(1582, 10, 15),
    datetime(1883, 11, 18, 12, 3, 58), datetime(1899, 12, 31, 23, 59, 59, 999999), datetime(1900, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1970, 1, 1),
    datetime(1999, 12, 31, 23, 59, 59), datetime(2000, 2, 29, 1, 2, 3), datetime(2016, 1, 3, 23, 59, 59, 500000), datetime(2020, 2, 29, 12, 30, 45, 123456),
    datetime(2020, 3, 8, 10), datetime(2020, 3, 29, 0, 59, 59), datetime(2020, 3, 29, 1), datetime(2020, 3, 29, 2, 30), datetime(2020, 10, 25, 0, 30), datetime(2020, 10, 25, 1, 30),
    datetime(2020, 11, 1, 6, 30), datetime(2020, 12, 31, 23, 59, 59, 999), datetime(2021, 1, 1), datetime(2026, 1, 31, 5, 5, 5), datetime(2038, 1, 19, 3, 14, 8),
    datetime(9999, 12, 31), datetime(9999, 12, 31, 23, 59, 59, 999999),
)  # fmt: skip

_FLOATS = (
    None, math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, -3.7, 0.1, 1e-7, 1e-3, 1e7, 123456789.0, 1e16, 127.9, 32768.0,
    2147483648.0, 9.3e18,
)  # fmt: skip


_WIDE = Context(prec=60)


def _decimals(precision: int, scale: int) -> tuple[Decimal | None, ...]:
    """Edge values that fit: zero, halves, limits of the integer types, the largest and the smallest."""
    unit, largest = Decimal(1).scaleb(-scale), Decimal(10**precision - 1).scaleb(-scale, _WIDE)
    texts = "0 1 -1 0.5 -0.5 1.5 2.5 -2.5 3.7 -3.7 99.99 127.5 128 300 -32769 2147483648 9223372036854775808".split()
    fitting = [value for value in map(Decimal, texts) if abs(value) <= largest and not _WIDE.remainder(value, unit)]
    return (
        None,
        *(value.quantize(unit, context=_WIDE) for value in fitting),
        unit,
        unit.copy_negate(),
        largest,
        largest.copy_negate(),
    )


@dataclass(frozen=True)
class EdgeType:
    """A type of Spark with its edge values."""

    name: str
    """In Spark's words."""
    column: str
    """The name of its column in the table of its values, and behind `l_` and `r_` in `edge.pairs`."""
    table: str
    arrow: Any
    values: Sequence[Any]
    paired: Sequence[Any]
    """Ten of the values, extreme ones last, which `edge.pairs` combines with those of all types."""

    def of(self, column: str) -> str:
        """The column as an expression of the type: Iceberg has no integers shorter than four bytes."""
        return f"cast({column} as {self.name})" if self.name in ("tinyint", "smallint") else column


def _integer(name: str, column: str, bits: int) -> EdgeType:
    largest = 2 ** (bits - 1) - 1
    values = [None, 0, 1, -1, 2, 3, 7, -7, 10, 12, 31, 32, 63, 64, 100, 127, -128]
    values += [value for value in (1000, 2020, 32768, 86400, 1582934400, 2147483648, 2**53 + 1) if value <= largest]
    values += [largest, largest - 1, -largest - 1, -largest]
    paired = [None, 0, 1, -1, 2, 3, -7, 100, largest, -largest - 1]
    arrow = pyarrow.int64() if bits == 64 else pyarrow.int32()
    return EdgeType(name, column, "numbers", arrow, values, paired)


def _decimal(precision: int, scale: int, column: str) -> EdgeType:
    values = _decimals(precision, scale)
    paired = [*values[:8], *values[-2:]]
    return EdgeType(
        f"decimal({precision},{scale})", column, "numbers", pyarrow.decimal128(precision, scale), values, paired
    )


def _floating(name: str, column: str, arrow: Any, largest: float, smallest: float) -> EdgeType:
    paired = [None, math.nan, math.inf, 0.0, -0.0, 1.0, -2.5, 3.7, 0.1, largest]
    return EdgeType(name, column, "numbers", arrow, [*_FLOATS, largest, -largest, smallest, -smallest], paired)


_PAIRED_TEXTS = (None, "", "1", " 12 ", "1.5", "-1e3", "true", "2020-02-29", "2020-02-29 12:30:45.123456", "ß😀")
_PAIRED_DATES = [
    *DATES[:2],
    *DATES[4:6],
    date(1969, 12, 31),
    date(1970, 1, 1),
    date(2020, 2, 29),
    date(2021, 1, 1),
    date(2026, 1, 31),
    DATES[-1],
]
_PAIRED_TIMES = [
    *TIMES[:2],
    *TIMES[4:5],
    *TIMES[9:11],
    TIMES[14],
    datetime(2020, 2, 29),
    TIMES[18],
    datetime(2021, 1, 1),
    TIMES[-1],
]
_BYTES = (None, b"", b"\x00", b"a", b"abc", b"\xff\x00\x7f", b"12", "ß😀".encode(), b"\xc3\x28", b"Spark SQL")


def _in_utc(times: Sequence[datetime | None]) -> list[datetime | None]:
    return [time and time.replace(tzinfo=UTC) for time in times]


TYPES: tuple[EdgeType, ...] = (
    EdgeType("boolean", "bo", "numbers", pyarrow.bool_(), (None, True, False), (None, True, False, True, False) * 2),
    _integer("tinyint", "ti", 8),
    _integer("smallint", "si", 16),
    _integer("int", "i", 32),
    _integer("bigint", "bi", 64),
    _floating("float", "f", pyarrow.float32(), _LARGEST_FLOAT, _SMALLEST_FLOAT),
    _floating("double", "d", pyarrow.float64(), _LARGEST_DOUBLE, _SMALLEST_DOUBLE),
    _decimal(5, 2, "d5"),
    _decimal(18, 4, "d18"),
    _decimal(38, 0, "d38"),
    _decimal(38, 18, "d3818"),
    EdgeType("string", "s", "texts", pyarrow.string(), TEXTS, _PAIRED_TEXTS),
    EdgeType("binary", "by", "bytes", pyarrow.binary(), _BYTES, _BYTES),
    EdgeType("date", "da", "times", pyarrow.date32(), DATES, _PAIRED_DATES),
    EdgeType("timestamp", "ts", "times", pyarrow.timestamp("us", "UTC"), _in_utc(TIMES), _in_utc(_PAIRED_TIMES)),
    EdgeType("timestamp_ntz", "tn", "times", pyarrow.timestamp("us"), TIMES, _PAIRED_TIMES),
)

_NESTED = {
    "ai": (pyarrow.list_(pyarrow.int32()), [None, [], [1], [3, 1, 2, None, 1], [None], [2147483647, -2147483648, 0], [5, 5, 5]]),
    "sa": (pyarrow.list_(pyarrow.string()), [None, [], ["a"], ["b", None, "a", "b", ""], [None, None], ["ß", "😀", "Z", "é"], ["1", "10", "2"]]),
    "ad": (pyarrow.list_(pyarrow.float64()), [None, [], [1.5], [math.nan, 0.0, -0.0, None, math.inf], [-math.inf], [0.1, 0.2, 0.3], [math.nan, math.nan]]),
    "ms": (pyarrow.map_(pyarrow.string(), pyarrow.int32()), [None, [], [("a", 1)], [("b", None), ("a", 2)], [("", 0)], [("😀", -1), ("ß", 7)], [("k", 2147483647)]]),
    "st": (
        pyarrow.struct([("a", pyarrow.int32()), ("b", pyarrow.string())]),
        [None, {"a": 1, "b": "x"}, {"a": None, "b": None}, {"a": -1, "b": ""}, {"a": 2, "b": "😀"}, {"a": 0, "b": " "}, {"a": 2147483647, "b": "z"}],
    ),
}  # fmt: skip


def tables() -> dict[str, pyarrow.Table]:
    """The tables of the namespace `edge` by name; each has a column `id`, which numbers its rows from 0."""
    made = {
        name: _padded([kind for kind in TYPES if kind.table == name])
        for name in dict.fromkeys(kind.table for kind in TYPES)
    }
    nested = {name: pyarrow.array(values, kind) for name, (kind, values) in _NESTED.items()}
    return {**made, "nested": _numbered(nested), "pairs": _pairs(), "orders": _orders(), "customers": _customers()}


def _orders() -> pyarrow.Table:
    """Rows for joins, groups and windows: keys that repeat, are missing on the other side or NULL."""
    moments = [datetime(2026, 1, 31, 23, 30), None, datetime(2020, 2, 29), datetime(2026, 6, 1)]
    prices = ["2.50", "3.20", "-1.00", None, "0.00", "2.50", "99999999.99"]
    columns = {
        "customer": pyarrow.array([10, 20, 10, None, 30, 20, 99, 10, None, 40, 10, 20, 30, 7], pyarrow.int32()),
        "item": ["tea", "Mate", None, "it's", "tea", "", "Tea", "tea", "coffee", None, "Mate", "tea", "ß", "😀"],
        "price": pyarrow.array([text and Decimal(text) for text in prices] * 2, pyarrow.decimal128(10, 2)),
        "weight": pyarrow.array([1.5, None, math.nan, 0.0, -0.0, -2.25, math.inf] * 2, pyarrow.float64()),
        "day": [date(2026, 1, 31), date(2026, 2, 1), None, date(1582, 10, 10), date(2026, 1, 31), date(2020, 2, 29), None] * 2,
        "at": pyarrow.array(_in_utc([*moments * 3, *moments[:2]]), pyarrow.timestamp("us", "UTC")),
        "paid": [True, False, None, True, False, True, None] * 2,
        "tags": pyarrow.array([["a", "b"], [], None, ["a", None], ["x"], ["b"], []] * 2, pyarrow.list_(pyarrow.string())),
    }  # fmt: skip
    return _numbered(columns)


def _customers() -> pyarrow.Table:
    return pyarrow.table(
        {
            "id": pyarrow.array([10, 20, 30, 40, 3, None, 10], pyarrow.int32()),
            "name": ["Ada", "Bob", None, "Zoë", "tea", "Eve", "Ada"],
            "item": ["tea", None, "Mate", "tea", "it's", "", "coffee"],
            "region": ["north", "south", "north", None, "north", "south", ""],
            "since": [
                date(2020, 2, 29),
                None,
                date(2026, 1, 31),
                date(1900, 1, 1),
                date(2026, 2, 1),
                None,
                date(2020, 2, 29),
            ],
        }
    )


def _padded(kinds: Sequence[EdgeType]) -> pyarrow.Table:
    length = max(len(kind.values) for kind in kinds)
    columns = {
        kind.column: pyarrow.array([*kind.values, *[None] * (length - len(kind.values))], kind.arrow) for kind in kinds
    }
    return _numbered(columns)


def _pairs() -> pyarrow.Table:
    """Each of ten values of every type beside each of ten values of every type; the extreme ones, which overflow, last."""
    places = sorted(((left, right) for left in range(10) for right in range(10)), key=max)
    columns = {}
    for kind in TYPES:
        columns[f"l_{kind.column}"] = pyarrow.array([kind.paired[left] for left, _ in places], kind.arrow)
        columns[f"r_{kind.column}"] = pyarrow.array([kind.paired[right] for _, right in places], kind.arrow)
    return _numbered(columns)


def _numbered(columns: dict[str, Any]) -> pyarrow.Table:
    length = len(next(iter(columns.values())))
    return pyarrow.table({"id": pyarrow.array(range(length), pyarrow.int32()), **columns})


def make_edge_lake(folder: Path) -> Path:
    """Write the tables into a new lake; returns its home."""
    home = LocalHome(folder).ready()
    add_edge_tables(home)
    return home.folder


def add_edge_tables(home: LocalHome) -> None:
    """Write the tables into the namespace `edge` of a lake."""
    catalog = pyiceberg_on(home)
    catalog.create_namespace("edge")
    for name, rows in tables().items():
        catalog.create_table(f"edge.{name}", schema=rows.schema).append(rows)
    catalog.close()
