"""The SQL catalog: the tables of Iceberg's JdbcCatalog in SQLite or PostgreSQL, shared by Spark, PyIceberg, Trino and us.

A table is a row that points to its newest metadata file, keyed by (catalog name, namespace, table). So reading a pointer
needs only the database's own library. Each catalog name is a separate set of pointers: a branch is one, and dropped tables
are another.
"""

from __future__ import annotations

from pathlib import Path

from lakehouse.catalogs.sql.catalog import SqlCatalog
from lakehouse.catalogs.sql.database import Database
from lakehouse.core.catalog import CatalogContext

__all__ = ["Database", "SqlCatalog", "open_catalog", "open_database"]

_POSTGRES = ("postgresql://", "postgres://")
_FILE = "catalog.db"


def open_catalog(context: CatalogContext) -> SqlCatalog:
    """Open the SQL catalog at `catalog.uri`, by default a SQLite file in the lake's folder."""
    return SqlCatalog(
        open_database(context.uri or context.folder / _FILE),
        context.warehouse,
        io=context.io,
        spark_io=context.spark_io,
        author=context.author,
    )


def open_database(address: str | Path) -> Database:
    """Return the database at a path (SQLite) or at a postgresql:// address; it connects on first use."""
    if str(address).startswith(_POSTGRES):
        from lakehouse.catalogs.sql.postgres import PostgresDatabase

        return PostgresDatabase(str(address))
    from lakehouse.catalogs.sql.sqlite import SqliteDatabase

    return SqliteDatabase(Path(address))
