"""Monitors one service: waits for its dependencies, starts it, checks that it answers, restarts it when it dies."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from lakehouse.core.errors import LakeError
from lakehouse.process.daemons import failure_line, log_size
from lakehouse.process.pids import memory_mb, start_time, terminate
from lakehouse.stack.model import ProcessSpec, Service, StackContext
from lakehouse.stack.process import fingerprint, start

#: Seconds before the first, the second, … restart; after the last one the service has failed.
_RESTART_DELAYS = (0.5, 1.0, 2.0, 5.0, 10.0)
#: A server that ran this long gets all of its restarts again.
_STABLE_AFTER_S = 300.0
_POLL_S = 0.1

WAITING, STARTING, RUNNING, RESTARTING, FAILED, STOPPED = (
    "waiting",
    "starting",
    "running",
    "restarting",
    "failed",
    "stopped",
)


class ServiceMonitor:
    """One service of a running stack."""

    def __init__(
        self,
        service: Service,
        context: StackContext,
        dependencies: Sequence[ServiceMonitor],
        on_change: Callable[[], None],
    ) -> None:
        assert service.process is not None
        self.service, self.state, self.reason, self.restarts = service, WAITING, "", 0
        self._context, self._dependencies, self._on_change = context, dependencies, on_change
        self._spec: ProcessSpec = service.process(context)
        self._process: subprocess.Popen[bytes] | None = None
        self._start_time, self._log_offset = "", 0
        self._stopping = threading.Event()
        # The system ends a server with the thread that started it, so this thread lives as long as the server.
        self._thread = threading.Thread(target=self._supervise, name=service.name)

    def begin(self) -> None:
        """Start the service in the background."""
        self._thread.start()

    def stop(self) -> None:
        """End the server and wait until it has ended."""
        self._stopping.set()
        self._thread.join()
        self._enter(STOPPED)

    def matches(self, context: StackContext) -> bool:
        """Whether it runs, or is about to, with these settings."""
        assert self.service.process is not None
        return self.state != FAILED and fingerprint(self.service.process(context)) == fingerprint(self._spec)

    def status(self) -> dict[str, Any]:
        """The status as JSON: what `lake status` shows, and what a later supervisor needs to end the server."""
        pid = self._process.pid if self._process and self._process.returncode is None else None
        settings = self._context.settings
        return {
            "service": self.service.name,
            "state": self.state,
            "url": next((port.address(settings) for port in self.service.ports if port.url), None),
            "pid": pid,
            "start_time": self._start_time if pid else "",
            "memory_mb": memory_mb(pid) if pid else None,
            "stop_signal": int(self._spec.stop_signal),
            "restarts": self.restarts,
            "reason": self.reason,
            "log": str(self._context.log(self.service.name)),
        }

    def _enter(self, state: str, reason: str = "") -> None:
        self.state, self.reason = state, reason
        self._on_change()

    def _supervise(self) -> None:
        failures = 0
        while not self._stopping.is_set() and self._wait_for_dependencies():
            began = time.monotonic()
            try:
                self._run()
            except LakeError as exc:
                self._fail(exc.message.removeprefix(f"{self.service.name} does not run: "))
                return
            except Exception as exc:  # noqa: BLE001 - a bug in one service's description fails this service alone
                sys.stderr.write(f"{self.service.name}: {type(exc).__name__}: {exc}\n")
                self._fail(f"{type(exc).__name__}: {exc}")
                return
            if self._stopping.is_set():
                return
            failures = 0 if time.monotonic() - began > _STABLE_AFTER_S else failures
            if failures == len(_RESTART_DELAYS):
                self._enter(FAILED, f"it ended {failures + 1} times: {self._failure_line()}")
                return
            self._enter(RESTARTING, self._failure_line())
            self._stopping.wait(_RESTART_DELAYS[failures])
            failures += 1
            self.restarts += 1

    def _wait_for_dependencies(self) -> bool:
        """Wait until all dependencies run; False if this service will never be started."""
        while not self._stopping.is_set():
            broken = [dependency for dependency in self._dependencies if dependency.state in (FAILED, STOPPED)]
            if broken:
                self._enter(FAILED, f"it needs {broken[0].service.name}, which does not run: {broken[0].reason}")
                return False
            if all(dependency.state == RUNNING for dependency in self._dependencies):
                return True
            self._stopping.wait(_POLL_S)
        return False

    def _run(self) -> None:
        """Start the process and return when it has ended."""
        self._enter(STARTING, self.reason)
        self._log_offset = log_size(self._context.log(self.service.name))
        self.service.prepare(self._context)
        self._process = start(self.service.name, self._spec, self._context)
        self._start_time = start_time(self._process.pid)
        self._on_change()
        if self._wait_until_healthy():
            self.service.ready(self._context)
            self._enter(RUNNING)
            while self._process.poll() is None and not self._stopping.wait(_POLL_S):
                pass
        if self._stopping.is_set():
            self._end()

    def _wait_until_healthy(self) -> bool:
        """False if the server ended or is to be stopped. A server that never becomes healthy is an error."""
        assert self._process is not None
        deadline = time.monotonic() + self.service.start_timeout_s
        while not self._stopping.is_set():
            code = self._process.poll()
            if code is not None:
                if not self.restarts:
                    # It never ran: a restart would only hide the reason.
                    raise LakeError(f"it ended with code {code}: {self._failure_line()}")
                return False
            if self.service.healthy(self._context):
                return True
            if time.monotonic() > deadline:
                raise LakeError(
                    f"it did not answer within {self.service.start_timeout_s:.0f} s: {self._failure_line()}"
                )
            self._stopping.wait(_POLL_S)
        return False

    def _failure_line(self) -> str:
        return failure_line(self._context.log(self.service.name), self._log_offset)

    def _fail(self, reason: str) -> None:
        self._end()
        self._enter(FAILED, reason)

    def _end(self) -> None:
        if self._process is not None:
            terminate(self._process.pid, self._start_time, self._spec.stop_signal)
            self._process.wait()
            self._on_change()
