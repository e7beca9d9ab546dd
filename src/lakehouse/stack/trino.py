"""Trino's catalogs as the files that it reads, derived from the endpoints of the stack."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakehouse.config.endpoints import Database, StackEndpoints
from lakehouse.core.quoting import java_properties

#: Trino's expire_snapshots and remove_orphan_files ignore gc.enabled and know one branch. They refuse to delete what is younger
#: than this; access_rules() keeps users from changing it.
_RETENTION = "36500d"
_MIN_RETENTIONS = ("iceberg.expire-snapshots.min-retention", "iceberg.remove-orphan-files.min-retention")


@dataclass(frozen=True)
class ObjectStore:
    """Where the files of tables lie."""

    endpoint: str
    region: str
    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    path_style: bool = True

    def properties(self) -> dict[str, str]:
        given = {
            "fs.native-s3.enabled": "true",
            "s3.endpoint": self.endpoint,
            "s3.region": self.region,
            "s3.path-style-access": str(self.path_style).lower(),
            "s3.aws-access-key": self.access_key,
            "s3.aws-secret-key": self.secret_key,
        }
        return {name: value for name, value in given.items() if value}


@dataclass(frozen=True)
class IcebergOnRest:
    """Any Iceberg REST catalog; Nessie is one, where the prefix is a branch."""

    uri: str
    prefix: str = ""
    warehouse: str = ""
    token: str = field(default="", repr=False)

    def properties(self) -> dict[str, str]:
        given = {
            "connector.name": "iceberg",
            "iceberg.catalog.type": "rest",
            "iceberg.rest-catalog.uri": self.uri,
            "iceberg.rest-catalog.prefix": self.prefix,
            "iceberg.rest-catalog.warehouse": self.warehouse,
            "iceberg.rest-catalog.security": "OAUTH2" if self.token else "",
            "iceberg.rest-catalog.oauth2.token": self.token,
            # The token does not expire, and our server has no endpoint that exchanges it.
            "iceberg.rest-catalog.oauth2.token-refresh-enabled": "false" if self.token else "",
        }
        return {name: value for name, value in given.items() if value}


@dataclass(frozen=True)
class IcebergOnNessie:
    """Nessie through its own API: unlike through REST, a table's older snapshots are there."""

    uri: str
    warehouse: str
    ref: str = "main"

    def properties(self) -> dict[str, str]:
        return {
            "connector.name": "iceberg",
            "iceberg.catalog.type": "nessie",
            "iceberg.nessie-catalog.uri": self.uri,
            "iceberg.nessie-catalog.ref": self.ref,
            "iceberg.nessie-catalog.default-warehouse-dir": self.warehouse,
        }


@dataclass(frozen=True)
class OnHive:
    """Tables of one format in a Hive Metastore: `iceberg`, `hudi` or `hive`.

    Args:
        others: what Trino calls the catalogs that tables of other formats are looked up in, by their format.
    """

    uri: str
    connector: str = "iceberg"
    others: Mapping[str, str] = field(default_factory=dict)

    def properties(self) -> dict[str, str]:
        kind = {"iceberg.catalog.type": "hive_metastore"} if self.connector == "iceberg" else {}
        others = {f"{self.connector}.{other}-catalog-name": name for other, name in self.others.items()}
        return {"connector.name": self.connector, **kind, "hive.metastore.uri": self.uri, **others}


@dataclass(frozen=True)
class OnPostgres:
    """The tables of a PostgreSQL database."""

    database: Database

    def properties(self) -> dict[str, str]:
        return {
            "connector.name": "postgresql",
            "connection-url": self.database.jdbc_url,
            "connection-user": self.database.user,
            "connection-password": self.database.password,
        }


@dataclass(frozen=True)
class Bundled:
    """A connector that needs nothing: `tpch` or `memory`."""

    connector: str

    def properties(self) -> dict[str, str]:
        return {"connector.name": self.connector}


Catalog = IcebergOnRest | IcebergOnNessie | OnHive | OnPostgres | Bundled


def catalog_files(catalogs: Mapping[str, Catalog], store: ObjectStore) -> dict[str, str]:
    """The text of each file in etc/catalog, by the name of the file."""
    return {f"{name}.properties": _text(catalog, store) for name, catalog in catalogs.items()}


