"""`LAKE_CATALOG__KIND=registered lake tables`: a catalog whose address is in a file that all lakes of a team share."""

from __future__ import annotations

from pathlib import Path

from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.core.catalog import Catalog, CatalogContext
from lakehouse.core.errors import BadSettingError


def open_catalog(context: CatalogContext) -> Catalog:
    """Open the SQL catalog whose address is in the file that `catalog.uri` names."""
    try:
        address = Path(context.uri).read_text().strip()
    except OSError as exc:
        raise BadSettingError(
            f"catalog.uri: {context.uri!r} cannot be read.", "Name the file with the address."
        ) from exc
    return SqlCatalog(
        open_database(address), context.warehouse, io=context.io, spark_io=context.spark_io, author=context.author
    )
