"""Settings as text: every value and its origin, with secrets hidden."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from lakehouse.config.load import all_settings, source_settings
from lakehouse.config.settings import Settings

_SECRET_NAME = re.compile(r"passw|pwd|secret|token|credential|(?<![a-z])key(?![a-z])", re.IGNORECASE)
_BEFORE_HOST = re.compile(r"://(\S*)@")
#: `host:8080/a@b`: a host and a path before the @, not a user.
_HOST_AND_PATH = re.compile(r"[^/:@]*(:\d+)?/")
_PARAMETER = re.compile(r"((?:passw\w*|pwd|secret|token)=)[^&\s]+", re.IGNORECASE)
HIDDEN = "********"


@dataclass(frozen=True)
class SettingLine:
    """One line of `lake config show`."""

    setting: str
    value: str
    source: str
    help: str


def show_settings(settings: Settings) -> list[SettingLine]:
    """Every setting with its value and origin."""
    lines: list[SettingLine] = []
    for name, part, _ in all_settings():
        value = reduce(getattr, name.split("."), settings)
        source = settings.origins.get(name, "default")
        shown = HIDDEN if part.metadata.get("secret") and value else _safe(name, value)
        lines.append(SettingLine(name, shown, source, part.metadata.get("help", "")))
    for name, text in source_settings(settings).items():
        lines.append(SettingLine(name, _safe(name, text), settings.origins.get(name, "default"), ""))
    return lines


def _safe(name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={_safe(key, item)}" for key, item in value.items())
    if _SECRET_NAME.search(name) and value:
        return HIDDEN
    return hide_passwords(str(value))


def hide_passwords(text: str) -> str:
    """The text with the passwords in addresses and parameters replaced."""
    return _PARAMETER.sub(rf"\1{HIDDEN}", _BEFORE_HOST.sub(_without_password, text))


def _without_password(found: re.Match[str]) -> str:
    if _HOST_AND_PATH.match(found[1]):
        return found[0]
    user, colon, _ = found[1].partition(":")
    return f"://{user}:{HIDDEN}@" if colon else f"://{HIDDEN}@"
