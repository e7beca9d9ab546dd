"""What a client may set on a table or view: locations below the warehouse, and no property that deletes files or sends them elsewhere.

Branches and tags share the files of a table. So an engine may not delete files that only its own branch no longer uses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from lakehouse.core.tables import DELETES_METADATA
from lakehouse.rest_catalog.errors import RestError

if TYPE_CHECKING:
    from lakehouse.rest_catalog.backend import CatalogBackend
    from lakehouse.rest_catalog.own_files import OwnFiles

_GC = "gc.enabled"
#: PyIceberg takes these of a table before those of its catalog: one that sets them has the lake's requests, signed with its
#: keys, sent to another server, or a class of its choice imported.
_STORAGE_PROPERTY = re.compile(
    r"(s3|adls|gcs|hdfs|hf|fs|client|oss|cos|rest|credentials?|token)\.|(py-|.*-)?io-impl$|write\.py-location", re.I
)
_STORAGE_HINT = "The catalog tells clients where files are; a table does not."
_HINT = "Branches and tags share the files of a table: only the lake's own maintenance deletes files."


class Described(Protocol):
    """The metadata of a table or view."""

    @property
    def location(self) -> str: ...
    @property
    def properties(self) -> Mapping[str, str]: ...


def check_table(backend: CatalogBackend, own: OwnFiles, table: Described, before: Described | None) -> None:
    """Refuse a location or a property that a client may not set.

    Args:
        before: the present table; None for a new one. What does not change is not checked.
    """
    known: Mapping[str, str] = before.properties if before else {}
    check_locations(backend, own, table, before)
    if not backend.allow_file_deletion:
        _check_properties(table.properties, known)
    for name, value in table.properties.items():
        if _STORAGE_PROPERTY.match(name) and known.get(name) != value:
            raise RestError(f"The property {name} cannot be set.", _STORAGE_HINT)


def check_locations(backend: CatalogBackend, own: OwnFiles, table: Described, before: Described | None) -> None:
    """Refuse a location of a table or view, or of its files, that a client may not choose."""
    known: Mapping[str, str] = before.properties if before else {}
    present = before.location if before else ""
    if table.location != present:
        backend.warehouse.check(table.location)
        own.check_location(table.location, present)
    backend.warehouse.check_paths(table.properties, known)
    own.check_paths(table.location, table.properties, known)


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
