"""Profiles: the defaults of the catalog, the warehouse and the engines.

A profile consists of settings only. A setting that the user gave is kept; the others come from the endpoints of the
stack. So a profile works by its name after `lake up`, and one setting replaces one part by a server of the user's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from lakehouse.config.settings import Settings
from lakehouse.core.names import CATALOG

EMBEDDED = "embedded"
#: The services that `lake up` starts by default, by profile.
SERVICES = {
    "sql": ("storage", "postgres", "trino"),
    "rest": ("storage", "postgres", "rest", "trino"),
    "stack": ("storage", "postgres", "nessie", "trino"),
    "hive": ("storage", "postgres", "hive", "trino"),
}
#: The name of each kind of catalog in the stack's Trino.
_TRINO_CATALOGS = {"sql": "lake", "rest": "rest", "nessie": "nessie", "hive": "hive"}
#: The kind of catalog, by profile. The stack's REST catalog serves the SQL catalog, so the lake itself uses the database.
_KINDS = {"sql": "sql", "rest": "sql", "stack": "nessie", "hive": "hive"}


def resolve_profile(settings: Settings) -> Settings:
    """The settings, with the defaults of their profile."""
    if settings.profile == EMBEDDED:
        return settings
    from lakehouse.config.endpoints import endpoints_of

    endpoints = endpoints_of(settings)
    kind = settings.catalog.kind or _KINDS[settings.profile]
    uris = {
        "sql": endpoints.databases["lake"].url,
        "rest": endpoints.rest_uri,
        "nessie": endpoints.nessie_uri,
        "hive": endpoints.hive_uri,
    }
    store = {
        "endpoint": endpoints.s3_endpoint,
        "region": endpoints.s3_region,
        "access_key": endpoints.s3_access_key,
        "secret_key": endpoints.s3_secret_key,
    }
    # The token of our own server is none for a server of the user's own.
    token = endpoints.rest_token if kind == "rest" and not settings.catalog.uri else ""
    own_store = bool(settings.s3.endpoint or settings.s3.access_key)
    return replace(
        settings,
        warehouse=settings.warehouse or endpoints.warehouse,
        catalog=_with_defaults(settings.catalog, {"kind": kind, "uri": uris.get(kind, ""), "token": token}),
        # All or nothing: the keys of one object store are invalid at another.
        s3=settings.s3 if own_store else replace(settings.s3, **store),  # type: ignore[arg-type]
        trino=_with_defaults(
            settings.trino,
            {
                "url": endpoints.trino_url,
                "catalog": _TRINO_CATALOGS.get("rest" if settings.profile == "rest" else kind, CATALOG),
            },
        ),
    )


def _with_defaults(section: Any, values: Mapping[str, str]) -> Any:
    """A section of settings, with values for the empty ones."""
    missing = {each.name for each in fields(section) if not getattr(section, each.name)}
    return replace(section, **{name: value for name, value in values.items() if name in missing})
