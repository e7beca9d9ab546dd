"""The Hive Metastore as a catalog, with tables of Iceberg and of other formats."""

from lakehouse.catalogs.hive.catalog import HiveCatalog
from lakehouse.catalogs.overlay import BranchOverlay, add_branches
from lakehouse.core.catalog import CatalogContext

__all__ = ["HiveCatalog", "open_catalog"]


def open_catalog(context: CatalogContext) -> BranchOverlay:
    """Open the catalog of the metastore at `catalog.uri`, with branches in the lake's folder."""
    scratch = context.folder / "run" / "hive"
    return add_branches(HiveCatalog(context.uri, context.warehouse, context.io, context.spark_io, scratch), context)
