"""Profiles: the defaults of the catalog, the warehouse and the engines. Installed packages add profiles of their own.

A profile consists of settings only. A setting that the user gave is kept; the others come from the endpoints of the
stack. So a profile works by its name after `lake up`, and one setting replaces one part by a server of the user's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from lakehouse.config.settings import Settings
from lakehouse.core.dataclass import dataclass
from lakehouse.core.registry import require

#: The group of entry points that name profiles.
PROFILES = "lakehouse.profiles"
EMBEDDED = "embedded"
#: The kind of an embedded lake's catalog.
DEFAULT_CATALOG = "sql"


@dataclass(frozen=True)
class Profile:
    """What an entry point of the group `lakehouse.profiles` names: defaults of a lake."""

    catalog: str
    """The kind of the catalog."""
    services: tuple[str, ...] = ()
    """The servers that `lake up` starts; none: catalog and tables are in the lake's folder."""
    trino_catalog: str = ""
    """The name of the lake's catalog in Trino (default: that of the kind in the stack's Trino)."""


EMBEDDED_PROFILE = Profile(DEFAULT_CATALOG)
SQL = Profile("sql", ("storage", "postgres", "trino"))
# The stack's REST catalog serves the SQL catalog, so the lake itself uses the database.
REST = Profile("sql", ("storage", "postgres", "rest", "trino"), "rest")
STACK = Profile("nessie", ("storage", "postgres", "nessie", "trino"))
HIVE = Profile("hive", ("storage", "postgres", "hive", "trino"))


def profile_of(settings: Settings) -> Profile:
    """The profile that the settings name."""
    profile: Profile = require(PROFILES, settings.profile)
    return profile


def resolve_profile(settings: Settings) -> Settings:
    """The settings, with the defaults of their profile."""
    if settings.profile == EMBEDDED:
        return settings
    profile = profile_of(settings)
    if not profile.services:
        return replace(settings, catalog=_with_defaults(settings.catalog, {"kind": profile.catalog}))
    from lakehouse.config.endpoints import endpoints_of

    endpoints = endpoints_of(settings)
    kind = settings.catalog.kind or profile.catalog
    server = endpoints.catalog_server(kind)
    # The token of our own server is none for a server of the user's own.
    token = "" if settings.catalog.uri else server.token
    in_trino = profile.trino_catalog if kind == profile.catalog else ""
    own_store = bool(settings.s3.endpoint or settings.s3.access_key)
    return replace(
        settings,
        warehouse=settings.warehouse or endpoints.warehouse,
        catalog=_with_defaults(settings.catalog, {"kind": kind, "uri": server.uri, "token": token}),
        # All or nothing: the keys of one object store are invalid at another.
        s3=settings.s3 if own_store else replace(endpoints.s3, path_style=settings.s3.path_style),
        trino=_with_defaults(settings.trino, {"url": endpoints.trino_url, "catalog": in_trino or server.trino_catalog}),
    )


def _with_defaults(section: Any, values: Mapping[str, str]) -> Any:
    """A section of settings, with values for the empty ones."""
    missing = {part.name for part in fields(section) if not getattr(section, part.name)}
    return replace(section, **{name: value for name, value in values.items() if name in missing})
