"""The servers of the profile `sql` with Trino, in a folder of their own and on free ports."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LAKE = Path(sys.executable).parent / "lake"
#: Heap of Trino: three times what the stack gives it.
_MEMORY = "3g"


@dataclass(frozen=True)
class TrinoStack:
    """Running servers: the environment of `lake` commands for them, and a way to ask Trino."""

    environment: dict[str, str]
    ask: Callable[[str], list[Any]]


@contextmanager
def trino_stack(folder: Path, schema: str) -> Iterator[TrinoStack]:
    """Start the servers; a schema of Trino is created for the statements."""
    ports = {f"LAKE_STACK__{name.upper()}": str(port) for name, port in free_ports().items()}
    own = {
        "LAKE_HOME": str(folder / "stack"),
        "LAKE_PROFILE": "sql",
        "LAKE_STACK__TRINO_MEMORY": _MEMORY,
        **ports,
    }
    everything = {**os.environ, **own}
    subprocess.run([LAKE, "up", "trino"], env=everything, check=True, stdout=subprocess.DEVNULL)

    def ask(sql: str) -> list[Any]:
        from trino.dbapi import connect

        port = int(ports["LAKE_STACK__TRINO_PORT"])
        connection = connect(host="127.0.0.1", port=port, user="lake", catalog="lake", schema=schema)
        cursor = connection.cursor()
        cursor.execute(sql)
        rows: list[Any] = cursor.fetchall()
        connection.close()
        return rows

    try:
        ask(f"create schema if not exists {schema}")
        yield TrinoStack(own, ask)
    finally:
        subprocess.run([LAKE, "down"], env=everything, check=True, stdout=subprocess.DEVNULL)


def free_ports() -> dict[str, int]:
    """A free port for every server."""
    from lakehouse.config.load import all_settings
    from lakehouse.config.stack import StackSettings

    names = [name for name, _, _ in all_settings(StackSettings) if name.endswith("_port")]
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in names]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return {name.rpartition(".")[2]: probe.getsockname()[1] for name, probe in zip(names, probes, strict=True)}
