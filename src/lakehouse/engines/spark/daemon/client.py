"""The client of the Spark daemon: one background process per lake, on a Unix socket that only its owner can open.

If no daemon answers, the client starts one, under a lock so that two commands at once start one daemon. A daemon that
was killed, or that runs with other settings, is replaced.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from lakehouse.core.engine import EngineCapabilities, Query, job_group
from lakehouse.core.errors import EngineUnreachableError, LakeError, StatementLostError, error_from_dict
from lakehouse.core.jsonable import reader
from lakehouse.core.progress import Amount, task_listener
from lakehouse.core.refs import acting_author
from lakehouse.core.result import Explain, ListedRows, Result
from lakehouse.core.tables import Column
from lakehouse.process.files import locked

if TYPE_CHECKING:
    from lakehouse.engines.spark.attach import Lease

#: Called with what is being waited for; returns a context manager for the duration of the wait.
StatusReporter = Callable[[str], Any]
ARROW = "application/vnd.apache.arrow.stream"
SOCKET = "spark.sock"
_CONNECT_TIMEOUT_S = 5.0
_STOP_TIMEOUT_S = 15.0
_PROGRESS_S = 0.5


class SparkDaemonClient:
    """Sends statements to the Spark daemon of a lake, and starts it when needed."""

    def __init__(
        self,
        run_folder: Path,
        log: Path,
        start: list[str],
        serialized: str,
        status: StatusReporter,
        before_start: Callable[[], object],
    ) -> None:
        """
        Args:
            start: the command that starts the daemon.
            serialized: all settings, which the daemon reads from standard input so that none is an argument.
            status: opened around a wait, with what is waited for.
            before_start: called before the daemon is started, to download what it needs while progress is shown.
        """
        self._socket, self._lock_file = run_folder / SOCKET, run_folder / "start.lock"
        self._log, self._start_command, self._serialized = log, start, serialized
        self._fingerprint = fingerprint(serialized)
        self._status_reporter, self._before_start = status, before_start

    name = "spark"
    capabilities = EngineCapabilities(writes=True, lake_only=True, marks_commits=True)

    def run(self, query: Query) -> Result:
        """Run a statement on the daemon, which is started if it does not run; it runs there as it was parsed here."""
        from lakehouse.engines.spark.daemon.stream import stream_statement, whole_result

        request = query.request
        self._ensure_running()
        is_write = query.statement.kind == "write"
        if is_write:  # it has no rows to stream, and its one answer says whether it was committed
            request = replace(request, arrow=request.arrow or request.stream, stream=False)
        tag = token_hex(16)
        body = statement_body(replace(query, request=request), tag)
        if request.stream:
            with self._status_reporter("Running on Spark"), self._progress_shown(tag, None), self._translated():
                return stream_statement(self._socket, body, query.statement.text)
        with self._status_reporter("Running on Spark") as show, self._progress_shown(tag, show):
            stop = partial(self._cancel, tag) if is_write else None
            status, content_type, data = self._send("POST", "/query", body, stop=stop)
        if status != 200 and content_type != "application/json":
            raise self._lost()  # the daemon was told to end, and gave the statement up after some seconds
        if status != 200:
            raise error_from_dict(json.loads(data), query.statement.text)
        if content_type != ARROW:
            return _listed_result(json.loads(data))
        import pyarrow

        return whole_result(pyarrow.ipc.open_stream(data))

    def _cancel(self, tag: str) -> None:
        """Ask the daemon to cancel a write, whose answer is then waited for: it may have been committed already."""
        with suppress(LakeError):
            self._send("POST", f"/cancel/{tag}", timeout=_CONNECT_TIMEOUT_S)

    @contextmanager
    def _progress_shown(self, tag: str, show: Callable[[str], None] | None) -> Iterator[None]:
        """Show how many tasks of a statement are done, or tell who listens, while the block waits for its result."""
        listener = task_listener()
        if show is None and listener is None:
            yield
            return
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(_PROGRESS_S):
                with suppress(LakeError):
                    status, _, data = self._send("GET", f"/progress/{tag}", timeout=_CONNECT_TIMEOUT_S)
                    progress = json.loads(data) if status == 200 else {}
                    if progress.get("tasks") and not ended.is_set():
                        done, total = progress["completed"], progress["tasks"]
                        if listener is not None:
                            listener(Amount(done, total, "tasks"))
                        if show is not None:
                            show(f"Running on Spark: {100 * done // total} % ({done} of {total} tasks)")

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()

    def lease(self, start: bool) -> Lease | None:
        """A lease of the daemon's JVM; None if no daemon with these settings runs.

        Args:
            start: start a daemon if none runs. One with other settings is left alone: others may use it.
        """
        from lakehouse.engines.spark.attach import Lease
        from lakehouse.process.unix_http import ConnectionBroken, Unreachable, open_stream

        health = self.health()
        if health is None and start:
            self._ensure_running()
        elif not self._is_current(health):
            return None
        try:
            connection, first = open_stream(self._socket, "/attach", {"group": job_group()})
        except (Unreachable, ConnectionBroken):
            return None
        granted = json.loads(first)
        return Lease(int(granted["port"]), str(granted["secret"]), connection.close)

    def prepare(self) -> None:
        """Start the daemon in the background, if it does not run; `run` raises the errors."""
        if self._is_current(self.health()):
            return
        self._before_start()
        threading.Thread(target=self._start_quietly, daemon=True).start()

    def _start_quietly(self) -> None:
        with suppress(LakeError), locked(self._lock_file):
            self._start_if_needed()

    def health(self) -> dict[str, Any] | None:
        """The daemon's health report, or None if it does not run."""
        try:
            status, _, data = self._send("GET", "/health", timeout=_CONNECT_TIMEOUT_S)
        except (EngineUnreachableError, StatementLostError):
            return None
        return dict(json.loads(data)) if status == 200 else None

    def shut_down(self) -> bool:
        """Stop the daemon, which lets running statements finish for some seconds; False if none ran."""
        health = self.health()
        if health is None:
            return False
        _end(int(health["pid"]))
        return True

    def _ensure_running(self) -> None:
        if self._is_current(self.health()):
            return
        self._before_start()
        with self._status_reporter("Starting Spark"), locked(self._lock_file):
            self._start_if_needed()

    def _start_if_needed(self) -> None:
        """Start the daemon unless a current one runs; the caller holds the lock."""
        health = self.health()
        if self._is_current(health):
            return
        if health is not None:
            _end(int(health["pid"]))
        self._start()

    def _is_current(self, health: dict[str, Any] | None) -> bool:
        return health is not None and health["fingerprint"] == self._fingerprint

    def _start(self) -> None:
        from lakehouse.engines.spark.launch import START_TIMEOUT_S
        from lakehouse.process.daemons import DaemonStartError, start_daemon

        def is_ready() -> bool:
            return self.health() is not None

        try:
            start_daemon(self._start_command, self._serialized, self._log, is_ready, START_TIMEOUT_S)
        except DaemonStartError as exc:
            raise EngineUnreachableError(
                f"Spark did not start: {exc}", f"lake doctor; the whole log: {self._log}"
            ) from exc

    def _send(
        self,
        method: str,
        path: str,
        body: Any = None,
        timeout: float | None = None,
        stop: Callable[[], None] | None = None,
    ) -> tuple[int, str, bytes]:
        # Imported here: a query that DuckDB answers does not need HTTP.
        from lakehouse.process.unix_http import request

        with self._translated():
            return request(self._socket, method, path, body, timeout, stop)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        from lakehouse.process.unix_http import ConnectionBroken, Unreachable

        try:
            yield
        except Unreachable as exc:
            raise EngineUnreachableError("The warm Spark does not answer.", "lake doctor") from exc
        except ConnectionBroken as exc:
            raise self._lost() from exc

    def _lost(self) -> StatementLostError:
        return StatementLostError(
            "The warm Spark ended during the statement, so it may or may not have been committed.",
            f"Check with `lake history`, then run it again: a new Spark starts automatically. Log: {self._log}",
        )


