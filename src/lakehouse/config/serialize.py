"""Settings as JSON, for the standard input of a child process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import reduce
from pathlib import Path

from lakehouse.config.load import all_settings, settings_from, source_settings
from lakehouse.config.settings import Settings


def dump_settings(settings: Settings, sources: bool = False) -> str:
    """All settings as JSON, in a fixed order; those of pipelines' sources, which may be secret, only if they are wanted."""
    values: dict[str, object] = {name: reduce(getattr, name.split("."), settings) for name, _, _ in all_settings()}
    if sources:
        values |= source_settings(settings)
    return json.dumps({name: _plain(value) for name, value in values.items()})


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    return dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, tuple) else value


def parse_settings(text: str) -> Settings:
    """The settings that `dump_settings` wrote."""
    return settings_from(
        {name: (value, "parent process") for name, value in json.loads(text).items()}, Path("/"), Path("/")
    )