def _text(catalog: Catalog, store: ObjectStore) -> str:
    properties = catalog.properties()
    if properties["connector.name"] == "iceberg":
        properties |= dict.fromkeys(_MIN_RETENTIONS, _RETENTION)
    if properties["connector.name"] in ("iceberg", "hudi", "hive"):
        properties |= store.properties()
    return java_properties(properties)


def branch_catalogs(endpoints: StackEndpoints, branches: Sequence[str], on_nessie: bool) -> dict[str, Catalog]:
    """A catalog for each branch that Trino is to see, called as it is. One that is not there yet fails when it is used."""
    if on_nessie:
        return {name: IcebergOnNessie(endpoints.nessie_uri, endpoints.warehouse, name) for name in branches}
    return {name: IcebergOnRest(endpoints.rest_uri, name, token=endpoints.rest_token) for name in branches}


def stack_catalogs(endpoints: StackEndpoints) -> dict[str, Catalog]:
    """What Trino sees of a whole stack. A catalog whose server does not run fails when it is asked, not before."""
    return {
        # Through our REST catalog, where a drop is soft. Trino's own JDBC catalog deletes the files of a dropped table.
        "lake": IcebergOnRest(endpoints.rest_uri, token=endpoints.rest_token),
        "nessie": IcebergOnNessie(endpoints.nessie_uri, endpoints.warehouse),
        "rest": IcebergOnRest(endpoints.rest_uri, token=endpoints.rest_token),
        # A table of the metastore is found by its plain name whatever its format is: Iceberg's catalog hands on what is
        # not its own to Hive's, and that knows which connector reads it.
        "hive": OnHive(endpoints.hive_uri, others={"hive": "metastore"}),
        "metastore": OnHive(endpoints.hive_uri, "hive", {"iceberg": "hive", "hudi": "hudi"}),
        "hudi": OnHive(endpoints.hive_uri, "hudi"),
        "oltp": OnPostgres(endpoints.databases["oltp"]),
        "tpch": Bundled("tpch"),
        "memory": Bundled("memory"),
    }


def access_rules(hard_drops: Sequence[str]) -> str:
    """The rules of Trino's file-based access control: everything is allowed except what deletes files.

    Args:
        hard_drops: catalogs in which DROP TABLE would delete the files of a table, also those that a branch or tag needs. Nobody owns
            a table there: who owns one may drop it, and who does not can neither create nor alter one.
    """
    retentions = "expire_snapshots_min_retention|remove_orphan_files_min_retention"
    change = ["SELECT", "INSERT", "DELETE", "UPDATE"]
    kept = [{"catalog": "|".join(map(re.escape, hard_drops)), "privileges": change}] if hard_drops else []
    rules = {
        "tables": [*kept, {"privileges": [*change, "OWNERSHIP", "GRANT_SELECT"]}],
        "catalog_session_properties": [{"property": retentions, "allow": False}, {"allow": True}],
        "system_session_properties": [{"allow": True}],
        "system_information": [{"allow": ["read", "write"]}],
        "functions": [{"privileges": ["EXECUTE", "GRANT_EXECUTE", "OWNERSHIP"]}],
        "procedures": [{"privileges": ["EXECUTE", "GRANT_EXECUTE"]}],
    }
    return json.dumps(rules, indent=2) + "\n"


def hard_drops(catalogs: Mapping[str, Catalog]) -> list[str]:
    """The catalogs in which Trino's DROP TABLE deletes files. Its Hudi connector cannot drop tables."""

    def deletes(catalog: Catalog) -> bool:
        on_hive = isinstance(catalog, OnHive) and catalog.connector != "hudi"
        return on_hive or isinstance(catalog, IcebergOnNessie)

    return [name for name, each in catalogs.items() if deletes(each)]


def access_control(rules: str) -> str:
    """The file that has Trino apply the rules in another file."""
    return java_properties({"access-control.name": "file", "security.config-file": rules})


def store_of(endpoints: StackEndpoints) -> ObjectStore:
    """The stack's own object store."""
    return ObjectStore(endpoints.s3_endpoint, endpoints.s3_region, endpoints.s3_access_key, endpoints.s3_secret_key)
