"""Open the catalog and the storage of a lake: the part that differs between profiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from lakehouse.config.profiles import DEFAULT_CATALOG, resolve_profile
from lakehouse.config.settings import Settings
from lakehouse.core.catalog import Catalog, CatalogContext
from lakehouse.core.dataclass import dataclass
from lakehouse.core.files import LOCAL, Files, file_uri
from lakehouse.core.format import FormatContext, TableFormat
from lakehouse.core.refs import acting_author
from lakehouse.core.registry import require
from lakehouse.storage import access
from lakehouse.storage.local import LocalHome
from lakehouse.storage.s3 import is_remote
from lakehouse.storage.warehouse import WarehouseFiles


@dataclass(frozen=True)
class Backend:
    """The catalog and storage of a lake, and how engines access them."""

    settings: Settings
    """With the profile's defaults resolved."""
    home: LocalHome
    catalog: Catalog
    files: Files
    formats: Mapping[str, TableFormat]
    """The table formats of the lake by name; Hudi is missing where no location is kept for its tables."""
    duckdb_access: str = ""
    """The DuckDB statement that grants access to a remote warehouse; empty for a local one."""
    spark: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further Spark settings; they may contain credentials."""

    @property
    def format_settings(self) -> dict[str, str]:
        """The settings that the formats need in every Spark session."""
        in_spark = [table_format.spark for table_format in self.formats.values() if table_format.spark]
        return {name: value for tables in in_spark for name, value in tables.settings.items()}

    @property
    def warehouse(self) -> str:
        """The URI of the warehouse."""
        return _warehouse(self.settings, self.home)

    @property
    def is_remote(self) -> bool:
        """Whether the warehouse is in an object store."""
        return bool(self.duckdb_access)


def author_of(settings: Settings) -> str:
    """Commit author: the caller of a service, else runs.author, else the OS user, who may be unknown in a container."""
    from getpass import getuser

    if author := acting_author() or settings.runs.author:
        return author
    try:
        return getuser()
    except (KeyError, OSError):
        return ""


def warehouse_access(settings: Settings) -> tuple[str, str]:
    """The URI of the warehouse, and the DuckDB statement that grants access to it (empty for a local one)."""
    settings = resolve_profile(settings)
    warehouse = _warehouse(settings, LocalHome(settings.home, settings.shared))
    return warehouse, access.for_duckdb(settings.s3) if is_remote(warehouse) else ""


def _warehouse(settings: Settings, home: LocalHome) -> str:
    return settings.warehouse or file_uri(home.warehouse)


def open_backend(settings: Settings, create: bool = True) -> Backend:
    """Open the catalog and storage that the settings describe.

    Args:
        create: create the lake's folder if it is missing; not needed to ask the catalog what its clients need.
    """
    settings = resolve_profile(settings)
    home = LocalHome(settings.home, settings.shared)
    home = home.ready() if create else home
    warehouse = _warehouse(settings, home)
    remote, s3 = is_remote(warehouse), settings.s3
    files = WarehouseFiles(s3) if remote else LOCAL
    where = settings.catalog
    # A kind's module is imported when it is opened: a cold query in an embedded lake loads the SQL catalog alone.
    catalog: Catalog = require("lakehouse.catalogs", where.kind or DEFAULT_CATALOG)(
        CatalogContext(
            warehouse,
            home.folder,
            where.uri,
            where.token,
            files=files,
            io=access.for_pyiceberg(s3) if remote else {},
            spark_io=access.for_spark(s3) if remote else {},
            author=author_of(settings),
            properties=where.properties,
        )
    )
    stored = access.for_object_store(s3) if remote else {}
    context = FormatContext(catalog, home.warehouse, home.dropped, files, remote, stored)
    opened = {kind: require("lakehouse.formats", kind)(context) for kind in settings.formats}
    return Backend(
        settings,
        home,
        catalog,
        files,
        {kind: tables for kind, tables in opened.items() if tables is not None},
        access.for_duckdb(s3) if remote else "",
        access.for_hadoop(s3) if remote else {},
    )
