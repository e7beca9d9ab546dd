"""The pool of query processes, shared fairly between callers; a process that died or does not stop is replaced."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from dataclasses import field
from itertools import count
from pathlib import Path
from typing import IO

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import StatementTimeoutError, TooManyRequestsError, WorkerDiedError
from lakehouse.engines.duckdb.workers import frames
from lakehouse.process.daemons import module_command

_LOG = logging.getLogger(__name__)
_START_TIMEOUT_S = 60.0
#: How long a canceled statement may take to end before its process is killed.
_STOP_S = 3.0
_MAX_WAITING = 500
#: How long to wait for a process that is asked for its progress.
_PROGRESS_S = 0.2


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
                module_command("lakehouse.engines.duckdb.workers.process"),
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
        self._asking = threading.Lock()

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

    def progress(self) -> int | None:
        """How much of its statement is done, in percent; None if that is not known."""
        with self._asking, suppress(OSError):
            self._control.settimeout(_PROGRESS_S)
            self._control.sendall(bytes(8))
            percent = int.from_bytes(self._control.recv(1), "big", signed=True)
            return percent if percent >= 0 else None
        return None

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


@dataclass(eq=False)
class Turn:
    """A statement that waits for a process, or has one."""

    owner: str
    """Whose statement it is: processes are shared between owners."""
    process: Future[WorkerProcess] = field(default_factory=Future)

    def cancel(self) -> bool:
        """Stop waiting; False if it has its process."""
        return self.process.cancel()


class WorkerPool:
    """Query processes that wait for statements.

    Whoever has the fewest statements running is next. One owner runs as many as the pool has processes; while that is so, one
    process more is there for everybody else, which is started when it is needed first.
    """

    def __init__(self, options: WorkerOptions, size: int, log: Path) -> None:
        self._options, self._size, self._log = options, size, log
        self._lock = threading.Lock()
        self._idle: deque[WorkerProcess] = deque()
        self._all: set[WorkerProcess] = set()
        self._waiting: list[Turn] = []
        self._running: dict[WorkerProcess, str] = {}
        self._starting, self._closed = 0, False
        for _ in range(size):
            self._start_another(size)

    @property
    def waiting(self) -> int:
        """How many statements wait for a process."""
        return len(self._waiting)

    @property
    def busy(self) -> int:
        """How many processes run a statement."""
        return len(self._all) - len(self._idle)

    def acquire(self, deadline: float, turn: Turn) -> WorkerProcess:
        """A process of one's own until `release`."""
        self._drop_dead()
        with self._lock:
            if len(self._waiting) >= _MAX_WAITING:
                raise TooManyRequestsError(f"{_MAX_WAITING} statements wait already.", "Try again later.", 5)
            self._waiting.append(turn)
        self._assign()
        try:
            return turn.process.result(max(deadline - time.monotonic(), 0))
        except FutureTimeoutError as exc:
            if not turn.cancel():  # it was handed over in this moment
                self.release(turn.process.result(), True)
            raise StatementTimeoutError("The statement waited too long for its turn.", "Try again later.") from exc
        finally:
            with self._lock, suppress(ValueError):
                self._waiting.remove(turn)

    def release(self, worker: WorkerProcess, is_sound: bool) -> None:
        """Give a process back; one that is not sound is replaced."""
        with self._lock:
            self._running.pop(worker, None)
            if is_sound and not self._closed:
                self._idle.append(worker)
            else:
                self._all.discard(worker)
        if not is_sound or self._closed:
            worker.kill()
            self._start_another(self._size)
        self._assign()

    def place(self, turn: Turn) -> int | None:
        """The place of a statement in the queue, from 1; None if it does not wait."""
        with self._lock:
            order = self._order()
        return order.index(turn) + 1 if turn in order else None

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
            self._start_another(self._size)

    def _order(self) -> list[Turn]:
        """Who is next: those with the fewest statements that run or wait before, and of these whoever came first."""
        ahead = Counter(self._running.values())
        ranked: list[tuple[int, int, Turn]] = []
        for number, turn in enumerate(self._waiting):
            ranked.append((ahead[turn.owner], number, turn))
            ahead[turn.owner] += 1
        return [turn for _, _, turn in sorted(ranked, key=lambda entry: entry[:2])]

    def _assign(self) -> None:
        """Give idle processes to those who wait."""
        wants_more = False
        with self._lock:
            for turn in self._order():
                if list(self._running.values()).count(turn.owner) >= self._size:
                    continue  # the rest of the processes are for others
                if not self._idle:
                    wants_more = len(set(self._running.values()) | {turn.owner}) > 1
                    break
                self._waiting.remove(turn)
                if turn.process.set_running_or_notify_cancel():  # False: whoever waited has given up
                    worker = self._idle.popleft()
                    self._running[worker] = turn.owner
                    turn.process.set_result(worker)
        if wants_more:
            self._start_another(self._size + 1)

    def _start_another(self, most: int) -> None:
        with self._lock:
            if self._closed or len(self._all) + self._starting >= most:
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
            for turn in failed:
                if turn.process.set_running_or_notify_cancel():
                    turn.process.set_exception(exc)
            return
        with self._lock:
            self._starting -= 1
            is_late = self._closed
            if not is_late:
                self._all.add(worker)
                self._idle.append(worker)
        if is_late:
            worker.kill()
        else:
            self._assign()


def _died() -> WorkerDiedError:
    return WorkerDiedError(
        "The query process ended: the statement needed more memory than serve.worker_memory allows, or it crashed.",
        "Read less, raise serve.worker_memory, or use the engine spark.",
    )
