"""Settings without their secrets: as text with the origin of each, or with the names of variables in their place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from functools import reduce
from typing import Any

from lakehouse.config.load import all_settings, plugin_settings
from lakehouse.config.secrets import FILE
from lakehouse.config.settings import Settings
from lakehouse.core.dataclass import dataclass
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


def redact(settings: Settings) -> Settings:
    """The settings with `LAKE_S3__SECRET_KEY` for the value of `s3.secret_key`, and so on. Generated secrets are included."""
    for name in _secrets():
        generated = name.startswith("stack.")
        if generated or reduce(getattr, name.split("."), settings):
            settings = _with(settings, name, variable(name))
    conf = {key: HIDDEN if is_secret_name(key) else mask(value) for key, value in settings.spark.conf.items()}
    settings = replace(settings, spark=replace(settings.spark, conf=conf))
    own = {key: HIDDEN if is_secret_name(key) else mask(value) for key, value in settings.catalog.properties.items()}
    return replace(settings, catalog=replace(settings.catalog, uri=mask(settings.catalog.uri), properties=own))


def origins_of_secrets(settings: Settings, text: str) -> dict[str, str]:
    """The origin of each secret that a text made with redacted settings would hold, by variable."""
    origins = {variable(name): settings.origins.get(name, str(settings.home / FILE)) for name in _secrets()}
    origins = {name: origin for name, origin in origins.items() if re.search(rf"\b{name}\b", text)}
    return origins | ({HIDDEN: settings.origins.get("catalog.uri", "lake.toml")} if HIDDEN in text else {})


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return f"LAKE_{name.upper().replace('.', '__')}"


def _secrets() -> list[str]:
    return [name for name, part, _ in all_settings() if part.metadata.get("secret")]


def _with(section: Any, name: str, value: str) -> Any:
    head, _, rest = name.partition(".")
    assert is_dataclass(section)
    return replace(section, **{head: _with(getattr(section, head), rest, value) if rest else value})  # type: ignore[type-var]
