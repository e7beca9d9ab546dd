"""Stop a statement from another thread: an engine says how, whoever runs the statement decides when."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_current: ContextVar[CancelScope | None] = ContextVar("cancel_scope", default=None)


class CancelScope:
    """Statements that run in the scope, on this thread, end when it is canceled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stops: list[Callable[[], None]] = []
        self.is_canceled = False

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
        for stop in stops:
            stop()

    def add(self, stop: Callable[[], None]) -> None:
        """Have `stop` called if the scope is canceled."""
        with self._lock:
            self._stops.append(stop)
            canceled = self.is_canceled
        if canceled:
            stop()

    def remove(self, stop: Callable[[], None]) -> None:
        """What `stop` would stop has ended."""
        with self._lock:
            self._stops.remove(stop)


def stop_with_scope(stop: Callable[[], None]) -> Callable[[], None]:
    """Have a canceled scope call `stop`, also after the block in which the scope is active; returns what ends that."""
    scope = _current.get()
    if scope is None:
        return lambda: None
    scope.add(stop)
    return lambda: scope.remove(stop)


@contextmanager
def stopped_by(stop: Callable[[], None]) -> Iterator[None]:
    """While the block runs, a canceled scope calls `stop`; without a scope, nothing does."""
    end = stop_with_scope(stop)
    try:
        yield
    finally:
        end()
