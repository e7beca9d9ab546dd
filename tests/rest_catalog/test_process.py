"""The catalog as a process of its own, and inside another application."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest
import requests
from fastapi import FastAPI
from tests.support.servers.application import running

from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.core.errors import BadSettingError, EngineUnreachableError
from lakehouse.rest_catalog.access import Owner
from lakehouse.rest_catalog.app import create_app
from lakehouse.rest_catalog.process import RestOptions, serve, start


def options(folder: Path, **more: object) -> RestOptions:
    facts = {
        "catalog": str(folder / "catalog.db"),
        "warehouse": f"file://{folder}/warehouse",
        "port": 0,
        "tokens": ("t",),
        **more,
    }
    return RestOptions(**facts)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_process_serves_on_loopback_and_shows_no_secret_in_its_arguments(tmp_path: Path) -> None:
    process, url = start(options(tmp_path, tokens=("open-sesame",)), tmp_path / "log")
    try:
        assert requests.get(f"{url}/v1/config", timeout=60).status_code == 401
        known = {"Authorization": "Bearer open-sesame"}
        assert requests.get(f"{url}/v1/config", headers=known, timeout=60).status_code == 200
        seen = psutil.Process(process.pid)
        assert {
            connection.laddr.ip for connection in seen.net_connections() if connection.status == psutil.CONN_LISTEN
        } == {"127.0.0.1"}
        assert "open-sesame" not in " ".join(seen.cmdline() + list(seen.environ().values()))
        taken = int(url.rpartition(":")[2])
        with pytest.raises(EngineUnreachableError):
            start(options(tmp_path, port=taken), tmp_path / "second.log")
        assert f"cannot listen on 127.0.0.1:{taken}" in (tmp_path / "second.log").read_text()
    finally:
        process.terminate()
        code = process.wait(timeout=60)
        if process.stdout:
            process.stdout.close()
    assert code in (0, -signal.SIGTERM)  # uvicorn ends well and then by the signal that it was sent
    assert "open-sesame" not in (tmp_path / "log").read_text()


def test_the_catalog_does_not_start_without_a_token(tmp_path: Path) -> None:
    for none in ((), ("",)):
        with pytest.raises(BadSettingError, match="token"):
            serve(options(tmp_path, tokens=none))
    assert not os.listdir(tmp_path)


def test_options_survive_the_handover_and_hide_what_is_secret(tmp_path: Path) -> None:
    told = options(
        tmp_path,
        catalog="postgresql://me:hush@h/db",
        tokens=("t1", "t2"),
        read_tokens=("r1",),
        files={"s3.secret-access-key": "k"},
    )
    assert RestOptions.from_json(told.to_json()) == told
    assert not any(secret in repr(told) for secret in ("hush", "t1", "r1", "secret-access-key"))


def test_the_application_can_stand_below_a_path_of_another(tmp_path: Path) -> None:
    whole = FastAPI()
    catalog = SqlCatalog(open_database(tmp_path / "catalog.db"), f"file://{tmp_path}/warehouse")
    whole.mount("/iceberg", create_app(catalog, {}, {"t": Owner()}))
    headers = {"Authorization": "Bearer t"}
    with running(whole) as url:
        made = requests.post(f"{url}/iceberg/v1/namespaces", json={"namespace": ["a/b"]}, headers=headers, timeout=60)
        assert made.status_code == 200
        assert requests.get(f"{url}/iceberg/v1/namespaces/a%2Fb", headers=headers, timeout=60).json()["namespace"] == [
            "a/b"
        ]
        assert requests.get(f"{url}/v1/namespaces", timeout=60).status_code == 404
