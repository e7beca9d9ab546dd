"""The shape of a statement, for the log: what it does, without the values and comments in it."""

from __future__ import annotations

import re

_LONGEST = 300
#: The parts of a statement in which a number or a quote means something else come before the values.
_PARTS = re.compile(
    r"""
      (?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))
    | (?P<name>`(?:[^`]|``)*`|[^\W\d]\w*)
    | (?P<text>\'(?:[^'\\]|\\.)*(?:\'|\Z)|"(?:[^"\\]|\\.)*(?:"|\Z))
    | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\w*)
    """,
    re.VERBOSE | re.DOTALL,
)
_REPLACEMENTS = {"comment": " ", "text": "'…'", "number": "…"}


def statement_shape(sql: str) -> str:
    """A statement without its comments, and with its strings and numbers replaced; names stay."""
    shape = " ".join(_PARTS.sub(lambda part: _REPLACEMENTS.get(str(part.lastgroup), part[0]), sql).split())
    return shape if len(shape) <= _LONGEST else shape[:_LONGEST] + "…"
