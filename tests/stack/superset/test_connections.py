"""How Superset reaches the lake: what it is started with, and what `lake connect superset` prints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from tests.support.agent_lakes import fill_demo
from tests.support.servers.stack import stack_settings

from lakehouse.config.profiles import resolve_profile
from lakehouse.config.settings import Settings, TrinoSettings
from lakehouse.engine_config import redacted_snippet, snippet
from lakehouse.lake.assemble import assemble
from lakehouse.stack import native
from lakehouse.stack.model import stack_context
from lakehouse.stack.services.superset import SERVICE
from lakehouse.stack.superset.connections import duckdb_statements, trino_address, trino_answers


def settings(tmp_path: Path, profile: str = "embedded") -> Settings:
    return replace(stack_settings(tmp_path / "lake"), profile=profile)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    monkeypatch.chdir(tmp_path)
    own = settings(tmp_path)
    with assemble(own) as lake:
        fill_demo(lake)
    native.up(own, ["rest"])
    yield own
    native.down(own)


@pytest.mark.servers
def test_the_statements_for_jdbc_attach_the_lake_for_reading(served: Settings) -> None:
    from lakehouse.engines.duckdb.connection import connect, load_extension

    connection = connect()
    for extension in ("avro", "httpfs", "iceberg"):  # INSTALL needs the internet
        load_extension(connection, extension)
    lines = [line for line in snippet("jdbc", served).splitlines() if not line.startswith(("--", "INSTALL"))]
    connection.execute("\n".join(lines))
    count = connection.execute("SELECT count(*) FROM lake.gold.daily_bars").fetchone()
    assert count is not None and count[0] > 0
    with pytest.raises(duckdb.Error, match="only reads"):
        connection.execute("DROP TABLE lake.gold.daily_bars")


@pytest.mark.parametrize(("profile", "address"), [("sql", "jdbc:trino://127.0.0.1:{port}/lake"), ("embedded", "")])
def test_jdbc_names_trino_where_it_reads_the_warehouse(tmp_path: Path, profile: str, address: str) -> None:
    own = resolve_profile(settings(tmp_path, profile))
    printed = snippet("jdbc", own)
    assert ("jdbc:trino" in printed) is bool(address)
    assert address.format(port=own.stack.trino_port) in printed and "jdbc:duckdb:" in printed
    secrets = stack_context(own).secrets
    assert secrets.rest_read_token in printed and secrets.rest_token not in printed
    assert secrets.rest_read_token not in redacted_snippet("jdbc", own)


@pytest.mark.servers
def test_the_statements_attach_the_lake_for_reading_and_close_duckdb_to_the_rest(served: Settings) -> None:
    from lakehouse.engines.duckdb.connection import connect, load_extension

    connection = connect()
    for extension in ("avro", "httpfs", "iceberg"):
        load_extension(connection, extension)
    for statement in duckdb_statements(stack_context(served)).split(";\n"):
        connection.execute(statement)
    count = connection.execute("SELECT count(*) FROM lake.gold.daily_bars").fetchone()
    assert count is not None and count[0] > 0
    with pytest.raises(duckdb.PermissionException, match="file system operations are disabled"):
        connection.execute("SELECT * FROM read_text('/etc/hostname')")
    with pytest.raises(duckdb.InvalidInputException, match="locked"):
        connection.execute("SET enable_external_access = true")
    with pytest.raises(duckdb.Error, match="only reads"):
        connection.execute("DROP TABLE lake.gold.daily_bars")
    assert connection.execute("SELECT count(*) FROM lake.gold.daily_bars").fetchone() == count


def test_superset_gets_no_secret_by_its_arguments_and_not_the_token_of_the_owner(tmp_path: Path) -> None:
    context = stack_context(settings(tmp_path))
    assert SERVICE.process is not None
    spec = SERVICE.process(context)
    secrets = context.secrets
    hidden = (secrets.superset_secret_key, secrets.superset_admin_password, secrets.rest_read_token)
    assert not any(secret in " ".join(spec.argv) + repr(spec) for secret in hidden)
    assert spec.environment["SUPERSET_SECRET_KEY"] == secrets.superset_secret_key
    everything = [*spec.environment.values(), *spec.files.values()]
    assert any(secrets.rest_read_token in text for text in everything)
    assert not any(secrets.rest_token in text or secrets.superset_admin_password in text for text in everything)
    assert f"127.0.0.1:{context.settings.stack.superset_port}" in spec.argv


def test_a_new_password_of_admin_restarts_superset_and_stays_hidden(tmp_path: Path) -> None:
    own = settings(tmp_path)
    assert SERVICE.process is not None
    before = SERVICE.process(stack_context(own))
    changed = SERVICE.process(stack_context(replace(own, stack=replace(own.stack, superset_admin_password="hush"))))
    assert before.prepared_with == SERVICE.process(stack_context(own)).prepared_with != changed.prepared_with
    assert "hush" not in changed.prepared_with


def test_all_leaves_superset_out(tmp_path: Path) -> None:
    own = settings(tmp_path, "sql")
    assert "superset" not in {service.name for service in native.startable(own, ["all"])}
    assert [service.name for service in native.startable(settings(tmp_path), ["superset"])] == ["rest", "superset"]


@pytest.mark.parametrize(
    ("profile", "trino", "address"),
    [
        ("embedded", "", "trino://lake@127.0.0.1:{port}/rest"),
        ("sql", "", "trino://lake@127.0.0.1:{port}/lake"),
        ("hive", "", "trino://lake@127.0.0.1:{port}/hive"),
        ("embedded", "https://trino.example:8443", "trino://lake@trino.example:8443/lake"),
    ],
)
def test_the_address_of_trino(tmp_path: Path, profile: str, trino: str, address: str) -> None:
    own = resolve_profile(replace(settings(tmp_path, profile), trino=TrinoSettings(url=trino)))
    assert trino_address(own) == address.format(port=own.stack.trino_port)


def test_a_trino_that_does_not_run_does_not_answer(tmp_path: Path) -> None:
    assert not trino_answers(stack_context(settings(tmp_path)).endpoints.trino_url)


def test_what_another_superset_needs_is_python_without_secrets(tmp_path: Path) -> None:
    own = settings(tmp_path)
    secrets = stack_context(own).secrets
    printed, whole = redacted_snippet("superset", own), snippet("superset", own)
    compile(whole, "superset_config.py", "exec")
    assert "duckdb:///:memory:lakehouse" in printed and "LAKE_STACK__REST_READ_TOKEN" in printed
    for secret in (secrets.rest_read_token, secrets.superset_admin_password):
        assert secret in whole and secret not in printed
    assert secrets.rest_token not in whole


def test_a_catalog_without_a_client_in_duckdb_is_reached_through_trino_alone(tmp_path: Path) -> None:
    own = settings(tmp_path, "hive")
    assert duckdb_statements(stack_context(own)) == ""
    assert "trino://lake@" in snippet("superset", own) and "duckdb" not in snippet("superset", own)
