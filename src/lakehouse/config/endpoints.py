"""The endpoints of a stack: addresses, names and keys for its clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from urllib.parse import quote

from lakehouse.config.secrets import Secrets, secrets_of
from lakehouse.config.settings import Settings
from lakehouse.core.dataclass import dataclass
from lakehouse.core.names import CATALOG
from lakehouse.storage.s3 import S3Settings

#: The databases in PostgreSQL, each with a user of the same name.
DATABASES = ("lake", "hive", "nessie", "oltp")


@dataclass(frozen=True)
class Database:
    """A database of the stack's PostgreSQL and the user who owns it."""

    host: str
    port: int
    name: str
    user: str
    password: str = field(repr=False)

    @property
    def url(self) -> str:
        """The address for psycopg, SQLAlchemy and `catalog.uri`."""
        return f"postgresql://{quote(self.user)}:{quote(self.password, safe='')}@{self.host}:{self.port}/{self.name}"

    @property
    def jdbc_url(self) -> str:
        """The address for JDBC, without user and password."""
        return f"jdbc:postgresql://{self.host}:{self.port}/{self.name}"


@dataclass(frozen=True)
class CatalogServer:
    """A server of the stack that holds a catalog."""

    uri: str = field(default="", repr=False)  # it may hold a password
    token: str = field(default="", repr=False)
    trino_catalog: str = CATALOG
    """The name of the catalog in the stack's Trino."""


@dataclass(frozen=True)
class StackEndpoints:
    """Where each server of the stack is reached, with defaults resolved. Says nothing of whether it runs."""

    host: str
    """The host of the services that `lake up` starts."""
    s3_endpoint: str
    s3_region: str
    bucket: str
    s3_access_key: str = field(repr=False)
    s3_secret_key: str = field(repr=False)
    databases: Mapping[str, Database]
    """By name: lake (the SQL catalog), hive, nessie, oltp."""
    nessie_uri: str
    """Nessie's API v2, for NessieCatalog."""
    nessie_iceberg_uri: str
    """Nessie as an Iceberg REST catalog."""
    rest_uri: str
    """Our own Iceberg REST catalog."""
    rest_token: str = field(repr=False)
    rest_read_token: str = field(repr=False)
    hive_uri: str
    trino_url: str
    connect_url: str

    def catalog_server(self, kind: str) -> CatalogServer:
        """The server for a kind of catalog; without an address for a kind that the stack has none for."""
        servers = {
            "sql": CatalogServer(self.databases["lake"].url),
            "rest": CatalogServer(self.rest_uri, self.rest_token, "rest"),
            "nessie": CatalogServer(self.nessie_uri, trino_catalog="nessie"),
            "hive": CatalogServer(self.hive_uri, trino_catalog="hive"),
        }
        return servers.get(kind, CatalogServer())

    @property
    def s3(self) -> S3Settings:
        """The object store of the stack."""
        return S3Settings(self.s3_endpoint, self.s3_region, self.s3_access_key, self.s3_secret_key)

    @property
    def warehouse(self) -> str:
        """The location of new tables in the bucket."""
        return f"s3://{self.bucket}/warehouse"


def endpoints_of(settings: Settings, secrets: Secrets | None = None) -> StackEndpoints:
    """The endpoints of the stack that the settings describe.

    Args:
        secrets: its passwords (default: those of the lake, generated on first use).
    """
    stack, secrets = settings.stack, secrets or secrets_of(settings)
    at = stack.host_of
    passwords = {name: getattr(secrets, f"{name}_password") for name in DATABASES}
    return StackEndpoints(
        host=stack.host_of(),
        s3_endpoint=f"http://{at('storage')}:{stack.storage_port}",
        s3_region=stack.region,
        bucket=stack.bucket,
        s3_access_key=secrets.access_key,
        s3_secret_key=secrets.secret_key,
        databases={
            name: Database(at("postgres"), stack.postgres_port, name, name, password)
            for name, password in passwords.items()
        },
        nessie_uri=f"http://{at('nessie')}:{stack.nessie_port}/api/v2",
        nessie_iceberg_uri=f"http://{at('nessie')}:{stack.nessie_port}/iceberg",
        rest_uri=f"http://{at('rest')}:{stack.rest_port}",
        rest_token=secrets.rest_token,
        rest_read_token=secrets.rest_read_token,
        hive_uri=f"thrift://{at('hive')}:{stack.hive_port}",
        trino_url=f"http://{at('trino')}:{stack.trino_port}",
        connect_url=f"sc://{at('connect')}:{stack.connect_port}",
    )
