"""One way to say any SQL value in JSON, used by `-o json`, by the HTTP API and between our own processes."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any


def jsonable(value: Any) -> Any:
    """The value as JSON has it: times in ISO 8601 (UTC as Z), bytes in base64, NaN and infinities as text."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Decimal):
        return _number_or_text(value)
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    return _scalar(value)


def _number_or_text(value: Decimal) -> float | str:
    """A number where a double holds it to the last digit, as money does; text where it would be rounded."""
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
