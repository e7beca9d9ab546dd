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
    # A shared catalog takes tables one by one, and knows itself what it has.
    if not catalog.capabilities.shared:
        held = catalog.dump_state()
        if not held.is_empty and has_main(held, state):
            return []
    return list(catalog.load_state(state))


def has_main(held: CatalogState, wanted: CatalogState, shared: bool = False) -> bool:
    """Return whether two states have the same tables in main, and no others.

    Args:
        shared: the catalog of the first one may hold tables of other programs, and no views.
    """
    main = {(entry.table, entry.pointer) for entry in wanted.main if not (shared and entry.is_view)}
    names = {table for table, _ in main}
    return main == {(entry.table, entry.pointer) for entry in held.main if not shared or entry.table in names}
