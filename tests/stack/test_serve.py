"""`lake up serve`: the service under the supervisor, which keeps no key in its log."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests
from tests.conftest import cache_only
from tests.support.servers.ports import free_port

from lakehouse.config.load import load_settings
from lakehouse.http.keys import KeyRequest, KeyStore
from lakehouse.stack import native


@pytest.mark.slow
def test_the_service_runs_under_the_supervisor(tmp_path: Path) -> None:
    port = free_port()
    settings = load_settings({"home": tmp_path / "lake", "serve.port": port}, folder=tmp_path, environ=cache_only())
    try:
        (status,) = native.up(settings, ["serve"])
        assert (status.service, status.state, status.url) == ("serve", "running", f"http://127.0.0.1:{port}")
        key = KeyStore(settings.home).create(KeyRequest("reader"))[1]
        answer = requests.get(f"{status.url}/whoami", headers={"Authorization": f"Bearer {key}"}, timeout=30)
        assert answer.json()["scope"] == "reader"
        logs = "".join(file.read_text() for file in native.log_files(settings, ["serve"]).values())
        assert "lake keys create" in logs
        assert "lake_" not in logs
    finally:
        native.down(settings, [])
