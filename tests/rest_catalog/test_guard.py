"""Who is let in, and who is told the keys to the storage."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.support.servers.rest_catalog import Serve, make_table
from tests.support.servers.s3 import S3Server

from lakehouse.catalogs.sql import SqlCatalog, open_database

KEYS = ("s3.access-key-id", "s3.secret-access-key")


def test_without_a_right_token_nothing_is_answered(serve: Serve) -> None:
    served = serve(tokens=["first", "second"])
    assert served.ask("GET", "namespaces").status_code == 200
    assert served.ask("GET", "namespaces", Authorization="Bearer second").status_code == 200
    for wrong in ("", "Bearer", "Bearer ", "Bearer third", "Basic first", "Bearer firs", "Bearer första"):
        refused = served.ask("GET", "config", Authorization=wrong.encode().decode("latin-1"))
        assert refused.status_code == 401, wrong
        assert refused.json()["error"]["type"] == "NotAuthorizedException"
        assert "first" not in refused.text


@pytest.mark.slow
def test_keys_are_told_only_to_those_who_ask(serve: Serve, s3_server: S3Server, tmp_path: Path) -> None:
    files = {
        "s3.endpoint": s3_server.endpoint,
        "s3.region": "us-east-1",
        "s3.access-key-id": s3_server.access_key,
        "s3.secret-access-key": s3_server.secret_key,
    }
    warehouse = f"s3://{s3_server.make_bucket()}/warehouse"
    catalog_of_bucket = SqlCatalog(open_database(tmp_path / "catalog.db"), warehouse)
    served = serve(catalog_of_bucket, files=files, tokens=["t"])
    made = make_table(served, "leads")
    assert made["metadata-location"].startswith("s3://")
    path = "namespaces/crm/tables/leads"
    for asked in ("", "remote-signing"):
        plain = served.ask("GET", path, **({"X_Iceberg_Access_Delegation": asked} if asked else {}))
        assert plain.json()["config"] == {}
        assert s3_server.secret_key not in plain.text
    told = served.ask("GET", path, X_Iceberg_Access_Delegation="remote-signing, vended-credentials").json()
    assert {key: told["config"][key] for key in KEYS} == {key: files[key] for key in KEYS}
    assert told["storage-credentials"][0]["prefix"] == made["metadata"]["location"]
    asked_alone = served.ask("GET", f"{path}/credentials").json()
    assert asked_alone["storage-credentials"] == told["storage-credentials"]

    silent = serve(served.catalog, files=files, tokens=["t"], vend=False)
    kept = silent.ask("GET", path, X_Iceberg_Access_Delegation="vended-credentials")
    assert s3_server.secret_key not in kept.text
    assert silent.ask("GET", f"{path}/credentials").json() == {"storage-credentials": []}

    catalog = served.pyiceberg()  # asks for the keys by itself, and has no others
    table = catalog.load_table("crm.leads")
    assert table.io.properties["s3.access-key-id"] == s3_server.access_key
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("note", pa.string())])
    table.append(pa.table({"id": [1], "note": ["a"]}, schema=schema))
    assert catalog.load_table("crm.leads").scan().to_arrow()["note"].to_pylist() == ["a"]
