"""The Hive Metastore as a catalog: tables of Iceberg and Hudi, side by side."""

from lakehouse.catalogs.hive.catalog import HiveCatalog
from lakehouse.catalogs.hive.hudi import HudiEntries
from lakehouse.catalogs.hive.metastore import DROPPED, Metastore

__all__ = ["DROPPED", "HiveCatalog", "HudiEntries", "Metastore"]
