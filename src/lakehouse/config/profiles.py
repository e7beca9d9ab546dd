"""What a profile means: which catalog, warehouse and engines, where the settings leave them open.

A profile is only settings. Whatever is set stays; the rest comes from the stack that the settings describe, so that
after `lake up` a profile works by its name alone, and pointing one part at a server of one's own is one setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from lakehouse.config.settings import Settings
from lakehouse.core.names import CATALOG

EMBEDDED = "embedded"
#: Which of a profile's servers `lake up` starts when it is not told which.
SERVICES = {
    "sql": ("storage", "postgres", "trino"),
    "rest": ("storage", "postgres", "rest", "trino"),
    "stack": ("storage", "postgres", "nessie", "trino"),
    "hive": ("storage", "postgres", "hive", "trino"),
}
#: What the stack's Trino calls each kind of catalog.
_IN_TRINO = {"sql": "lake", "rest": "rest", "nessie": "nessie", "hive": "hive"}
#: The REST endpoint of the stack serves the SQL catalog, so the lake itself goes straight to the database.
_KINDS = {"sql": "sql", "rest": "sql", "stack": "nessie", "hive": "hive"}


def resolve_profile(settings: Settings) -> Settings:
    """The settings with everything that their profile says."""
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
    own_store = bool(settings.s3.endpoint or settings.s3.access_key)
    return replace(
        settings,
        warehouse=settings.warehouse or endpoints.warehouse,
        catalog=_filled(settings.catalog, {"kind": kind, "uri": uris.get(kind, "")}),
        # All of it or nothing: the keys of one store are of no use at another.
        s3=settings.s3 if own_store else replace(settings.s3, **store),  # type: ignore[arg-type]
        trino=_filled(
            settings.trino,
            {
                "url": endpoints.trino_url,
                "catalog": _IN_TRINO.get("rest" if settings.profile == "rest" else kind, CATALOG),
            },
        ),
    )


def _filled(section: Any, values: Mapping[str, str]) -> Any:
    """A section with values where it has none."""
    missing = {each.name for each in fields(section) if not getattr(section, each.name)}
    return replace(section, **{name: value for name, value in values.items() if name in missing})
