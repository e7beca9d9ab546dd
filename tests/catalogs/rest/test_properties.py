"""Properties that other REST servers need reach PyIceberg, Spark and DuckDB, and are not shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse.config.load import dump_settings, load_settings, parse_settings
from lakehouse.config.settings import Settings
from lakehouse.config.show import show_settings
from lakehouse.engine_config import redacted_snippet, snippet
from lakehouse.lake.backend import open_backend

OAUTH = {
    "warehouse": "prod",
    "credential": "client:pl4nted",
    "scope": "PRINCIPAL_ROLE:ALL",
    "oauth2-server-uri": "https://login/token",
}
GLUE = {"rest.sigv4-enabled": "true", "rest.signing-name": "glue", "rest.signing-region": "eu-west-1"}


def settings_with(folder: Path, properties: dict[str, str]) -> Settings:
    lines = [f'"{name}" = "{value}"' for name, value in properties.items()]
    (folder / "lake.toml").write_text(
        '[catalog]\nkind = "rest"\nuri = "https://catalog"\n[catalog.properties]\n' + "\n".join(lines)
    )
    return load_settings({}, folder, {})


@pytest.mark.parametrize("properties", [OAUTH, GLUE], ids=["OAuth2", "SigV4"])
def test_they_reach_every_client_and_child_process(tmp_path: Path, properties: dict[str, str]) -> None:
    settings = parse_settings(dump_settings(settings_with(tmp_path, properties)))
    catalog = open_backend(settings).catalog
    assert properties.items() <= catalog.pyiceberg_properties().items()
    in_spark = {f"spark.sql.catalog.lake.{name}": value for name, value in properties.items()}
    assert in_spark.items() <= catalog.spark_conf().items()


def test_duckdb_gets_its_own_names_for_them(tmp_path: Path) -> None:
    attach = snippet("duckdb", settings_with(tmp_path, OAUTH))
    assert "ATTACH 'prod'" in attach
    assert "CLIENT_ID 'client', CLIENT_SECRET 'pl4nted', OAUTH2_SERVER_URI 'https://login/token'" in attach
    assert "AUTHORIZATION_TYPE 'sigv4'" in snippet("duckdb", settings_with(tmp_path, GLUE))


@pytest.mark.parametrize("engine", ["pyiceberg", "spark", "duckdb"])
def test_a_credential_is_not_shown(tmp_path: Path, engine: str) -> None:
    settings = settings_with(tmp_path, OAUTH)
    shown = " ".join(line.value for line in show_settings(settings))
    assert "warehouse=prod" in shown
    assert "pl4nted" not in f"{shown} {settings!r} {redacted_snippet(engine, settings)}"
