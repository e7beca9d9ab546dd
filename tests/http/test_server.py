"""`lake serve`: where it listens, its first key, and how it ends."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests
from tests.conftest import Command, cache_only
from tests.http.conftest import Client, Start

from lakehouse.config.load import load_settings
from lakehouse.core.errors import BadSettingError
from lakehouse.http.server import check_exposure


def test_the_first_start_prints_an_admin_key_once(start: Start, home: Path) -> None:
    process = start()
    client = process.client
    assert client.get("/whoami").json()["scope"] == "admin"
    assert (home / "keys.json").stat().st_mode & 0o777 == 0o600
    assert (home / "service.db").stat().st_mode & 0o777 == 0o600
    assert client.get("/readyz").json()["status"] == "ok"
    page = requests.get(f"{client.url}/", timeout=30)
    assert page.url.endswith("/docs")
    assert "/tables/{table}" in page.text
    assert "<script" not in page.text
    process.popen.terminate()
    assert process.popen.wait(20) == 0
    again = start()
    assert again.client.get("/whoami").status_code == 200, "the second start prints no key; the first one works"


def test_without_keys_on_loopback_everybody_is_the_owner(start: Start) -> None:
    process = start(LAKE_AUTH="off")
    client = Client(process.client.url)
    assert client.get("/whoami").json()["scope"] == "admin"
    for headers in ({"Host": "evil.example:8600"}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
        assert client.get("/whoami", headers=headers).status_code == 403, "pages of other sites are not answered"
    assert client.get("/whoami", headers={"Origin": client.url}).status_code == 200


def exposed(tmp_path: Path, **flags: object) -> None:
    given = {name.replace("__", "."): value for name, value in flags.items()}
    check_exposure(load_settings({"home": tmp_path / "lake", **given}, folder=tmp_path, environ=cache_only()))


def test_beyond_loopback_it_needs_tls_or_a_proxy_and_keys(tmp_path: Path) -> None:
    for host in ("127.0.0.1", "::1", "localhost", "127.1.2.3"):
        exposed(tmp_path, serve__host=host)
    for host in ("0.0.0.0", "::", "192.168.1.5", "lake.example.com"):
        with pytest.raises(BadSettingError, match="clear text"):
            exposed(tmp_path, serve__host=host)
        exposed(tmp_path, serve__host=host, serve__behind_proxy=True)
        with pytest.raises(BadSettingError, match="LAKE_AUTH=off"):
            exposed(tmp_path, serve__host=host, serve__behind_proxy=True, auth=False)
    with pytest.raises(BadSettingError, match="no file"):
        exposed(tmp_path, serve__host="0.0.0.0", serve__tls_cert_file="/nowhere.pem")


def test_a_port_that_is_taken_is_said(lake_command: Command, start: Start) -> None:
    port = start().client.url.rsplit(":", 1)[-1]
    done = lake_command("serve", "--port", port)
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
