"""SQL values as JSON, for `-o json`, HTTP and messages between our own processes."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any


def jsonable(value: Any) -> Any:
    """Convert a value: times to ISO 8601 (UTC as Z), bytes to base64, NaN and infinities to strings."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Decimal):
        return _number_or_string(value)
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    return _scalar(value)


def _number_or_string(value: Decimal) -> float | str:
    """A number if a double represents it exactly to the last digit, else a string."""
    if not value.is_finite():
        return str(value)
    number = float(value)
    return number if Decimal(repr(number)) == value else str(value)


def _scalar(value: Any) -> Any:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return value.isoformat()
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes | bytearray | memoryview):
        import base64

        return base64.b64encode(bytes(value)).decode()
    return str(value)
