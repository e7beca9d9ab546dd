"""A Spark Connect server for a lake."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from tests.support.servers.ports import free_port

from lakehouse.config.load import dump_settings
from lakehouse.config.settings import Settings
from lakehouse.process.sockets import accepts_connections
from lakehouse.stack.fetch import fetch
from lakehouse.stack.services.connect import JAR

_START_TIMEOUT_S = 300


@contextmanager
def connect_server(settings: Settings) -> Iterator[str]:
    """A Spark Connect server for some lake, as `lake up connect` starts it."""
    ports = {"connect_port": free_port(), "connect_ui_port": free_port()}
    settings = replace(settings, stack=replace(settings.stack, **ports))  # type: ignore[arg-type]
    fetch(settings, (JAR,), lambda _: nullcontext())
    command = [sys.executable, "-m", "lakehouse.stack.connect_server"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stdin
    process.stdin.write(dump_settings(settings))
    process.stdin.close()
    try:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not accepts_connections("127.0.0.1", ports["connect_port"]):
            assert process.poll() is None and time.monotonic() < deadline, "Spark Connect did not start"
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{ports['connect_port']}"
    finally:
        process.terminate()
        process.wait(60)
