"""LakeShell on a service that goes away and comes back."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.terminal import LAKE, Terminal

from lakehouse.http.keys import KeyRequest, KeyStore


@contextmanager
def serving(home: Path, port: int) -> Iterator[None]:
    """`lake serve` on a port; killed at the end, as by a crash."""
    process = subprocess.Popen(
        [LAKE, "serve", "--port", str(port)],
        env={**os.environ, "LAKE_HOME": str(home), "LAKE_SERVE__WORKERS": "1"},
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < deadline, "the service did not start"
                time.sleep(0.05)
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_the_shell_outlives_its_server(own_shop: Path, folder: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    key = KeyStore(own_shop).create(KeyRequest("writer", "ann"))[1]
    remote = {"LAKE_URL": f"http://127.0.0.1:{port}", "LAKE_KEY": key, "LAKE_HOME": str(folder / "none")}
    with serving(own_shop, port):
        shell = Terminal(folder / "none", folder, env=remote)
        shell.wait(f"127.0.0.1:{port} main>", 60)
    with shell:
        lost = shell.run("select count(*) as n from shop.orders;", until="lake serve")
        assert f"127.0.0.1:{port} does not answer" in " ".join(lost.split())
        assert "Traceback" not in lost
        assert "does not answer" in " ".join(shell.run("tables", until="lake serve").split())
        assert shell.is_alive()
        with serving(own_shop, port):
            assert "1 row" in shell.run("select count(*) as n from shop.orders;", until="1 row")
            assert "shop.orders" in shell.run("tables", until="shop.orders")
