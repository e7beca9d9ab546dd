"""Adapters by kind: the built-in ones, and those that installed packages register as entry points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


def load(group: str, kind: str, known: Iterable[str] = ()) -> Any:
    """Import the factory that is registered for a kind of adapter.

    Installed packages are scanned only for a kind that is not built in.

    Args:
        group: `lakehouse.catalogs`, `lakehouse.formats`, `lakehouse.engines`, …
        known: further kinds to name in the error for an unknown one.
    """
    target = BUILT_IN.get(group, {}).get(kind)
    if target is None:
        return _load_entry_point(group, kind, known)
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def _load_entry_point(group: str, kind: str, known: Iterable[str]) -> Any:
    from importlib.metadata import entry_points

    found = next(iter(entry_points(group=group, name=kind)), None)
    if found is None:
        raise UnknownChoiceError(group.rpartition(".")[2].removesuffix("s"), kind, {*known, *kinds(group)})
    try:
        return found.load()
    except (ImportError, AttributeError) as exc:
        raise BadSettingError(
            f"The entry point {kind} of {group} ({found.value}) cannot be loaded: {exc}.",
            "Install the package that registers it again.",
        ) from exc


def kinds(group: str) -> list[str]:
    """Return every kind that is registered in a group."""
    from importlib.metadata import entry_points

    return sorted({*BUILT_IN.get(group, {}), *(each.name for each in entry_points(group=group))})
