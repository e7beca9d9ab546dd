"""A lake in this process, and the same lake behind `lake serve`: what one suite runs on."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import LAKE, SMALL_JAVA
from tests.support.servers.ports import free_port

from lakehouse.http.keys import KeyRequest, KeyStore

ROOT = Path(__file__).parents[2]

#: Pipelines that need no Spark, in a module beside lake.toml: one succeeds, one fails at its second table as long as a file is there.
MODULE = """
from dataclasses import replace
from pathlib import Path

from tests.support.transaction_pipelines import writing

contract_fine = writing("contract_fine", "first", ["contract_runs.one", "contract_runs.two"])
_first, _second = writing("contract_flaky", "flaky", ["contract_flaky.one", "contract_flaky.two"]).tables


def fail_while_told(context):
    if (Path(__file__).parent / "fail").exists():
        return 1 // 0
    return _second.light(context)


contract_flaky = replace(
    writing("contract_flaky", "flaky", []), tables=(_first, replace(_second, light=fail_while_told))
)
"""


@dataclass(frozen=True)
class RunningService:
    """`lake serve` in a process of its own."""

    url: str
    key: str = field(repr=False)
    folder: Path
    """Its working folder, with a lake.toml."""
    home: Path


@contextmanager
def lake_serve(home: Path, folder: Path) -> Iterator[RunningService]:
    """Serve a lake until the block ends."""
    (folder / "lake.toml").write_text('pipelines = ["contract_pipelines"]\n')
    (folder / "contract_pipelines.py").write_text(MODULE)
    port = free_port()
    key = KeyStore(home).create(KeyRequest("admin", "contract"))[1]
    environment = {name: value for name, value in os.environ.items() if name == "LAKE_CACHE" or "LAKE_" not in name}
    process = subprocess.Popen(
        [LAKE, "serve", "--port", str(port)],
        cwd=folder,
        env={
            **environment,
            **SMALL_JAVA,
            "LAKE_HOME": str(home),
            "PYTHONPATH": f"{ROOT}/src:{ROOT}",
        },  # MODULE imports from tests
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr
    reader = threading.Thread(target=process.stderr.read, daemon=True)
    try:
        said = process.stderr.readline()
        assert "listens on" in said, said + process.stderr.read()
        reader.start()
        url = f"http://127.0.0.1:{port}"
        _wait_for(port)
        yield RunningService(url, key, folder, home)
    finally:
        process.terminate()
        process.wait(30)
        if reader.is_alive():
            reader.join()
        process.stderr.close()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the service does not listen")
