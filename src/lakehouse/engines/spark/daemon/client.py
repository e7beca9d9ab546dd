"""The warm Spark: one per lake, in a background process of ours, reached over a Unix socket that only its owner opens.

A command connects; if nobody answers it starts the process, holding a lock so that two commands at once start one.
A process that was killed, or that runs with other settings, is replaced without a word.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lakehouse.core.engine import EngineCapabilities, Query
from lakehouse.core.errors import EngineUnreachableError, LakeError, StatementLostError, error_from_dict
from lakehouse.core.result import ArrowRows, Explain, ListedRows, Result
from lakehouse.core.tables import Column
from lakehouse.process.locks import locked

#: Called with what is being waited for; the block that it opens is the wait.
Waiting = Callable[[str], Any]
ARROW = "application/vnd.apache.arrow.stream"
SOCKET = "spark.sock"
#: How the process ends when another one already serves the lake.
ALREADY_SERVED = 75
_LARGEST_LOG = 10_000_000
_CONNECT_TIMEOUT_S = 5.0
_STOP_TIMEOUT_S = 15.0


class SparkDaemonClient:
    """Speaks to the lake's background process, starting it when needed."""

    def __init__(
        self,
        run_folder: Path,
        log: Path,
        start: list[str],
        serialized: str,
        waiting: Waiting,
        before_start: Callable[[], object],
    ) -> None:
        """
        Args:
            start: the command that starts the process.
            serialized: what it reads from its input: all settings, so that none is ever in an argument list.
            waiting: opened around a wait, with a word on what for.
            before_start: called before a process is started, to fetch what it will need while somebody watches.
        """
        self._socket, self._lock_file = run_folder / SOCKET, run_folder / "start.lock"
        self._log, self._start_command, self._serialized = log, start, serialized
        self._fingerprint = fingerprint(serialized)
        self._waiting, self._before_start = waiting, before_start

    name = "spark"
    capabilities = EngineCapabilities(writes=True, remote=True)

    def run(self, query: Query) -> Result:
        request = query.request
        self._ensure_running()
        body = {**asdict(request), "reason": query.reason}
        with self._waiting("Running on Spark"):
            status, kind, data = self._ask("POST", "/query", body, accept=ARROW if request.arrow else "")
        if status != 200:
            raise error_from_dict(json.loads(data), request.sql)
        return _arrow_result(data) if kind == ARROW else _listed_result(json.loads(data))

    def prepare(self) -> None:
        """Start the process, if it does not run, while the caller does something else; errors are left to `run`."""
        if self._is_right(self.health()):
            return
        self._before_start()
        threading.Thread(target=self._start_quietly, daemon=True).start()

    def _start_quietly(self) -> None:
        with suppress(LakeError), locked(self._lock_file):
            self._start_if_needed()

    def health(self) -> dict[str, Any] | None:
        """What the process says of itself, or None if it does not run."""
        try:
            status, _, data = self._ask("GET", "/health", timeout=_CONNECT_TIMEOUT_S)
        except (EngineUnreachableError, StatementLostError):
            return None
        return dict(json.loads(data)) if status == 200 else None

    def shut_down(self) -> bool:
        """Stop the process; running statements are given a moment to end. False if none ran."""
        health = self.health()
        if health is None:
            return False
        _end(int(health["pid"]))
        return True

    def _ensure_running(self) -> None:
        if self._is_right(self.health()):
            return
        self._before_start()
        with self._waiting("Starting Spark"), locked(self._lock_file):
            self._start_if_needed()

    def _start_if_needed(self) -> None:
        """Called with the lock held."""
        health = self.health()
        if self._is_right(health):
            return
        if health is not None:
            _end(int(health["pid"]))
        self._start()

    def _is_right(self, health: dict[str, Any] | None) -> bool:
        return health is not None and health["fingerprint"] == self._fingerprint

    def _start(self) -> None:
        import subprocess

        from lakehouse.engines.spark.launch import START_TIMEOUT_S, last_words

        self._log.parent.mkdir(parents=True, exist_ok=True)
        if self._log.is_file() and self._log.stat().st_size > _LARGEST_LOG:
            self._log.replace(self._log.with_suffix(".log.1"))
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                self._start_command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,  # it outlives the terminal, and a Ctrl-C there is not meant for it
                env={**os.environ, "TZ": "UTC"},
            )
        assert process.stdin is not None
        with process.stdin:
            process.stdin.write(self._serialized.encode())
        deadline = time.monotonic() + START_TIMEOUT_S
        while self.health() is None:
            if process.poll() not in (None, ALREADY_SERVED):
                raise EngineUnreachableError(
                    f"Spark did not start: {last_words(self._log)}", f"lake doctor; the whole log: {self._log}"
                )
            if time.monotonic() > deadline:
                process.kill()
                raise EngineUnreachableError(f"Spark did not start in {START_TIMEOUT_S} s.", f"The log: {self._log}")
            time.sleep(0.02)
        process.returncode = 0  # it is meant to outlive us, so Python need not warn that it still runs

    def _ask(
        self, method: str, path: str, body: Any = None, accept: str = "", timeout: float | None = None
    ) -> tuple[int, str, bytes]:
        # Imported here: a query that DuckDB answers never speaks HTTP.
        from lakehouse.process.unix_http import Broken, Unreachable, ask

        try:
            return ask(self._socket, method, path, body, accept or "application/json", timeout)
        except Unreachable as exc:
            raise EngineUnreachableError("The warm Spark does not answer.", "lake doctor") from exc
        except Broken as exc:
            raise StatementLostError(
                "The warm Spark died during the statement, so it may or may not have been done.",
                f"Look with `lake history`, then run it again: a new Spark starts by itself. Log: {self._log}",
            ) from exc


def fingerprint(serialized: str) -> str:
    """Tells a process with these settings and this code from one with others."""
    import hashlib

    from lakehouse.core.version import __version__

    return hashlib.sha256(f"{__version__}\n{sys.executable}\n{serialized}".encode()).hexdigest()[:16]


def _end(pid: int) -> None:
    """Ask the process to stop, wait, and insist."""
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(pid, signal_number)
            deadline = time.monotonic() + _STOP_TIMEOUT_S
            while time.monotonic() < deadline:
                os.kill(pid, 0)
                if _is_zombie(pid):
                    return
                time.sleep(0.05)
        except ProcessLookupError:
            return


def _is_zombie(pid: int) -> bool:
    """Ended, but its parent (a long-lived program that uses us) has not asked how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (OSError, IndexError):
        return False


def _listed_result(answer: dict[str, Any]) -> Result:
    columns = tuple(Column(**column) for column in answer["columns"])
    rows = [tuple(row) for row in answer["rows"]]
    return Result(columns, ListedRows([column.name for column in columns], rows), Explain(**answer["explain"]))


def _arrow_result(data: bytes) -> Result:
    import pyarrow

    table = pyarrow.ipc.open_stream(data).read_all()
    told = json.loads(table.schema.metadata[b"lake"])
    columns = tuple(Column(**column) for column in told["columns"])
    return Result(columns, ArrowRows(table.replace_schema_metadata(None)), Explain(**told["explain"]))
