"""The SQL catalog: Iceberg's own tables in SQLite or PostgreSQL, shared by Spark (JdbcCatalog), PyIceberg, Trino and us.

A table is a row that points at its newest metadata file, keyed by (catalog name, namespace, table). Reading a
pointer therefore needs nothing but the database's own library. The catalog name is more than a label: another name is
another set of pointers. That is what a branch is, and how a dropped table is kept.
"""

from lakehouse.catalogs.sql.catalog import SqlCatalog
from lakehouse.catalogs.sql.database import Database, open_database
from lakehouse.catalogs.sql.sqlite import BUSY_TIMEOUT_MS, SqliteDatabase

__all__ = ["BUSY_TIMEOUT_MS", "Database", "SqlCatalog", "SqliteDatabase", "open_database"]
