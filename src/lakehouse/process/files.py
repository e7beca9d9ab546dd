"""Files that processes share: locks, and files that only their owner can read."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lakehouse.core.names import TableName


def write_whole(path: Path, text: str, mode: int = 0o666) -> None:
    """Write a file completely or not at all: whoever reads it meanwhile gets the old text or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    new.unlink(missing_ok=True)  # of a killed process that had the same id
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as out:
            out.write(text)
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, completely or not at all."""
    write_whole(path, text, 0o600)


def table_lock(folder: Path, table: TableName) -> Path:
    """The lock file that an ingest into the table holds from its start to its end, and a statement that lost a race to others."""
    return folder / f"{table}.lock"


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


@contextmanager
def locked_within(file: Path, seconds: float) -> Iterator[bool]:
    """Hold the lock while the block runs, if it is free within some seconds; yields whether it is held."""
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with locked(file):  # waits in line with others who do; asking for a free lock again and again rarely meets one
            held.set()
            done.wait()

    threading.Thread(target=hold, daemon=True).start()
    try:
        yield held.wait(seconds)
    finally:
        done.set()
