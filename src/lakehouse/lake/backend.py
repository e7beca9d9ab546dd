"""The catalog and the files that settings ask for: the part of a lake that differs from profile to profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.config.profiles import resolve_profile
from lakehouse.config.settings import Settings
from lakehouse.core.files import LOCAL, Files
from lakehouse.core.uris import file_uri
from lakehouse.formats.hudi import HudiTables
from lakehouse.formats.hudi.places import LocalFolders, MetastoreEntries
from lakehouse.storage import access
from lakehouse.storage.local import LocalHome
from lakehouse.storage.s3 import is_remote
from lakehouse.storage.warehouse import WarehouseFiles

if TYPE_CHECKING:
    from lakehouse.catalogs.nessie import NessieCatalog
    from lakehouse.catalogs.overlay import BaseCatalog, BranchOverlay

    Catalog = SqlCatalog | NessieCatalog | BranchOverlay


@dataclass(frozen=True)
class Backend:
    """Where a lake's tables are, and how to get at them."""

    settings: Settings
    """With everything filled in that the profile says."""
    home: LocalHome
    catalog: Catalog
    files: Files
    hudi: HudiTables | None
    """Where Hudi's tables are; None where no place is kept for them."""
    duckdb_access: str = ""
    """The statement that lets DuckDB at the warehouse; nothing for a local one."""
    spark: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What a Spark session needs beyond the catalog. It may hold keys."""

    @property
    def is_remote(self) -> bool:
        """Whether the tables lie in an object store."""
        return bool(self.duckdb_access)


#: Where branches are kept for a catalog that has none.
_BRANCHES = "branches.db"


def author_of(settings: Settings) -> str:
    """Who is written down with commits: whom the settings name, or whom the system does; in a container it may not."""
    from getpass import getuser

    if settings.runs.author:
        return settings.runs.author
    try:
        return getuser()
    except (KeyError, OSError):
        return ""


def open_backend(settings: Settings) -> Backend:
    """The catalog and the files of the lake that settings describe."""
    settings = resolve_profile(settings)
    home = LocalHome(settings.home).ready()
    warehouse = settings.warehouse or file_uri(home.warehouse)
    if not is_remote(warehouse):
        local = HudiTables(LocalFolders(home.warehouse, home.dropped))
        return Backend(settings, home, _catalog(settings, home, warehouse, LOCAL, {}, {}), LOCAL, local)
    s3, files = settings.s3, WarehouseFiles(settings.s3)
    catalog = _catalog(settings, home, warehouse, files, access.for_pyiceberg(s3), access.for_spark(s3))
    on_hive = settings.catalog.kind == "hive"
    return Backend(
        settings,
        home,
        catalog,
        files,
        _hudi_on_hive(settings, warehouse, files) if on_hive else None,
        access.for_duckdb(s3),
        {**access.for_hadoop(s3), **_hive_session(settings, home, warehouse)} if on_hive else {},
    )


def _catalog(
    settings: Settings,
    home: LocalHome,
    warehouse: str,
    files: Files,
    io: Mapping[str, str],
    spark_io: Mapping[str, str],
) -> Catalog:
    where = settings.catalog
    # Each is imported when it is asked for: a cold query in an embedded lake waits for none but the first.
    match where.kind:
        case "nessie":
            from lakehouse.catalogs.nessie import NessieCatalog
            from lakehouse.catalogs.nessie.api import NessieApi

            api = NessieApi(where.uri, where.token)
            return NessieCatalog(api, warehouse, files=files, io=io, spark_io=spark_io, author=author_of(settings))
        case "hive" | "rest":
            from lakehouse.catalogs.overlay import BranchOverlay

            theirs = _unbranched(settings, warehouse, files, io, spark_io)
            database = open_database(home.folder / _BRANCHES)
            ours = SqlCatalog(database, warehouse, io=io, spark_io=spark_io, author=author_of(settings))
            return BranchOverlay(theirs, ours)
    database = open_database(where.uri or home.catalog_file)
    return SqlCatalog(database, warehouse, io=io, spark_io=spark_io, author=author_of(settings))


def _unbranched(
    settings: Settings, warehouse: str, files: Files, io: Mapping[str, str], spark_io: Mapping[str, str]
) -> BaseCatalog:
    where = settings.catalog
    if where.kind == "hive":
        from lakehouse.catalogs.hive import HiveCatalog

        return HiveCatalog(where.uri, warehouse, io=io, spark_io=spark_io)
    from lakehouse.catalogs.rest import RestCatalog

    return RestCatalog(where.uri, token=where.token, files=files, io=io, spark_io=spark_io)


def _hudi_on_hive(settings: Settings, warehouse: str, files: Files) -> HudiTables:
    from lakehouse.catalogs.hive import HudiEntries, Metastore

    entries = HudiEntries(Metastore(settings.catalog.uri), warehouse)
    return HudiTables(MetastoreEntries(entries, files, access.for_object_store(settings.s3)))


def _hive_session(settings: Settings, home: LocalHome, warehouse: str) -> dict[str, str]:
    """A session whose own catalog is the metastore: Hudi keeps its tables there, and tells it of every new schema."""
    return {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": settings.catalog.uri,
        "spark.sql.warehouse.dir": warehouse,
        "spark.hadoop.hive.exec.scratchdir": str(home.run / "hive"),
        "spark.hadoop.hive.exec.local.scratchdir": str(home.run / "hive"),
    }
