"""Plain values as YAML, as much of it as compose.yaml needs: maps, lists, texts, numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

#: Texts that mean the same with and without quotes.
_PLAIN = re.compile(r"[A-Za-z_./][\w./-]*")
_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}


def as_yaml(value: Mapping[str, Any], indent: str = "") -> str:
    """A map, one line an entry."""
    lines = []
    for key, item in value.items():
        if isinstance(item, Mapping) and item:
            lines.append(f"{indent}{_scalar(key)}:\n{as_yaml(item, indent + '  ')}")
        elif isinstance(item, Sequence) and not isinstance(item, str) and item:
            listed = "".join(f"{indent}  - {_scalar(each)}\n" for each in item)
            lines.append(f"{indent}{_scalar(key)}:\n{listed}")
        else:
            lines.append(f"{indent}{_scalar(key)}: {_scalar(item)}\n")
    return "".join(lines)


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    # JSON's texts, numbers, {} and [] are YAML's too.
    return json.dumps(value, ensure_ascii=False)
