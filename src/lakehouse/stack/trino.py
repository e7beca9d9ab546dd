"""The catalog files of Trino: the properties that a catalog names for Trino, with the keys of the object store."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from lakehouse.catalogs.hive import HiveCatalog
from lakehouse.catalogs.nessie import NessieCatalog
from lakehouse.catalogs.nessie.api import NessieApi
from lakehouse.catalogs.rest import RestCatalog
from lakehouse.config.endpoints import StackEndpoints
from lakehouse.config.settings import Settings
from lakehouse.core.catalog import Catalog
from lakehouse.core.names import CATALOG
from lakehouse.core.quoting import java_properties
from lakehouse.storage.access import for_trino
from lakehouse.storage.s3 import S3Settings

#: Trino's expire_snapshots and remove_orphan_files ignore gc.enabled and know one branch. They refuse to delete what is younger
#: than this; access_rules() keeps users from changing it.
_RETENTION = "36500d"
_MIN_RETENTIONS = ("iceberg.expire-snapshots.min-retention", "iceberg.remove-orphan-files.min-retention")


Properties = Mapping[str, str]


def catalog_files(catalogs: Mapping[str, Properties], s3: S3Settings) -> dict[str, str]:
    """The text of each file in etc/catalog, by the name of the file.

    Args:
        s3: the object store with the tables' files.
    """
    return {f"{name}.properties": _text(dict(properties), s3) for name, properties in catalogs.items()}


def _text(properties: dict[str, str], s3: S3Settings) -> str:
    if properties["connector.name"] == "iceberg":
        properties |= dict.fromkeys(_MIN_RETENTIONS, _RETENTION)
    if properties["connector.name"] in ("iceberg", "hudi", "hive"):
        properties |= for_trino(s3)
    return java_properties(properties)


def lake_catalogs(catalog: Catalog, settings: Settings, endpoints: StackEndpoints) -> dict[str, Properties]:
    """The lake's own catalog as Trino sees it, and the branches in `trino.branches`, each as a catalog of its name.

    A branch that is not there yet fails when it is used.
    """
    own, name = settings.catalog, settings.trino.catalog or CATALOG
    if own.uri == endpoints.databases["lake"].url:
        # Through our REST catalog, where a drop is soft. Trino's own JDBC catalog deletes the files of a dropped table.
        return {
            **_our_rest_server(endpoints, name),
            **{branch: _our_rest_server(endpoints, branch, branch)[branch] for branch in settings.trino.branches},
        }
    catalogs = dict(catalog.trino_catalogs(name))
    for branch in settings.trino.branches:
        catalogs |= catalog.on(branch).trino_catalogs(branch)
    return catalogs


def stack_catalogs(endpoints: StackEndpoints) -> dict[str, Properties]:
    """The catalogs of a whole stack. A catalog whose server does not run fails when it is used, not before."""
    oltp = endpoints.databases["oltp"]
    return {
        **_our_rest_server(endpoints, "lake"),
        **_our_rest_server(endpoints, "rest"),
        **NessieCatalog(NessieApi(endpoints.nessie_uri), endpoints.warehouse).trino_catalogs("nessie"),
        **HiveCatalog(endpoints.hive_uri, endpoints.warehouse).trino_catalogs("hive"),
        "oltp": {
            "connector.name": "postgresql",
            "connection-url": oltp.jdbc_url,
            "connection-user": oltp.user,
            "connection-password": oltp.password,
        },
        "tpch": {"connector.name": "tpch"},
        "memory": {"connector.name": "memory"},
    }


def _our_rest_server(endpoints: StackEndpoints, name: str, branch: str = "") -> Mapping[str, Properties]:
    return RestCatalog(endpoints.rest_uri, prefix=branch, token=endpoints.rest_token).trino_catalogs(name)


def access_rules(hard_drops: Sequence[str]) -> str:
    """The rules of Trino's file-based access control: everything is allowed except what deletes files.

    Args:
        hard_drops: catalogs in which DROP TABLE would delete the files of a table, also those that a branch or tag needs. Nobody owns
            a table there: its owner could drop it. So nobody can create or alter a table there either.
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


def hard_drops(catalogs: Mapping[str, Properties]) -> list[str]:
    """The catalogs in which Trino's DROP TABLE deletes files: those of Iceberg and Hive, except through a REST server, which decides itself.

    Trino's Hudi connector cannot drop tables.
    """

    def deletes(properties: Properties) -> bool:
        is_iceberg = properties["connector.name"] == "iceberg" and properties["iceberg.catalog.type"] != "rest"
        return is_iceberg or properties["connector.name"] == "hive"

    return [name for name, properties in catalogs.items() if deletes(properties)]


def access_control(rules: str) -> str:
    """The file that has Trino apply the rules in another file."""
    return java_properties({"access-control.name": "file", "security.config-file": rules})
