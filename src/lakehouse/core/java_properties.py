"""Files of Java properties."""

from __future__ import annotations

from collections.abc import Mapping

_ESCAPES = str.maketrans({"\\": "\\\\"})


def java_properties(values: Mapping[str, str]) -> str:
    """The text of a properties file; a backslash in a value is escaped."""
    return "".join(f"{name}={value.translate(_ESCAPES)}\n" for name, value in values.items())
