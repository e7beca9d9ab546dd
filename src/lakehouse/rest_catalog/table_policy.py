"""What a client may set on a table or view: locations below the warehouse, and no property that deletes files.

Branches and tags share the files of a table. So an engine may not delete files that only its own branch no longer uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakehouse.core.tables import DELETES_METADATA
from lakehouse.rest_catalog.errors import RestError

if TYPE_CHECKING:
    from lakehouse.rest_catalog.backend import CatalogBackend

_GC = "gc.enabled"
_HINT = "Branches and tags share the files of a table: only the lake's own maintenance deletes files."


def check_table(
    backend: CatalogBackend,
    location: str,
    properties: Mapping[str, str],
    before_location: str,
    before: Mapping[str, str],
) -> None:
    """Refuse a location or a property that a client may not set.

    Args:
        before_location: the present location; empty for a new table or view. What does not change is not checked.
        before: the present properties.
    """
    if location != before_location:
        backend.warehouse.check(location)
    backend.warehouse.check_paths(properties, before)
    if not backend.allow_file_deletion:
        _check_properties(properties, before)


def with_safe_defaults(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a new table, with those that keep engines from deleting files."""
    return {_GC: "false", **properties}


def _check_properties(properties: Mapping[str, str], before: Mapping[str, str]) -> None:
    """Refuse properties with which engines delete files."""
    if properties.get(_GC) != before.get(_GC) and properties.get(_GC, "").lower() != "false":
        raise RestError(f"The property {_GC} must be false.", _HINT)
    if _enabled(properties, DELETES_METADATA) and not _enabled(before, DELETES_METADATA):
        raise RestError(f"The property {DELETES_METADATA} must not be true.", _HINT)


def _enabled(properties: Mapping[str, str], name: str) -> bool:
    return properties.get(name, "").strip().lower() == "true"
