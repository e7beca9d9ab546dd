"""A real S3 server for tests: s3proxy on the project's own Java, on loopback, its objects in memory."""

from __future__ import annotations

import secrets
import socket
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from tests.support.servers.ports import free_port
from tests.support.servers.started import wait_until

from lakehouse.config.settings import Settings
from lakehouse.core.clients import MavenArtifact
from lakehouse.engines.spark.jars import ensure_jars
from lakehouse.engines.spark.java import find_java
from lakehouse.storage.s3 import S3Settings

S3PROXY = MavenArtifact(
    "org.gaul",
    "s3proxy",
    "4.1.0",
    "a4d025969aaf796616ed4b1e2491d87d455ce84bb28cb9db086b2e6aaa68b48d",
    54_955_934,
    "jar-with-dependencies",
)


@dataclass(frozen=True)
class S3Server:
    """A running server: where it is, the one pair of keys that it takes, and ways to fill it."""

    endpoint: str
    access_key: str
    secret_key: str = field(repr=False)

    @property
    def settings(self) -> S3Settings:
        return S3Settings(self.endpoint, access_key=self.access_key, secret_key=self.secret_key)

    @property
    def environment(self) -> dict[str, str]:
        """The same settings as variables for a `lake` command."""
        return {
            "LAKE_S3__ENDPOINT": self.endpoint,
            "LAKE_S3__ACCESS_KEY": self.access_key,
            "LAKE_S3__SECRET_KEY": self.secret_key,
        }

    def make_bucket(self, name: str = "") -> str:
        """A new bucket; its name, if none is asked for, is one that no other test uses."""
        name = name or f"test-{uuid.uuid4().hex[:12]}"
        self.client.create_dir(name, recursive=False)
        return name

    def put(self, uri: str, content: str | bytes) -> str:
        """Write an object, `s3://bucket/key`; gives its name back."""
        # Without this, Arrow would pack what is called .gz once more.
        with self.client.open_output_stream(uri.removeprefix("s3://"), compression=None) as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
        return uri

    def names(self, folder: str) -> list[str]:
        """Every object below BUCKET/PREFIX."""
        from pyarrow.fs import FileSelector

        return sorted(
            info.path for info in self.client.get_file_info(FileSelector(folder, recursive=True)) if info.is_file
        )

    @cached_property
    def client(self) -> Any:
        """Arrow's client with the right to make buckets."""
        from pyarrow.fs import S3FileSystem

        return S3FileSystem(
            access_key=self.access_key,
            secret_key=self.secret_key,
            scheme="http",
            endpoint_override=self.endpoint.removeprefix("http://"),
            region="us-east-1",
            allow_bucket_creation=True,
        )


@pytest.fixture(scope="session")
def s3_server(shared_settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """One S3 server for all tests of a run; tests use buckets of their own."""
    java = find_java(shared_settings.spark.java_home)
    (jar,) = ensure_jars(shared_settings.cache, shared_settings.maven_repo, jars=[S3PROXY])
    folder = tmp_path_factory.mktemp("s3")
    server = S3Server(f"http://127.0.0.1:{free_port()}", f"key-{secrets.token_hex(8)}", secrets.token_hex(20))
    process = _start([str(java.program), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-jar", str(jar)], server, folder)
    try:
        wait_until(lambda: _answers(server), "s3proxy", process, folder / "log")
        yield server
    finally:
        process.kill()
        process.wait()


def _start(command: list[str], server: S3Server, folder: Path) -> subprocess.Popen[bytes]:
    properties = folder / "s3proxy.properties"
    properties.touch(0o600)  # the secret goes through a file, so that no list of processes shows it
    properties.write_text(
        f"s3proxy.endpoint={server.endpoint}\n"
        "s3proxy.authorization=aws-v2-or-v4\n"
        f"s3proxy.identity={server.access_key}\n"
        f"s3proxy.credential={server.secret_key}\n"
        "jclouds.provider=transient-nio2\njclouds.identity=unused\njclouds.credential=unused\n"
    )
    with (folder / "log").open("w") as log:
        arguments = [*command, "--properties", str(properties)]
        return subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)


def _answers(server: S3Server) -> bool:
    host, _, port = server.endpoint.removeprefix("http://").partition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True
