"""How far a long operation is: the operation reports it, and an entry point that shows it listens."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lakehouse.core.dataclass import dataclass

#: How often an operation that can only be asked is asked.
_INTERVAL_S = 0.5


@dataclass(frozen=True)
class Amount:
    """How much of an operation is done."""

    done: int
    total: int
    unit: str
    """bytes, rows, files or tables; tasks or splits of an engine."""


Listener = Callable[[Amount], None]
_listener: ContextVar[Listener | None] = ContextVar("progress_listener", default=None)
_task_listener: ContextVar[Listener | None] = ContextVar("task_listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call the listener with what the operations in the block report."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def listening_to_tasks(listener: Listener) -> Iterator[None]:
    """Call the listener with how many of its tasks an engine has done for the statement in the block.

    Others than who lists statements do not want it: of an ingest or a run, a statement is a part.
    """
    token = _task_listener.set(listener)
    try:
        yield
    finally:
        _task_listener.reset(token)


def task_listener() -> Listener | None:
    """Who listens to the tasks of the statement of this thread."""
    return _task_listener.get()


def reporter() -> Callable[[int, int, str], None]:
    """Return `report` for other threads, which do not have the listener of this one."""
    listener = _listener.get()
    if listener is None:
        return lambda done, total, unit: None
    return lambda done, total, unit: listener(Amount(done, total, unit))


def report(done: int, total: int, unit: str) -> None:
    """Report how much of an operation is done."""
    reporter()(done, total, unit)


@contextmanager
def followed(fraction: Callable[[], float], done: int, size: int, total: int, unit: str) -> Iterator[None]:
    """Report the progress of the block, by asking for it.

    Args:
        fraction: returns how much of the block is done, from 0 to 1; less than 0 if that is not known.
        done: the amount before the block.
        size: the amount of the block itself.
    """
    if _listener.get() is None or not total:
        yield
        return
    ended, tell = threading.Event(), reporter()

    def watch() -> None:
        most = 0.0
        while not ended.wait(_INTERVAL_S):
            most = max(most, min(fraction(), 1.0))  # several statements may do the work, each from 0 to 1
            tell(done + int(size * most), total, unit)

    watcher = threading.Thread(target=watch, name="progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
    tell(done + size, total, unit)
