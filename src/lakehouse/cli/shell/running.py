"""Run a statement beside the terminal: it shows its time and progress, Ctrl-C stops it, and a second one detaches it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import Generic, TypeVar

from lakehouse.cli.show import show_status
from lakehouse.core.cancel import CancelScope

R = TypeVar("R")

#: A statement that is faster shows nothing but its result.
_SHOW_AFTER_S = 1.0
_POLL_S = 0.1
_CLEAR_LINE = "\r\x1b[K"

_of_thread = threading.local()


class StatementDetached(KeyboardInterrupt):
    """A statement did not stop, and the shell goes on without it."""


class RunningStatement(Generic[R]):
    """A statement in a thread of its own. `result` waits for it in the main thread, which Ctrl-C interrupts."""

    def __init__(self, work: Callable[[], R]) -> None:
        self._work, self._outcome, self._scope = work, Future[R](), CancelScope()
        self._started = time.monotonic()
        self._is_line_shown = False
        self.report = ""
        """What its engine says about its progress."""

    def result(self) -> R:
        """What the work returns; KeyboardInterrupt if it was stopped."""
        threading.Thread(target=self._run, daemon=True, name="shell-statement").start()
        try:
            return self._wait("Ctrl-C stops it")
        except KeyboardInterrupt:
            return self._stop()
        finally:
            self._clear()

    def _run(self) -> None:
        _of_thread.statement = self
        try:
            with self._scope.active():
                self._outcome.set_result(self._work())
        except BaseException as exc:  # noqa: BLE001 - raised in the waiting thread
            self._outcome.set_exception(exc)

    def _stop(self) -> R:
        self._scope.cancel()
        try:
            # One that ended before it could be stopped has its result: a change that was made must not be hidden.
            return self._wait("stopping; Ctrl-C again goes on without it")
        except KeyboardInterrupt as exc:
            raise StatementDetached from exc
        except Exception as exc:
            raise KeyboardInterrupt from exc

    def _wait(self, keys: str) -> R:
        while wait([self._outcome], _POLL_S).not_done:
            self._show(keys)
            if self._scope.is_canceled:
                # An engine may forget a request that comes before the statement has begun there.
                self._scope.cancel()
        return self._outcome.result()

    def _show(self, keys: str) -> None:
        seconds = time.monotonic() - self._started
        if seconds < _SHOW_AFTER_S or not sys.stderr.isatty():
            return
        # Spark and Trino report their tasks; DuckDB measures no progress of scans of Iceberg tables (it answers -1).
        parts = [self.report, f"{seconds:.0f} s", keys]
        sys.stderr.write(f"{_CLEAR_LINE}\x1b[2m{' · '.join(filter(None, parts))}\x1b[0m")
        sys.stderr.flush()
        self._is_line_shown = True

    def _clear(self) -> None:
        if self._is_line_shown:
            sys.stderr.write(_CLEAR_LINE)
            sys.stderr.flush()


@contextmanager
def report_status(text: str) -> Iterator[Callable[[str], None] | None]:
    """`show_status` for the lake of a shell: what a running statement reports belongs to its own line."""
    statement: RunningStatement[object] | None = getattr(_of_thread, "statement", None)
    if statement is None:
        with show_status(text) as update:
            yield update
        return

    def update_line(text: str) -> None:
        statement.report = text

    update_line(text)
    try:
        yield update_line
    finally:
        update_line("")
