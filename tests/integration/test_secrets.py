"""No secret is printed, logged or given to a child process as an argument: one is planted in every setting that holds one."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Command

from lakehouse.config.load import all_settings

pytestmark = pytest.mark.slow

PLANTED = "pl4nted"
SECRETS = [name for name, part, _ in all_settings() if part.metadata.get("secret")]
#: Nothing listens there.
NOWHERE = "127.0.0.1:1"

COMMANDS = [
    pytest.param(["config", "show"], id="config"),
    pytest.param(["config", "show", "-o", "json"], id="config as JSON"),
    pytest.param(["doctor"], id="doctor"),
    pytest.param(["status"], id="status"),
    pytest.param(["tables"], id="tables"),
    pytest.param(["sql", "--engine", "trino", "select 1"], id="trino"),
    pytest.param(["sql", "--engine", "spark", "select 1"], id="spark"),
    pytest.param(["ingest", f"https://me:{PLANTED}_url@host/a.csv?token={PLANTED}", "--into", "a.b"], id="ingest"),
    pytest.param(["ingest", f"gs://me:{PLANTED}_url@host/a.csv", "--into", "a.b", "-o", "json"], id="ingest as JSON"),
    pytest.param(["connect", "spark"], id="connect spark"),
    pytest.param(["connect", "pyiceberg"], id="connect pyiceberg"),
    pytest.param(["connect", "duckdb"], id="connect duckdb"),
    pytest.param(["connect", "trino"], id="connect trino"),
    pytest.param(["connect", "superset"], id="connect superset"),
]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Every secret planted, servers that do not answer, and a Java that writes down how it is called."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/arguments\necho \'openjdk version "17.0.1"\' >&2\nexit 1\n')
    java.chmod(0o755)
    planted = {f"LAKE_{name.upper().replace('.', '__')}": f"{PLANTED}_{at}" for at, name in enumerate(SECRETS)}
    return {
        **planted,
        "LAKE_PROFILE": "sql",
        "LAKE_CATALOG__URI": f"postgresql://lake:{PLANTED}_uri@{NOWHERE}/lake?password={PLANTED}",
        "LAKE_TRINO__URL": f"http://lake:{PLANTED}_trino@{NOWHERE}",
        "LAKE_S3__ENDPOINT": f"http://{NOWHERE}",
        "LAKE_SPARK__JAVA_HOME": str(tmp_path / "java"),
        "LAKE_DEBUG": "1",
    }


@pytest.fixture
def command_lines() -> Iterator[set[str]]:
    """The command lines with a planted secret, of all processes but the `lake` that a test itself calls."""
    lines: set[str] = set()
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.02):
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    text = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
                except OSError:
                    continue
                if PLANTED in text and " ingest " not in text:
                    lines.add(text)

    watcher = threading.Thread(target=watch)
    watcher.start()
    yield lines
    stop.set()
    watcher.join()


def test_every_kind_of_secret_is_planted() -> None:
    assert {"s3.secret_key", "s3.access_key", "catalog.token", "stack.postgres_password"} <= set(SECRETS)


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_secret_is_in_no_output_log_or_argument(
    lake_command: Command,
    home: Path,
    tmp_path: Path,
    environment: dict[str, str],
    command_lines: set[str],
    arguments: list[str],
) -> None:
    done = lake_command(*arguments, env=environment, cwd=tmp_path)
    assert done.stdout or done.stderr
    assert PLANTED not in done.stdout, done.stdout
    assert PLANTED not in done.stderr, done.stderr
    written = {file: file.read_bytes() for file in home.rglob("*") if file.is_file() and file.name != "secrets.json"}
    assert not [file for file, content in written.items() if PLANTED.encode() in content]
    called = tmp_path / "arguments"
    assert PLANTED not in (called.read_text() if called.exists() else "")
    assert not command_lines


@pytest.mark.parametrize("engine", ["spark", "pyiceberg", "duckdb", "trino"])
def test_connect_says_where_each_secret_comes_from_and_prints_it_on_request(
    lake_command: Command, home: Path, tmp_path: Path, engine: str
) -> None:
    key = {"LAKE_PROFILE": "sql", "LAKE_STACK__SECRET_KEY": "pl4nted_key"}
    redacted = lake_command("connect", engine, env=key, cwd=tmp_path).stdout
    shown = lake_command("connect", engine, "--show-secrets", env=key, cwd=tmp_path).stdout
    assert "pl4nted_key" in shown
    assert "--show-secrets" in redacted.splitlines()[0]
    origins = dict(re.findall(r"^#   (\w+): (.*)$", redacted, re.MULTILINE))
    secret = next(name for name in origins if name.endswith("SECRET_KEY"))
    assert origins[secret].endswith("LAKE_STACK__SECRET_KEY")
    # Trino has no password of the database: it reaches the catalog over REST.
    generated = "LAKE_STACK__REST_TOKEN" if engine == "trino" else "LAKE_STACK__LAKE_PASSWORD"
    assert origins[generated] == str(home / "secrets.json")


def test_a_bracket_in_the_password_of_the_catalog_is_a_clear_error(lake_command: Command, tmp_path: Path) -> None:
    address = {"LAKE_CATALOG__URI": "postgresql://lake:pl4[nted@127.0.0.1:1/lake"}
    done = lake_command("tables", env=address, cwd=tmp_path)
    assert done.returncode == 2
    assert "catalog.uri is not an address" in done.stderr
    assert "%5B" in done.stderr
    assert "pl4" not in done.stderr
