"""Keeps one service running: waits for what it needs, starts it, asks whether it answers, starts it again when it dies."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from lakehouse.core.errors import LakeError
from lakehouse.stack.model import ProcessSpec, Service, StackContext
from lakehouse.stack.process import end, fingerprint, last_words, log_size, memory_mb, start, start_mark

#: Seconds before the first, the second, … start after a death; after the last one it is given up.
_PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0)
#: A server that lived for so long has earned all its starts again.
_LONG_LIFE_S = 300.0
_LOOK_EVERY_S = 0.1

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
        self, service: Service, context: StackContext, needs: Sequence[ServiceMonitor], changed: Callable[[], None]
    ) -> None:
        assert service.process is not None
        self.service, self.state, self.why, self.restarts = service, WAITING, "", 0
        self._context, self._needs, self._changed = context, needs, changed
        self._process: ProcessSpec = service.process(context)
        self._running: subprocess.Popen[bytes] | None = None
        self._mark, self._log_before = "", 0
        self._stopping = threading.Event()
        # The system ends a server with the thread that started it, so the thread stays with it.
        self._thread = threading.Thread(target=self._keep, name=service.name)

    def begin(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the server and wait until it has ended."""
        self._stopping.set()
        self._thread.join()
        self._enter(STOPPED)

    def runs_as(self, context: StackContext) -> bool:
        """Whether it runs, or is about to, as these settings want it."""
        assert self.service.process is not None
        return self.state != FAILED and fingerprint(self.service.process(context)) == fingerprint(self._process)

    def told(self) -> dict[str, Any]:
        """What a status shows of it, and what another supervisor needs to end it."""
        pid = self._running.pid if self._running and self._running.returncode is None else None
        settings = self._context.settings
        return {
            "service": self.service.name,
            "state": self.state,
            "url": next((port.address(settings) for port in self.service.ports if port.url), None),
            "pid": pid,
            "mark": self._mark if pid else "",
            "memory_mb": memory_mb(pid) if pid else None,
            "stop_signal": int(self._process.stop_signal),
            "restarts": self.restarts,
            "why": self.why,
            "log": str(self._context.log(self.service.name)),
        }

    def _enter(self, state: str, why: str = "") -> None:
        self.state, self.why = state, why
        self._changed()

    def _keep(self) -> None:
        deaths = 0
        while not self._stopping.is_set() and self._needs_run():
            began = time.monotonic()
            try:
                self._live()
            except LakeError as exc:
                self._end()
                self._enter(FAILED, exc.message.removeprefix(f"{self.service.name} does not run: "))
                return
            except Exception as exc:  # noqa: BLE001 - whatever a description gets wrong fails this service alone
                self._end()
                sys.stderr.write(f"{self.service.name}: {type(exc).__name__}: {exc}\n")
                self._enter(FAILED, f"{type(exc).__name__}: {exc}")
                return
            if self._stopping.is_set():
                return
            deaths = 0 if time.monotonic() - began > _LONG_LIFE_S else deaths
            if deaths == len(_PAUSES):
                self._enter(FAILED, f"it ended {deaths + 1} times: {self._last_words()}")
                return
            self._enter(RESTARTING, self._last_words())
            self._stopping.wait(_PAUSES[deaths])
            deaths += 1
            self.restarts += 1

    def _needs_run(self) -> bool:
        """Wait for the services that this one needs. False: it will never be started."""
        while not self._stopping.is_set():
            broken = [each for each in self._needs if each.state in (FAILED, STOPPED)]
            if broken:
                self._enter(FAILED, f"it needs {broken[0].service.name}, which does not run: {broken[0].why}")
                return False
            if all(each.state == RUNNING for each in self._needs):
                return True
            self._stopping.wait(_LOOK_EVERY_S)
        return False

    def _live(self) -> None:
        """From the start of a process to its end."""
        self._enter(STARTING, self.why)
        self._log_before = log_size(self._context.log(self.service.name))
        self.service.prepare(self._context)
        self._running = start(self.service.name, self._process, self._context)
        self._mark = start_mark(self._running.pid)
        self._changed()
        if self._answers():
            self.service.ready(self._context)
            self._enter(RUNNING)
            while self._running.poll() is None and not self._stopping.wait(_LOOK_EVERY_S):
                pass
        if self._stopping.is_set():
            self._end()

    def _answers(self) -> bool:
        """Wait until the server answers; False if it ended or is to be stopped. One that never does is an error."""
        assert self._running is not None
        deadline = time.monotonic() + self.service.start_timeout_s
        while not self._stopping.is_set():
            code = self._running.poll()
            if code is not None:
                if not self.restarts:
                    # It never ran: to try again would only hide what is wrong.
                    raise LakeError(f"it ended with code {code}: {self._last_words()}")
                return False
            if self.service.healthy(self._context):
                return True
            if time.monotonic() > deadline:
                raise LakeError(f"it did not answer within {self.service.start_timeout_s:.0f} s: {self._last_words()}")
            self._stopping.wait(_LOOK_EVERY_S)
        return False

    def _last_words(self) -> str:
        return last_words(self._context.log(self.service.name), self._log_before)

    def _end(self) -> None:
        if self._running is not None:
            end(self._running.pid, self._mark, self._process.stop_signal)
            self._running.wait()
            self._changed()
