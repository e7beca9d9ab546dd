"""Settings as text, to hand them to a process of ours through its input."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import reduce
from pathlib import Path

from lakehouse.config.load import all_settings, settings_from
from lakehouse.config.settings import Settings


def dump_settings(settings: Settings) -> str:
    """All settings as JSON, always in the same order; but those of pipelines' sources, which no other process needs."""
    values = {name: reduce(getattr, name.split("."), settings) for name, _, _ in all_settings()}
    return json.dumps({name: _plain(value) for name, value in values.items()})


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    return dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, tuple) else value


def parse_settings(text: str) -> Settings:
    """The settings that `dump_settings` wrote."""
    return settings_from(
        {name: (value, "handed over") for name, value in json.loads(text).items()}, Path("/"), Path("/")
    )
