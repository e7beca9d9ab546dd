"""Adapters by kind: the built-in ones, and those that installed packages register as entry points."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from lakehouse.core.errors import BadSettingError, UnknownChoiceError

#: The same as the entry points in pyproject.toml, without the time that a scan of all installed packages takes.
BUILT_IN: Mapping[str, Mapping[str, str]] = {
    "lakehouse.catalogs": {
        "sql": "lakehouse.catalogs.sql:open_catalog",
        "nessie": "lakehouse.catalogs.nessie:open_catalog",
        "hive": "lakehouse.catalogs.hive:open_catalog",
        "rest": "lakehouse.catalogs.rest:open_catalog",
    },
    "lakehouse.formats": {
        "iceberg": "lakehouse.formats.iceberg:open_tables",
        "hudi": "lakehouse.formats.hudi:open_tables",
    },
}


def require(group: str, kind: str) -> Any:
    """Import the factory of a kind of adapter; UnknownChoiceError if none is registered."""
    factory = load(group, kind)
    if factory is None:
        raise UnknownChoiceError(group.rpartition(".")[2].removesuffix("s"), kind, kinds(group))
    return factory


def load(group: str, kind: str) -> Any:
    """Import the factory of a kind of adapter; None if none is registered.

    Args:
        group: `lakehouse.catalogs`, `lakehouse.formats`, `lakehouse.engines`, …
    """
    target = BUILT_IN.get(group, {}).get(kind)
    if target is None:
        return _load_entry_point(group, kind)
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def _load_entry_point(group: str, kind: str) -> Any:
    # Imported here: a scan of the installed packages takes longer than a cold query.
    from importlib.metadata import entry_points

    found = next(iter(entry_points(group=group, name=kind)), None)
    try:
        return found.load() if found else None
    except (ImportError, AttributeError) as exc:
        raise BadSettingError(
            f"The entry point {kind} of {group} cannot be loaded: {exc}.",
            "Install the package that registers it again.",
        ) from exc


def kinds(group: str) -> list[str]:
    """Return every kind of a group: the built-in ones and those of installed packages."""
    return sorted({*BUILT_IN.get(group, {}), *installed(group)})


def installed(group: str) -> list[str]:
    """Return the kinds that installed packages register."""
    from importlib.metadata import entry_points

    return sorted(entry_points(group=group).names)
