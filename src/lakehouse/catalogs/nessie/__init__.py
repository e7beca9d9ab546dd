"""The Nessie catalog: branches, tags, history and pointers are Nessie's own.

All requests use Nessie's API v2. None of our writes uses its Iceberg REST endpoint, which loses all snapshots of a table
except the newest and lets two first writers overwrite each other (docs/decisions/0014-four-kinds-of-catalog.md).
"""

from lakehouse.catalogs.nessie.api import NessieApi
from lakehouse.catalogs.nessie.catalog import NessieCatalog
from lakehouse.core.catalog import CatalogContext

__all__ = ["NessieCatalog", "open_catalog"]


def open_catalog(context: CatalogContext) -> NessieCatalog:
    """Open the catalog of the Nessie server at `catalog.uri`."""
    return NessieCatalog(
        NessieApi(context.uri, context.token),
        context.warehouse,
        files=context.files,
        io=context.io,
        spark_io=context.spark_io,
        author=context.author,
    )
