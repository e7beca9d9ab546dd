"""Stop a statement from another thread, or the work of a process by SIGINT: whoever does the work says how and until when."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from lakehouse.core.interrupts import handle_interrupts

R = TypeVar("R")
Stop = Callable[[], None]
#: DuckDB stops within milliseconds; reading from a store that does not answer may take longer.
_STOP_TIMEOUT_S = 2.0

_current: ContextVar[CancelScope | None] = ContextVar("cancel_scope", default=None)


class CancelScope:
    """Statements that run in the scope, on this thread, end when it is canceled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stops: list[tuple[Stop, Stop | None]] = []
        self.is_canceled = self._is_abandoned = False

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make this the scope of what the block runs."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def cancel(self) -> None:
        """Stop what runs; what starts later in the scope is stopped at once."""
        with self._lock:
            self.is_canceled = True
            stops = list(self._stops)
        for stop, _ in stops:
            stop()

    def abandon(self) -> None:
        """Stop what runs, and wait for no answer about it."""
        with self._lock:
            self.is_canceled = self._is_abandoned = True
            stops = list(self._stops)
        for stop, hang_up in stops:
            (hang_up or stop)()

    def add(self, stop: Stop, hang_up: Stop | None = None) -> None:
        """Have `stop` called if the scope is canceled, or `hang_up` if it is abandoned."""
        with self._lock:
            self._stops.append((stop, hang_up))
            canceled, abandoned = self.is_canceled, self._is_abandoned
        if abandoned:
            (hang_up or stop)()
        elif canceled:
            stop()

    def remove(self, stop: Stop, hang_up: Stop | None = None) -> None:
        """What `stop` would stop has ended."""
        with self._lock:
            self._stops.remove((stop, hang_up))


def stop_with_scope(stop: Stop, hang_up: Stop | None = None) -> Callable[[], None]:
    """Have a canceled scope call `stop`, also after the block in which the scope is active; returns what ends that."""
    scope = _current.get()
    if scope is None:
        return lambda: None
    scope.add(stop, hang_up)
    return lambda: scope.remove(stop, hang_up)


@contextmanager
def stopped_by(stop: Stop, hang_up: Stop | None = None) -> Iterator[None]:
    """While the block runs, a canceled scope calls `stop`, an abandoned one `hang_up`; without a scope, nothing does."""
    end = stop_with_scope(stop, hang_up)
    try:
        yield
    finally:
        end()


def pause(seconds: float) -> bool:
    """Wait; returns at once, with False, if the scope is canceled."""
    canceled = threading.Event()
    with stopped_by(canceled.set):
        return not canceled.wait(seconds)


def current_scope() -> CancelScope | None:
    """The scope in which this thread runs."""
    return _current.get()


def interruptible(interrupt: Callable[[], None], work: Callable[[], R]) -> R:
    """Run work that a library does so that Ctrl-C, or a canceled scope, stops it at once.

    Python handles signals on its main thread only, and DuckDB looks for them between tasks, which can take many seconds. So the
    main thread waits while another one works.

    Args:
        interrupt: stops the work, from another thread.
    """
    if threading.current_thread() is not threading.main_thread():
        with stopped_by(interrupt):
            return work()
    outcome: Future[R] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as exc:  # noqa: BLE001 - raised on the main thread
            outcome.set_exception(exc)

    thread = threading.Thread(target=run, name="interruptible", daemon=True)
    thread.start()
    try:
        with stopped_by(interrupt):
            return outcome.result()
    except KeyboardInterrupt:
        interrupt()
        thread.join(_STOP_TIMEOUT_S)
        raise


def is_interrupt(exc: BaseException) -> bool:
    """Whether an error is what a library made of Ctrl-C: DuckDB, pydantic and Python itself raise other errors in its place."""
    chain: list[BaseException] = []
    error: BaseException | None = exc
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__
    return any(isinstance(part, KeyboardInterrupt) or "KeyboardInterrupt" in str(part) for part in chain)


class InterruptGuard:
    """SIGINT in a process that does one piece of work: it ends the work, unless the result is already being committed.

    There is one per process, as there is one handler of a signal.
    """

    current: InterruptGuard | None = None

    def __init__(self, on_commit: Callable[[bool], None]) -> None:
        """
        Args:
            on_commit: called with True when a SIGINT comes too late, and with False when it does not any more.
        """
        self._on_commit = on_commit
        self._interrupted = self._committing = False

    def install(self) -> None:
        """Handle SIGINT from now on."""
        InterruptGuard.current = self
        handle_interrupts(self._interrupt)

    def _interrupt(self) -> None:
        self._interrupted = True
        if not self._committing:
            raise KeyboardInterrupt

    def commit(self, work: Callable[[], R]) -> R:
        """Run a commit to its end; a SIGINT that came meanwhile ends the work only if nothing was committed."""
        self._committing, done = True, False
        self._on_commit(True)
        try:
            result = work()
            done = bool(result)
            return result
        finally:
            if not done:
                self._committing = False
                self._on_commit(False)
                if self._interrupted:
                    raise KeyboardInterrupt


def commit(work: Callable[[], R]) -> R:
    """Run the step that makes a change visible. It returns something false if it has changed nothing."""
    guard = InterruptGuard.current
    return guard.commit(work) if guard else work()
