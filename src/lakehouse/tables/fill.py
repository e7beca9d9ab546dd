"""Fill an empty catalog with the tables of another lake: the step that makes a restore, a migration or a clone visible.

Nobody reads the new lake before, so its tables need no branch: the catalog takes all of them at once, where it can.
"""

from __future__ import annotations

from lakehouse.core.catalog import Catalog
from lakehouse.core.state import CatalogState


def fill(catalog: Catalog, state: CatalogState) -> list[str]:
    """Fill a catalog, unless an earlier call that was killed has done so; returns what the catalog cannot hold.

    Raises:
        TableExistsError: the catalog holds something else.
    """
    return [] if _holds(catalog, state) else list(catalog.load_state(state))


def _holds(catalog: Catalog, state: CatalogState) -> bool:
    # A shared catalog takes tables one by one, and knows itself what it has.
    if catalog.capabilities.shared or catalog.dump_state().is_empty:
        return False
    tables = [entry for entry in state.main if not entry.is_view]
    pointers = catalog.pointers(entry.table for entry in tables)
    return all(pointers[entry.table] == entry.pointer for entry in tables)
