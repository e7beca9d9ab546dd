"""Any Iceberg REST server as a catalog; one of this lakehouse shows its branches too."""

from lakehouse.catalogs.rest.catalog import RestCatalog

__all__ = ["RestCatalog"]
