"""The lock of an ingest and its temporary work folder."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lakehouse.core.names import TableName
from lakehouse.process.files import locked, statement_lock, table_lock


@contextmanager
def exclusive(folder: Path, table: TableName) -> Iterator[None]:
    """Let one ingest at a time write to a table; the operating system releases the lock if the process dies."""
    folder.mkdir(parents=True, exist_ok=True)
    with locked(table_lock(folder, table)):
        # A killed ingest may have left a Spark statement running: wait until its result is visible.
        with locked(statement_lock(folder, table)):
            pass
        yield


@contextmanager
def work_folder(parent: Path) -> Iterator[Path]:
    """Create a work folder that is locked while in use, and delete those of killed ingests."""
    import fcntl

    for abandoned in parent.glob("work-*"):
        with suppress(OSError), (abandoned / "lock").open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(abandoned, ignore_errors=True)
    name = uuid.uuid4().hex[:12]
    unlocked, work = parent / f"new-{name}", parent / f"work-{name}"
    unlocked.mkdir()
    try:
        with (unlocked / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            unlocked.rename(work)  # other ingests look for work-*, so they only see it once it is locked
            yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
