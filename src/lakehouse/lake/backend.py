"""Open the catalog and the storage of a lake: the part that differs between profiles."""

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
    """The catalog and storage of a lake, and how engines access them."""

    settings: Settings
    """With the profile's defaults resolved."""
    home: LocalHome
    catalog: Catalog
    files: Files
    hudi: HudiTables | None
    """The Hudi tables; None where the profile has none."""
    duckdb_access: str = ""
    """The DuckDB statement that grants access to a remote warehouse; empty for a local one."""
    spark: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further Spark settings; they may contain credentials."""

    @property
    def is_remote(self) -> bool:
        """Whether the warehouse is in an object store."""
        return bool(self.duckdb_access)


#: Stores the branches of a catalog that has none.
_BRANCHES = "branches.db"


def author_of(settings: Settings) -> str:
    """Commit author: runs.author, else the OS user, who may be unknown in a container."""
    from getpass import getuser

    if settings.runs.author:
        return settings.runs.author
    try:
        return getuser()
    except (KeyError, OSError):
        return ""


def open_backend(settings: Settings) -> Backend:
    """Open the catalog and storage that the settings describe."""
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
    # Imported on demand: a cold query in an embedded lake needs only the SQL catalog.
    match where.kind:
        case "nessie":
            from lakehouse.catalogs.nessie import NessieCatalog
            from lakehouse.catalogs.nessie.api import NessieApi

            api = NessieApi(where.uri, where.token)
            return NessieCatalog(api, warehouse, files=files, io=io, spark_io=spark_io, author=author_of(settings))
        case "hive" | "rest":
            from lakehouse.catalogs.overlay import BranchOverlay

            base = _unbranched(settings, warehouse, files, io, spark_io)
            database = open_database(home.folder / _BRANCHES)
            overlay = SqlCatalog(database, warehouse, io=io, spark_io=spark_io, author=author_of(settings))
            return BranchOverlay(base, overlay)
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
    """Settings for a session on the metastore, where Hudi registers its tables and schema changes."""
    return {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": settings.catalog.uri,
        "spark.sql.warehouse.dir": warehouse,
        "spark.hadoop.hive.exec.scratchdir": str(home.run / "hive"),
        "spark.hadoop.hive.exec.local.scratchdir": str(home.run / "hive"),
    }
