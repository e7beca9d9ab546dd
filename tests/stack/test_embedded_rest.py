"""`lake up rest` in the embedded profile: the laptop's own lake for other engines."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import requests
from tests.support.servers.stack import stack_settings

from lakehouse.cli.app import run
from lakehouse.config.endpoints import endpoints_of
from lakehouse.config.secrets import rotate_secret
from lakehouse.config.settings import BranchSettings, Settings
from lakehouse.core.errors import BadSettingError
from lakehouse.engine_config import redacted_snippet, snippet
from lakehouse.lake.assemble import assemble
from lakehouse.stack import native

pytestmark = pytest.mark.servers


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    monkeypatch.chdir(tmp_path)  # DuckDB leaves an empty folder in the working folder
    own = replace(stack_settings(tmp_path / "lake"), profile="embedded")
    yield own
    native.down(own)


def status_of(settings: Settings, token: str = "", path: str = "config") -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    uri = endpoints_of(settings).rest_uri
    return requests.get(f"{uri}/v1/{path}", headers=headers, timeout=30).status_code


def test_other_engines_read_and_write_the_embedded_lake(settings: Settings) -> None:
    assert [entry.service for entry in native.up(settings, ["rest"])] == ["rest"]  # without PostgreSQL and object store
    code, token = snippet("duckdb", settings), endpoints_of(settings).rest_token
    printed = redacted_snippet("duckdb", settings)
    assert (token in code, token in printed, "LAKE_STACK__REST_TOKEN" in printed) == (True, False, True)
    scope: dict[str, object] = {}
    exec(code, scope)
    duck = scope["connection"]
    duck.execute("CREATE SCHEMA lake.crm")  # type: ignore[attr-defined]
    duck.execute("CREATE TABLE lake.crm.leads AS SELECT 1 AS id")  # type: ignore[attr-defined]
    duck.execute("INSERT INTO lake.crm.leads VALUES (2)")  # type: ignore[attr-defined]
    with assemble(settings) as lake:
        assert sorted(lake.sql("SELECT id FROM crm.leads").rows()) == [(1,), (2,)]
    native.down(settings)
    assert "iceberg_scan" in snippet("duckdb", settings)  # without the server it reads from the catalog's file


def test_the_token_is_generated_required_and_replaced(settings: Settings) -> None:
    native.up(settings, ["rest"])
    first = endpoints_of(settings).rest_token
    file = Path(settings.home) / "secrets.json"
    assert json.loads(file.read_text())["rest_token"] == first
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (status_of(settings), status_of(settings, "wrong"), status_of(settings, first)) == (401, 401, 200)
    rotate_secret(settings, "rest_token")
    native.up(settings, ["rest"])
    second = endpoints_of(settings).rest_token
    assert (status_of(settings, first), status_of(settings, second)) == (401, 200)
    with pytest.raises(BadSettingError, match="rest_token"):
        rotate_secret(replace(settings, stack=replace(settings.stack, rest_token="own")), "rest_token")


def test_the_token_for_reading_changes_nothing(settings: Settings) -> None:
    native.up(settings, ["rest"])
    endpoints = endpoints_of(settings)
    reader = {"Authorization": f"Bearer {endpoints.rest_read_token}"}
    owner = {"Authorization": f"Bearer {endpoints.rest_token}"}
    url, body = f"{endpoints.rest_uri}/v1/namespaces", {"namespace": ["crm"]}
    refused = requests.post(url, json=body, headers=reader, timeout=30)
    assert (refused.status_code, refused.json()["error"]["type"]) == (403, "ForbiddenException")
    assert requests.get(url, headers=reader, timeout=30).json()["namespaces"] == []
    assert requests.post(url, json=body, headers=owner, timeout=30).status_code == 200
    assert requests.get(url, headers=reader, timeout=30).json()["namespaces"] == [["crm"]]


def test_protected_branches_are_protected_at_the_rest_catalog(settings: Settings) -> None:
    guarded = replace(settings, branches=BranchSettings(("main",)))
    native.up(guarded, ["rest"])
    endpoints = endpoints_of(guarded)
    headers = {"Authorization": f"Bearer {endpoints.rest_token}"}
    url = f"{endpoints.rest_uri}/v1/namespaces"
    assert requests.post(url, json={"namespace": ["crm"]}, headers=headers, timeout=30).status_code == 403


def test_the_command_replaces_the_token(tmp_path: Path) -> None:
    home = str(tmp_path / "lake")
    assert run(["--home", home, "stack", "rotate-token"]) == 0
    first = json.loads((tmp_path / "lake" / "secrets.json").read_text())
    assert run(["--home", home, "stack", "rotate-token"]) == 0
    second = json.loads((tmp_path / "lake" / "secrets.json").read_text())
    assert {name for name in first if first[name] != second[name]} == {"rest_token", "rest_read_token"}
