"""SQL values as text: JSON for `-o json`, HTTP and messages between our own processes, and fields of CSV."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

_IN_NEED_OF_QUOTES = re.compile(r'[",\r\n]')


def jsonable(value: Any) -> Any:
    """Convert a value: times to ISO 8601 (UTC as Z), decimals to text with their scale, bytes to base64, NaN and infinities to text."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Decimal):
        # Always text: as numbers, some of a column would lose digits where they are read as doubles.
        return format(value, "f") if value.is_finite() else str(value)
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if hasattr(value, "months") and hasattr(value, "nanoseconds"):  # an interval of Arrow, which is a tuple
        return iso_interval(value.months, value.days, value.nanoseconds)
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    return _scalar(value)


def reader(kind: str) -> Callable[[str], Any] | None:
    """What makes a value of the text that `jsonable` made, by a type in Spark's words; None if text is the value.

    Values within arrays, maps and structs stay as they are: people see them as JSON.
    """
    return _READERS.get(kind.partition("(")[0])


def _read_time(text: str) -> datetime | str:
    with suppress(ValueError):  # text already: before the year 1 or after 9999
        return datetime.fromisoformat(text)
    return text


def _read_date(text: str) -> date | str:
    with suppress(ValueError):
        return date.fromisoformat(text)
    return text


def _read_bytes(text: str) -> bytes:
    import base64

    return base64.b64decode(text)


_READERS: dict[str, Callable[[str], Any]] = {
    "timestamp": _read_time,
    "timestamp_ntz": _read_time,
    "date": _read_date,
    "decimal": Decimal,
    "float": float,
    "double": float,
    "binary": _read_bytes,
}


def _scalar(value: Any) -> Any:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return value.isoformat()
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return _iso_duration(value)
    if isinstance(value, bytes | bytearray | memoryview):
        import base64

        return base64.b64encode(bytes(value)).decode()
    return str(value)


def _iso_duration(value: timedelta) -> str:
    sign, length = ("-", -value) if value < timedelta() else ("", value)
    nanoseconds = (length.seconds * 1_000_000 + length.microseconds) * 1000
    return sign + iso_interval(0, length.days, nanoseconds)


def iso_interval(months: int, days: int, nanoseconds: int) -> str:
    """An interval in ISO 8601, such as P1Y2M3DT4H5M6.5S; a part that is negative has its own sign."""
    sign = -1 if nanoseconds < 0 else 1
    seconds, fraction = divmod(abs(nanoseconds), 1_000_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    year_count = int(months / 12)
    dates = [(year_count, "Y"), (months - 12 * year_count, "M"), (days, "D")]
    times = [(sign * hours, "H"), (sign * minutes, "M")]
    date_part = "".join(f"{number}{unit}" for number, unit in dates if number)
    time_part = "".join(f"{number}{unit}" for number, unit in times if number)
    if seconds or fraction:
        digits = f".{fraction:09d}".rstrip("0").rstrip(".")
        time_part += f"{'-' if sign < 0 else ''}{seconds}{digits}S"
    if not date_part and not time_part:
        return "PT0S"
    return f"P{date_part}{'T' if time_part else ''}{time_part}"


def csv_line(values: Iterable[Any]) -> str:
    """A line of CSV. NULL is nothing, and an empty text is `""`; other fields are quoted where they have to be."""
    return ",".join("" if value is None else csv_field(value) for value in values) + "\n"


def csv_field(value: Any) -> str:
    """A value that is not NULL as a field of CSV; nested values are JSON."""
    converted = jsonable(value)
    if isinstance(converted, bool):
        return str(converted).lower()
    text = json.dumps(converted, ensure_ascii=False) if isinstance(converted, list | dict) else str(converted)
    if text and not _IN_NEED_OF_QUOTES.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'
