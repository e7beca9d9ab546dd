"""The REST catalog: the tables of any server that implements Iceberg's REST protocol."""

from lakehouse.catalogs.overlay import BranchOverlay, add_branches
from lakehouse.catalogs.rest.catalog import RestCatalog
from lakehouse.core.catalog import CatalogContext

__all__ = ["RestCatalog", "open_catalog"]


def open_catalog(context: CatalogContext) -> BranchOverlay:
    """Open the catalog of the server at `catalog.uri`, with branches in the lake's folder."""
    base = RestCatalog(
        context.uri,
        token=context.token,
        files=context.files,
        io=context.io,
        spark_io=context.spark_io,
        properties=context.properties,
    )
    return add_branches(base, context)