def statement_body(query: Query, tag: str) -> dict[str, Any]:
    """The body of POST /query: the request and the parsed statement, without its syntax tree, which Spark does not need."""
    return {
        "request": asdict(query.request),
        "statement": asdict(replace(query.statement, tree=None)),
        "views": [asdict(view) for view in query.views],
        "reason": query.reason,
        "tag": tag,
        "author": acting_author(),
    }


def fingerprint(serialized: str) -> str:
    """Identifies the settings and the code that a daemon runs with."""
    import hashlib

    from lakehouse.core import __version__

    return hashlib.sha256(f"{__version__}\n{sys.executable}\n{serialized}".encode()).hexdigest()[:16]


def _end(pid: int) -> None:
    from lakehouse.process.pids import start_time, terminate

    terminate(pid, start_time(pid), timeout_s=_STOP_TIMEOUT_S)


def _listed_result(payload: dict[str, Any]) -> Result:
    columns = tuple(Column(**column) for column in payload["columns"])
    readers = [reader(column.type) for column in columns]
    rows = [
        tuple(
            read(value) if read and isinstance(value, str) else value for value, read in zip(row, readers, strict=True)
        )
        for row in payload["rows"]
    ]
    return Result(columns, ListedRows([column.name for column in columns], rows), Explain(**payload["explain"]))
