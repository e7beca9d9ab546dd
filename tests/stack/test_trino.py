"""Trino's catalogs as files, from plain endpoints."""

from __future__ import annotations

from lakehouse.config.endpoints import Database
from lakehouse.stack.trino import (
    Bundled,
    IcebergOnNessie,
    IcebergOnRest,
    ObjectStore,
    OnHive,
    OnPostgres,
    catalog_files,
)

STORE = ObjectStore("http://s3:9000", "eu-west-1", "key", "secret")
DATABASE = Database("db", 5432, "lake", "me", "hidden")


def properties(catalog: object, store: ObjectStore = STORE) -> dict[str, str]:
    (text,) = catalog_files({"x": catalog}, store).values()  # type: ignore[dict-item]
    return dict(line.split("=", 1) for line in text.splitlines())


def test_a_file_is_named_after_its_catalog() -> None:
    assert list(catalog_files({"a": Bundled("tpch"), "b": Bundled("memory")}, STORE)) == [
        "a.properties",
        "b.properties",
    ]


def test_a_branch_of_a_sql_catalog_is_a_prefix_of_the_rest_catalog() -> None:
    found = properties(IcebergOnRest("http://r", "run_42"))
    assert found["iceberg.rest-catalog.prefix"] == "run_42"


def test_every_iceberg_catalog_keeps_snapshots_and_files() -> None:
    for catalog in (IcebergOnRest("http://r"), IcebergOnNessie("http://n", "s3://b/w"), OnHive("thrift://h")):
        assert properties(catalog)["iceberg.expire-snapshots.min-retention"] == "36500d"
        assert properties(catalog)["iceberg.remove-orphan-files.min-retention"] == "36500d"


def test_catalogs_of_files_know_the_object_store_and_others_do_not() -> None:
    for catalog in (IcebergOnRest("http://r"), IcebergOnNessie("http://n", "s3://b/w"), OnHive("thrift://h", "hudi")):
        assert properties(catalog)["s3.endpoint"] == "http://s3:9000"
    for catalog in (OnPostgres(DATABASE), Bundled("tpch")):
        assert not any(name.startswith(("s3.", "fs.")) for name in properties(catalog))


def test_a_store_without_keys_leaves_them_to_the_machine() -> None:
    found = properties(IcebergOnRest("http://r"), ObjectStore("", "us-east-1", "", ""))
    assert not {"s3.endpoint", "s3.aws-access-key", "s3.aws-secret-key"} & set(found)


def test_a_token_switches_on_who_may_ask() -> None:
    assert "iceberg.rest-catalog.security" not in properties(IcebergOnRest("http://r"))
    assert properties(IcebergOnRest("http://r", token="t"))["iceberg.rest-catalog.security"] == "OAUTH2"


def test_hudi_is_read_through_its_own_connector() -> None:
    assert properties(OnHive("thrift://h", "hudi"))["connector.name"] == "hudi"
    assert properties(OnHive("thrift://h"))["iceberg.catalog.type"] == "hive_metastore"


def test_tables_of_other_formats_are_looked_up_in_other_catalogs() -> None:
    assert properties(OnHive("thrift://h", others={"hive": "m"}))["iceberg.hive-catalog-name"] == "m"
    found = properties(OnHive("thrift://h", "hive", {"iceberg": "i", "hudi": "u"}))
    assert (found["hive.iceberg-catalog-name"], found["hive.hudi-catalog-name"]) == ("i", "u")


def test_no_secret_is_printed() -> None:
    assert "hidden" not in repr(IcebergOnRest("http://r", token="hidden")) + repr(OnPostgres(DATABASE))
    assert "secret'" not in repr(STORE)
