"""Adapters that other packages register as Python entry points: engines, catalogs, formats, sources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def load(group: str, name: str) -> Callable[..., Any] | None:
    """The factory that an installed package registers under a name; None if there is none."""
    # Imported here: scanning what is installed takes longer than a cold query.
    from importlib.metadata import entry_points

    found = entry_points(group=group, name=name)
    factory: Callable[..., Any] | None = next(iter(found)).load() if found else None
    return factory


def installed(group: str) -> list[str]:
    """The names that installed packages register."""
    from importlib.metadata import entry_points

    return sorted(entry_points(group=group).names)
