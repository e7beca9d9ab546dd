"""The pool of query processes: first come, first served; a process that died or does not stop is replaced."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import IO

from lakehouse.core.errors import StatementTimeoutError, TooManyRequestsError, WorkerDiedError
from lakehouse.engines.duckdb.workers import frames

_LOG = logging.getLogger(__name__)
_START_TIMEOUT_S = 60.0
#: How long a canceled statement may take to end before its process is killed.
_STOP_S = 1.0
_MAX_WAITING = 500


@dataclass(frozen=True)
class WorkerOptions:
    """How each query process is set up."""

    folders: Sequence[str]
    """The folders and addresses that it may read, each with a slash at its end."""
    spill: Path
    memory: int
    """Bytes that DuckDB uses before it spills."""
    threads: int
    access: str = field(default="", repr=False)
    """The statement that grants access to an object store; it holds keys."""


class WorkerProcess:
    """One query process."""

    _numbers = count(1)

    def __init__(self, options: WorkerOptions, errors: IO[bytes] | int) -> None:
        self.data, data = socket.socketpair()
        self._control, control = socket.socketpair()
        with data, control:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "lakehouse.engines.duckdb.workers.process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                pass_fds=(data.fileno(), control.fileno()),
                start_new_session=True,
                env={**os.environ, "TZ": "UTC"},
            )
            sent = {
                "data": data.fileno(),
                "control": control.fileno(),
                "folders": list(options.folders),
                "spill": str(options.spill / f"worker-{self._process.pid}"),
                "memory": options.memory,
                "threads": options.threads,
                "access": options.access,
            }
            assert self._process.stdin is not None
            with suppress(BrokenPipeError), self._process.stdin as stdin:
                stdin.write(json.dumps(sent).encode() + b"\n")
        self.spill = Path(str(sent["spill"]))
        self.number = 0

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def wait_until_ready(self) -> None:
        """Wait until it has opened DuckDB; raises WorkerDiedError."""
        self.data.settimeout(_START_TIMEOUT_S)
        try:
            frames.receive(self.data)
        except (frames.ConnectionLost, TimeoutError) as exc:
            self.kill()
            raise WorkerDiedError("A query process did not start.", "See logs/serve.log in the lake's folder.") from exc

    def send(self, job: dict[str, object]) -> None:
        """Start a statement."""
        self.number = next(self._numbers)
        self.data.settimeout(None)
        try:
            frames.send(self.data, frames.RUN, json.dumps({**job, "number": self.number}).encode())
        except ConnectionError as exc:
            raise _died() from exc

    def receive(self, deadline: float) -> tuple[bytes, bytes]:
        """The next message of the statement; raises TimeoutError and WorkerDiedError."""
        self.data.settimeout(max(deadline - time.monotonic(), 0.001))
        try:
            return frames.receive(self.data)
        except frames.ConnectionLost as exc:
            raise _died() from exc

    def interrupt(self) -> None:
        """Ask it to stop the statement."""
        with suppress(OSError):
            self._control.sendall(self.number.to_bytes(8, "big"))

    def stop_statement(self) -> bool:
        """Stop the statement and skip what it still sends; False if it does not stop in time."""
        self.interrupt()
        deadline = time.monotonic() + _STOP_S
        try:
            while self.receive(deadline)[0] not in (frames.END, frames.ERROR):
                pass
        except (TimeoutError, WorkerDiedError):
            return False
        return True

    def kill(self) -> None:
        """End the process and close its sockets."""
        import shutil

        if code := self._process.poll():
            _LOG.warning("query process %s ended with code %s", self.pid, code)
        self._process.kill()
        self._process.wait()
        self.data.close()
        self._control.close()
        shutil.rmtree(self.spill, ignore_errors=True)


class WorkerPool:
    """Query processes that wait for statements."""

    def __init__(self, options: WorkerOptions, size: int, log: Path) -> None:
        self._options, self._size, self._log = options, size, log
        self._lock = threading.Lock()
        self._idle: deque[WorkerProcess] = deque()
        self._all: set[WorkerProcess] = set()
        self._waiting: deque[Future[WorkerProcess]] = deque()
        self._starting, self._closed = 0, False
        for _ in range(size):
            self._start_another()

    @property
    def waiting(self) -> int:
        """How many statements wait for a process."""
        return len(self._waiting)

    @property
    def busy(self) -> int:
        """How many processes run a statement."""
        return len(self._all) - len(self._idle)

    def acquire(self, deadline: float, future: Future[WorkerProcess]) -> WorkerProcess:
        """A process of one's own until `release`. Those who came first get one first.

        Args:
            future: of the caller, who may cancel it to stop waiting.
        """
        self._drop_dead()
        with self._lock:
            if self._idle and not self._waiting:
                return self._idle.popleft()
            if len(self._waiting) >= _MAX_WAITING:
                raise TooManyRequestsError(f"{_MAX_WAITING} statements wait already.", "Try again later.", 5)
            self._waiting.append(future)
        try:
            return future.result(max(deadline - time.monotonic(), 0))
        except FutureTimeoutError as exc:
            if not future.cancel():  # it was handed over in this moment
                self.release(future.result(), True)
            raise StatementTimeoutError("The statement waited too long for its turn.", "Try again later.") from exc

    def release(self, worker: WorkerProcess, is_sound: bool) -> None:
        """Give a process back; one that is not sound is replaced."""
        if not is_sound or self._closed:
            with self._lock:
                self._all.discard(worker)
            worker.kill()
            self._start_another()
            return
        self._hand_over(worker)

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            self._closed = True
            workers, self._all = self._all, set()
            self._idle.clear()
        for worker in workers:
            worker.kill()

    def _drop_dead(self) -> None:
        """Replace idle processes that somebody has killed."""
        with self._lock:
            dead = [worker for worker in self._idle if not worker.is_alive]
            for worker in dead:
                self._idle.remove(worker)
                self._all.discard(worker)
        for worker in dead:
            worker.kill()
            self._start_another()

    def _hand_over(self, worker: WorkerProcess) -> None:
        with self._lock:
            while self._waiting:
                # False: whoever waited has given up.
                future = self._waiting.popleft()
                if future.set_running_or_notify_cancel():
                    future.set_result(worker)
                    return
            self._idle.append(worker)

    def _start_another(self) -> None:
        with self._lock:
            if self._closed or len(self._all) + self._starting >= self._size:
                return
            self._starting += 1
        threading.Thread(target=self._start, daemon=True).start()

    def _start(self) -> None:
        try:
            with self._log.open("ab") as errors:
                worker = WorkerProcess(self._options, errors)
            worker.wait_until_ready()
        except (WorkerDiedError, OSError) as exc:
            with self._lock:
                self._starting -= 1
                failed = list(self._waiting) if not self._all else []
                self._waiting = deque() if failed else self._waiting
            for future in failed:
                if future.set_running_or_notify_cancel():
                    future.set_exception(exc)
            return
        with self._lock:
            self._starting -= 1
            self._all.add(worker)
            is_late = self._closed
        if is_late:
            worker.kill()
        else:
            self._hand_over(worker)


def _died() -> WorkerDiedError:
    return WorkerDiedError(
        "The query process ended: the statement needed more memory than serve.worker_memory allows, or it crashed.",
        "Read less, raise serve.worker_memory, or use the engine spark.",
    )
