"""What can be chosen by name (catalogs, engines, …): built in, or registered as an entry point by an installed package."""

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
    "lakehouse.engines": {
        "duckdb": "lakehouse.lake.plugins:open_duckdb",
        "spark": "lakehouse.lake.plugins:open_spark",
        "trino": "lakehouse.lake.plugins:open_trino",
    },
    "lakehouse.formats": {
        "iceberg": "lakehouse.formats.iceberg:open_tables",
        "hudi": "lakehouse.formats.hudi:open_tables",
    },
    "lakehouse.pipelines": {
        "market": "lakehouse.pipelines.market.pipeline:market",
        "taxi": "lakehouse.pipelines.taxi.pipeline:taxi",
        "social": "lakehouse.pipelines.social.pipeline:social",
        "files": "lakehouse.pipelines.files.pipeline:files",
    },
    "lakehouse.profiles": {
        "embedded": "lakehouse.config.profiles:EMBEDDED_PROFILE",
        "sql": "lakehouse.config.profiles:SQL",
        "rest": "lakehouse.config.profiles:REST",
        "stack": "lakehouse.config.profiles:STACK",
        "hive": "lakehouse.config.profiles:HIVE",
    },
    "lakehouse.sources": {
        "s3": "lakehouse.lake.plugins:open_s3",
    },
}


def require(group: str, kind: str, *others: str) -> Any:
    """Import what is registered under a kind, for adapters a factory; UnknownChoiceError if nothing is.

    Args:
        others: further valid choices of the user, for the error.
    """
    registered = load(group, kind)
    if registered is None:
        raise UnknownChoiceError(group.rpartition(".")[2].removesuffix("s"), kind, {*kinds(group), *others})
    return registered


def load(group: str, kind: str) -> Any:
    """Import what is registered under a kind; None if nothing is.

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

    point = next(iter(entry_points(group=group, name=kind)), None)
    try:
        return point.load() if point else None
    except (ImportError, AttributeError) as exc:
        raise BadSettingError(
            f"The entry point {kind} of {group} cannot be loaded: {exc}.",
            "Install the package that registers it again.",
        ) from exc


def is_kind(group: str, kind: str) -> bool:
    """Return whether a kind is built in or registered by an installed package."""
    return kind in BUILT_IN.get(group, {}) or kind in kinds(group)


def kinds(group: str) -> list[str]:
    """Return every kind of a group: the built-in ones first, then those of installed packages."""
    from importlib.metadata import entry_points

    return list(dict.fromkeys((*BUILT_IN.get(group, {}), *sorted(entry_points(group=group).names))))
