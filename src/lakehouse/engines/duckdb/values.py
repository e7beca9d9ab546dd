"""Values that DuckDB returns to Python, in the one form that results have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lakehouse.core.result import Row


def with_far_times(rows: list[Row], times: Mapping[int, Any]) -> list[Row]:
    """The rows with the text of results in place of DuckDB's own for dates and times that Python cannot hold.

    Args:
        times: the columns that hold dates or times, also within arrays, maps and structs, with their types.
    """
    convert = {place: _converter(kind) for place, kind in times.items() if any(_is_far(row[place]) for row in rows)}
    if not convert:
        return rows
    return [
        tuple(convert[place](value) if place in convert else value for place, value in enumerate(row)) for row in rows
    ]


def _is_far(value: Any) -> bool:
    """Whether there may be text for a time in a value."""
    return isinstance(value, (str, list, dict))


def _converter(kind: Any) -> Callable[[Any], Any]:
    from lakehouse.core.python_values import far_time

    match kind.id:
        case "date" | "timestamp" | "timestamp with time zone":
            return lambda value: far_time(value) if isinstance(value, str) else value
        case "list":
            item = _converter(kind.children[0][1])
            return lambda values: values and [item(value) for value in values]
        case "struct":
            fields = {name: _converter(part) for name, part in kind.children}
            return lambda values: values and {name: fields[name](value) for name, value in values.items()}
        case "map":
            key, item = (_converter(part) for _, part in kind.children)
            return lambda values: values and _map(values, key, item)
    return lambda value: value


def _map(values: dict[Any, Any], key: Callable[[Any], Any], item: Callable[[Any], Any]) -> dict[Any, Any]:
    if list(values) == ["key", "value"] and isinstance(values["key"], list):  # the keys fit no dict
        return {"key": [key(name) for name in values["key"]], "value": [item(value) for value in values["value"]]}
    return {key(name): item(value) for name, value in values.items()}
