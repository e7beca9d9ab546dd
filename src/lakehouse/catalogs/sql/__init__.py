"""The SQL catalog: the tables of Iceberg's JdbcCatalog in SQLite or PostgreSQL, shared by Spark, PyIceberg, Trino and us.

A table is a row that points to its newest metadata file, keyed by (catalog name, namespace, table). So reading a pointer
needs only the database's own library. Each catalog name is a separate set of pointers: a branch is one, and dropped tables
are another.
"""

from lakehouse.catalogs.sql.catalog import SqlCatalog
from lakehouse.catalogs.sql.connect import open_catalog, open_database
from lakehouse.catalogs.sql.database import Database

__all__ = ["Database", "SqlCatalog", "open_catalog", "open_database"]
