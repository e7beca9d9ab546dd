"""Settings as text: every value and its origin, with secrets hidden."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from lakehouse.config.load import all_settings, plugin_settings
from lakehouse.config.settings import Settings
from lakehouse.core.masking import HIDDEN, is_secret_name, mask


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
    for name, text in plugin_settings(settings).items():
        lines.append(SettingLine(name, _safe(name, text), settings.origins.get(name, "default"), ""))
    return lines


def _safe(name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={_safe(key, item)}" for key, item in value.items())
    if is_secret_name(name) and value:
        return HIDDEN
    return mask(str(value))
