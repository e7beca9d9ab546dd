"""Keys that the catalog vends on an object store with STS: for one table, for a while, and without deletes."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow.fs import FileSelector, S3FileSystem
from tests.support.servers.ports import free_port
from tests.support.servers.rest_catalog import Serve, make_table
from tests.support.servers.started import wait_until

from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.config.load import load_settings
from lakehouse.process.http_client import answers
from lakehouse.stack.services.storage import minio

BUCKET = "lakes"


def client(files: dict[str, str]) -> S3FileSystem:
    return S3FileSystem(
        access_key=files["s3.access-key-id"],
        secret_key=files["s3.secret-access-key"],
        session_token=files.get("s3.session-token"),
        endpoint_override=files["s3.endpoint"],
        region="us-east-1",
        allow_bucket_creation="s3.session-token" not in files,
    )


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The keys of the owner of a MinIO."""
    program = minio(load_settings())
    if program is None:
        pytest.skip("MinIO is not built")
    port, keys = free_port(), {"MINIO_ROOT_USER": "owner", "MINIO_ROOT_PASSWORD": secrets.token_hex(16)}
    command = [program, "server", "--quiet", "--address", f"127.0.0.1:{port}", str(tmp_path / "minio")]
    log = tmp_path / "minio.log"
    with log.open("w") as output:
        process = subprocess.Popen(command, env={**os.environ, **keys}, stdout=output, stderr=output)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: answers(f"{url}/minio/health/ready"), "MinIO", process, log)
        files = {"s3.endpoint": url, "s3.region": "us-east-1", "s3.access-key-id": keys["MINIO_ROOT_USER"]}
        files["s3.secret-access-key"] = keys["MINIO_ROOT_PASSWORD"]
        client(files).create_dir(BUCKET)
        yield files
    finally:
        process.terminate()
        process.wait()


@pytest.mark.slow
def test_keys_are_for_one_table_and_delete_nothing(serve: Serve, owner: dict[str, str], tmp_path: Path) -> None:
    catalog = SqlCatalog(open_database(tmp_path / "catalog.db"), f"s3://{BUCKET}/warehouse")
    served = serve(catalog, files=owner)
    make_table(served, "leads")
    make_table(served, "secret")
    path, delegation = "namespaces/crm/tables/leads", "vended-credentials"
    answer = served.ask("GET", path, X_Iceberg_Access_Delegation=delegation)
    assert owner["s3.secret-access-key"] not in answer.text
    loaded = answer.json()
    assert loaded["storage-credentials"][0]["prefix"] == loaded["metadata"]["location"]
    keys = client({**owner, **loaded["config"]})
    own, other = f"{BUCKET}/warehouse/crm/leads", f"{BUCKET}/warehouse/crm/secret"
    metadata = loaded["metadata-location"].removeprefix("s3://")
    assert keys.open_input_stream(metadata).read()
    with keys.open_output_stream(f"{own}/data/x") as stream:
        stream.write(b"x")
    with pytest.raises(OSError, match="(?i)access.?denied"):
        keys.delete_file(f"{own}/data/x")
    with pytest.raises(OSError, match="(?i)access.?denied"):
        keys.get_file_info(FileSelector(other))
    (file,) = client(owner).get_file_info(FileSelector(f"{other}/metadata"))
    with pytest.raises(OSError, match="(?i)access.?denied"):
        keys.open_input_stream(file.path)
    with pytest.raises(OSError, match="(?i)access.?denied"), keys.open_output_stream(f"{other}/x") as stream:
        stream.write(b"x")

    table = served.pyiceberg().load_table("crm.leads")  # with these keys alone
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("note", pa.string())])
    table.append(pa.table({"id": [1], "note": ["a"]}, schema=schema))
    assert served.pyiceberg().load_table("crm.leads").scan().to_arrow()["note"].to_pylist() == ["a"]
