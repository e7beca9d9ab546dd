"""What the clients of a catalog need: settings and jars of Spark, the statement with which DuckDB attaches it."""

from __future__ import annotations

from collections.abc import Mapping

from lakehouse.core.dataclass import dataclass
from lakehouse.core.names import CATALOG
from lakehouse.core.quoting import text

#: Iceberg tries a commit 4 times by default, which 8 writers at once exhaust.
COMMIT_RETRIES = 30

_EVERY = {
    # Spark's cache would hide commits of PyIceberg and of other sessions.
    "cache-enabled": "false",
    # Version 2, because PyIceberg reads version 3 but cannot write it.
    "table-default.format-version": "2",
    "table-default.commit.retry.num-retries": str(COMMIT_RETRIES),
    "table-default.write.parquet.compression-codec": "zstd",
}


def spark_catalog(name: str, facts: Mapping[str, str]) -> dict[str, str]:
    """The settings of a session that sees a catalog under a name; `facts` are the kind's own, and go before the others."""
    prefix = f"spark.sql.catalog.{name}"
    return {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        **{f"{prefix}.{key}": value for key, value in {**_EVERY, **facts}.items()},
    }


@dataclass(frozen=True)
class MavenArtifact:
    """A pinned file of a Maven repository: a jar, or the archive of a server."""

    group: str
    name: str
    version: str
    sha256: str
    size: int
    classifier: str = ""
    """Selects one of several files of a version (default: the main one)."""
    ext: str = "jar"
    """The file extension; that of a server is tar.gz."""

    @property
    def file(self) -> str:
        """The file name."""
        return "-".join(filter(None, (self.name, self.version, self.classifier))) + f".{self.ext}"

    @property
    def path(self) -> str:
        """The path in a Maven repository."""
        return f"{self.group.replace('.', '/')}/{self.name}/{self.version}/{self.file}"

    @property
    def coordinates(self) -> str:
        """The Maven coordinates, for messages."""
        return f"{self.group}:{self.name}:{self.version}"


def duckdb_attachment(uri: str, properties: Mapping[str, str]) -> str:
    """The statement that attaches a REST catalog in DuckDB, by the properties that PyIceberg and Spark get."""
    given = {
        "ENDPOINT": uri,
        **_duckdb_login(properties),
        "ACCESS_DELEGATION_MODE": "none",
    }
    options = ", ".join(f"{name} {text(value)}" for name, value in given.items() if value)
    return f"ATTACH {text(properties.get('warehouse', ''))} AS {CATALOG} (TYPE iceberg, {options})"


def _duckdb_login(properties: Mapping[str, str]) -> dict[str, str]:
    if token := properties.get("token", ""):
        return {"TOKEN": token}
    if properties.get("rest.sigv4-enabled", "").lower() == "true":
        return {"AUTHORIZATION_TYPE": "sigv4"}
    if "credential" not in properties:
        return {"AUTHORIZATION_TYPE": "none"}
    client, _, secret = properties["credential"].rpartition(":")
    return {
        "CLIENT_ID": client,
        "CLIENT_SECRET": secret,
        "OAUTH2_SERVER_URI": properties.get("oauth2-server-uri", ""),
        "OAUTH2_SCOPE": properties.get("scope", ""),
    }
