"""What a stack is to those who use it: addresses, names and keys, in one plain dataclass that knows no server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from lakehouse.config.secrets import Secrets, secrets_of
from lakehouse.config.settings import Settings

#: A database and a user of the same name for each of those who keep something in PostgreSQL.
DATABASES = ("lake", "hive", "nessie", "oltp")


@dataclass(frozen=True)
class Database:
    """One database of the stack's PostgreSQL, and the user who owns it."""

    host: str
    port: int
    name: str
    user: str
    password: str = field(repr=False)

    @property
    def url(self) -> str:
        """For psycopg, SQLAlchemy and settings of ours."""
        return f"postgresql://{quote(self.user)}:{quote(self.password, safe='')}@{self.host}:{self.port}/{self.name}"

    @property
    def jdbc_url(self) -> str:
        """For Java, which gets user and password apart."""
        return f"jdbc:postgresql://{self.host}:{self.port}/{self.name}"


@dataclass(frozen=True)
class StackEndpoints:
    """Where everything is. What a setting leaves open is filled in; whether a server runs is not said here."""

    host: str
    """This machine, where services are found that are not somebody else's."""
    s3_endpoint: str
    s3_region: str
    bucket: str
    s3_access_key: str = field(repr=False)
    s3_secret_key: str = field(repr=False)
    databases: Mapping[str, Database]
    """By name: lake (the SQL catalog), hive, nessie, oltp."""
    nessie_uri: str
    """Nessie's own API v2, for NessieCatalog."""
    nessie_iceberg_uri: str
    """Nessie as an Iceberg REST catalog."""
    rest_uri: str
    """Our own Iceberg REST catalog."""
    hive_uri: str
    trino_url: str
    connect_url: str

    @property
    def warehouse(self) -> str:
        """Where tables lie in the bucket."""
        return f"s3://{self.bucket}/warehouse"


def endpoints_of(settings: Settings) -> StackEndpoints:
    """The endpoints of the stack that the settings describe; passwords are made up if this is the first time."""
    return endpoints_from(settings, secrets_of(settings))


def endpoints_from(settings: Settings, secrets: Secrets) -> StackEndpoints:
    """The same, with secrets that the caller has."""
    stack = settings.stack
    at = stack.reached_at
    passwords = {name: getattr(secrets, f"{name}_password") for name in DATABASES}
    return StackEndpoints(
        host=stack.reached_at(""),
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
        hive_uri=f"thrift://{at('hive')}:{stack.hive_port}",
        trino_url=f"http://{at('trino')}:{stack.trino_port}",
        connect_url=f"sc://{at('connect')}:{stack.connect_port}",
    )
