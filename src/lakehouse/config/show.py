"""Settings for people: every value, where it came from, and no secret among them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from lakehouse.config.load import all_settings
from lakehouse.config.settings import Settings

_SECRET_NAME = re.compile(r"password|secret|token|credential|access[._-]?key|api[._-]?key", re.IGNORECASE)
_PASSWORD_IN_URL = re.compile(r"(://[^/@\s:]*:)[^/@\s]*@")
HIDDEN = "********"


@dataclass(frozen=True)
class Shown:
    """One line of `lake config show`."""

    setting: str
    value: str
    source: str
    help: str


def show_settings(settings: Settings) -> list[Shown]:
    """Every setting with its value and source."""
    lines: list[Shown] = []
    for name, part, _ in all_settings():
        value = reduce(getattr, name.split("."), settings)
        source = settings.sources.get(name, "default")
        lines.append(Shown(name, _safe(name, value), source, part.metadata.get("help", "")))
    return lines


def _safe(name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={_safe(key, item)}" for key, item in value.items())
    if _SECRET_NAME.search(name) and value:
        return HIDDEN
    return hide_passwords(str(value))


def hide_passwords(text: str) -> str:
    """The text with passwords in URLs made unreadable."""
    return _PASSWORD_IN_URL.sub(rf"\1{HIDDEN}@", text)
