"""Locks between processes: a locked file. The system releases the lock when its process ends, however it ends."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lakehouse.core.names import TableName


def statement_lock(folder: Path, table: TableName) -> Path:
    """The lock file that Spark holds while it runs a statement of an ingest into the table."""
    return folder / f"{table}.writing.lock"


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Wait for the lock and hold it while the block runs."""
    with file.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def try_locked(file: Path) -> Iterator[bool]:
    """Hold the lock while the block runs, if it is free; yields whether it is held."""
    with file.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
