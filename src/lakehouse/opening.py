"""The catalog and the files that settings ask for: the part of a lake that differs from profile to profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.config.profiles import filled_in
from lakehouse.config.settings import Settings
from lakehouse.core.files import LOCAL, Files
from lakehouse.core.uris import file_uri
from lakehouse.storage import access
from lakehouse.storage.local import LocalHome
from lakehouse.storage.s3 import is_remote
from lakehouse.storage.warehouse import WarehouseFiles

if TYPE_CHECKING:
    from lakehouse.catalogs.hive import HiveCatalog
    from lakehouse.catalogs.nessie import NessieCatalog
    from lakehouse.catalogs.rest import RestCatalog

    Catalog = SqlCatalog | NessieCatalog | HiveCatalog | RestCatalog


@dataclass(frozen=True)
class Opened:
    """Where a lake's tables are, and how to get at them."""

    settings: Settings
    """With everything filled in that the profile says."""
    home: LocalHome
    catalog: Catalog
    files: Files
    duckdb_access: str
    """The statement that lets DuckDB at the warehouse; nothing for a local one."""
    is_remote: bool
    """Whether the tables lie in an object store."""


def author_of(settings: Settings) -> str:
    """Who is written down with commits: whom the settings name, or whom the system does; in a container it may not."""
    from getpass import getuser

    if settings.runs.author:
        return settings.runs.author
    try:
        return getuser()
    except (KeyError, OSError):
        return ""


def open_parts(settings: Settings) -> Opened:
    """The catalog and the files of the lake that settings describe."""
    settings = filled_in(settings)
    home = LocalHome(settings.home).ready()
    warehouse = settings.warehouse or file_uri(home.warehouse)
    remote = is_remote(warehouse)
    files = WarehouseFiles(settings.s3) if remote else LOCAL
    catalog = _catalog(settings, home, warehouse, files)
    return Opened(settings, home, catalog, files, access.for_duckdb(settings.s3) if remote else "", remote)


def _catalog(settings: Settings, home: LocalHome, warehouse: str, files: Files) -> Catalog:
    where, remote = settings.catalog, is_remote(warehouse)
    io = access.for_pyiceberg(settings.s3) if remote else {}
    spark_io = access.for_spark(settings.s3) if remote else {}
    # Each is imported when it is asked for: a cold query in an embedded lake waits for none but the first.
    match where.kind:
        case "nessie":
            from lakehouse.catalogs.nessie import NessieCatalog
            from lakehouse.catalogs.nessie.api import NessieApi

            api = NessieApi(where.uri, where.token)
            return NessieCatalog(api, warehouse, files=files, io=io, spark_io=spark_io, author=author_of(settings))
        case "hive":
            from lakehouse.catalogs.hive import HiveCatalog

            return HiveCatalog(where.uri, warehouse, io=io, spark_io=spark_io)
        case "rest":
            from lakehouse.catalogs.rest import RestCatalog

            return RestCatalog(where.uri, token=where.token, io=io, spark_io=spark_io)
    database = open_database(where.uri or home.catalog_file)
    return SqlCatalog(database, warehouse, io=io, spark_io=spark_io, author=author_of(settings))
