"""Trino's catalogs as files: what each catalog says of itself, the object store, and what protects files from a drop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from lakehouse.catalogs.hive import HiveCatalog
from lakehouse.catalogs.nessie import NessieCatalog
from lakehouse.catalogs.nessie.api import NessieApi
from lakehouse.catalogs.rest import RestCatalog
from lakehouse.config.endpoints import endpoints_of
from lakehouse.config.settings import CatalogSettings, Settings, TrinoSettings
from lakehouse.core.catalog import TableCatalog
from lakehouse.core.errors import NotSupportedError
from lakehouse.engine_config import snippet
from lakehouse.lake.backend import open_backend
from lakehouse.stack.trino import catalog_files, hard_drops, lake_catalogs, stack_catalogs
from lakehouse.storage.s3 import S3Settings

STORE = S3Settings("http://s3:9000", "eu-west-1", "key", "secret")
REST = RestCatalog("http://r")
NESSIE = NessieCatalog(NessieApi("http://n/api/v2"), "s3://b/w")
HIVE = HiveCatalog("thrift://h:9083", "s3://b/w")


def properties(catalog: TableCatalog, name: str = "x", store: S3Settings = STORE) -> dict[str, str]:
    text = catalog_files(catalog.trino_catalogs("x"), store)[f"{name}.properties"]
    return dict(line.split("=", 1) for line in text.splitlines())


def test_a_branch_of_a_sql_catalog_is_a_prefix_of_the_rest_catalog() -> None:
    assert properties(RestCatalog("http://r", prefix="run_42"))["iceberg.rest-catalog.prefix"] == "run_42"


@pytest.mark.parametrize("catalog", [REST, NESSIE, HIVE], ids=["rest", "nessie", "hive"])
def test_every_iceberg_catalog_keeps_snapshots_and_files_and_knows_the_object_store(catalog: TableCatalog) -> None:
    entries = properties(catalog)
    assert entries["iceberg.expire-snapshots.min-retention"] == "36500d"
    assert entries["iceberg.remove-orphan-files.min-retention"] == "36500d"
    assert entries["s3.endpoint"] == "http://s3:9000"


def test_a_store_without_keys_leaves_them_to_the_machine() -> None:
    entries = properties(REST, store=S3Settings())
    assert not {"s3.endpoint", "s3.aws-access-key", "s3.aws-secret-key"} & set(entries)


def test_a_token_or_a_credential_switches_on_who_may_ask() -> None:
    assert "iceberg.rest-catalog.security" not in properties(REST)
    assert properties(RestCatalog("http://r", token="t"))["iceberg.rest-catalog.security"] == "OAUTH2"
    oauth = properties(RestCatalog("http://r", properties={"credential": "me:s", "oauth2-server-uri": "http://login"}))
    assert oauth["iceberg.rest-catalog.security"] == "OAUTH2"
    assert oauth["iceberg.rest-catalog.oauth2.credential"] == "me:s"
    assert oauth["iceberg.rest-catalog.oauth2.server-uri"] == "http://login"


def test_tables_of_other_formats_in_a_metastore_are_looked_up_in_other_catalogs() -> None:
    assert properties(HIVE)["iceberg.catalog.type"] == "hive_metastore"
    assert properties(HIVE)["iceberg.hive-catalog-name"] == "metastore"
    metastore = properties(HIVE, "metastore")
    assert (metastore["hive.iceberg-catalog-name"], metastore["hive.hudi-catalog-name"]) == ("x", "hudi")
    assert properties(HIVE, "hudi")["connector.name"] == "hudi"


def test_a_drop_is_hard_wherever_no_rest_server_decides(tmp_path: Path) -> None:
    assert sorted(hard_drops(stack_catalogs(endpoints_of(Settings(home=tmp_path))))) == ["hive", "metastore", "nessie"]


# ---- the lake's own catalog -------------------------------------------------------------------------------------


def own(settings: Settings) -> Mapping[str, Mapping[str, str]]:
    backend = open_backend(settings)
    return lake_catalogs(backend.catalog, backend.settings, endpoints_of(settings))


def test_a_sql_catalog_of_the_stack_is_reached_over_rest_and_its_branches_too(tmp_path: Path) -> None:
    settings = Settings(profile="sql", home=tmp_path, trino=TrinoSettings(branches=("exp",)))
    seen = own(settings)
    uri = endpoints_of(settings).rest_uri
    assert {name: entries["iceberg.rest-catalog.uri"] for name, entries in seen.items()} == {"lake": uri, "exp": uri}
    assert seen["exp"]["iceberg.rest-catalog.prefix"] == "exp"


def test_a_branch_in_nessie_is_a_ref(tmp_path: Path) -> None:
    seen = own(Settings(profile="stack", home=tmp_path, trino=TrinoSettings(branches=("exp",))))
    assert {name: entries["iceberg.nessie-catalog.ref"] for name, entries in seen.items()} == {
        "nessie": "main",
        "exp": "exp",
    }


@pytest.mark.parametrize(
    ("kind", "uri"),
    [
        ("nessie", "http://nessie.example/api/v2"),
        ("rest", "https://rest.example"),
        ("hive", "thrift://hive.example:9083"),
    ],
)
def test_a_catalog_of_ones_own_is_printed_with_its_own_address(tmp_path: Path, kind: str, uri: str) -> None:
    settings = Settings(profile="sql", home=tmp_path, catalog=CatalogSettings(kind=kind, uri=uri))
    printed = snippet("trino", replace(settings, s3=S3Settings("https://s3.example", access_key="mine")))
    assert f"={uri}\n" in printed
    assert "s3.endpoint=https://s3.example\n" in printed


def test_a_catalog_in_a_sqlite_file_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(NotSupportedError) as refused:
        snippet("trino", Settings(home=tmp_path))
    assert "lake up rest" in refused.value.hint
