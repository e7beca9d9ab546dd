"""The service's own records, jobs, ended sessions and answers to idempotent requests, in one SQLite file that only its owner reads."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from lakehouse.core.errors import AlreadyServedError, ServiceError

_TIMEOUT_S = 30.0
_TABLES = """
CREATE TABLE IF NOT EXISTS jobs (
  id TEXT PRIMARY KEY, kind TEXT NOT NULL, owner TEXT NOT NULL, state TEXT NOT NULL, created_at TEXT NOT NULL,
  started_at TEXT, ended_at TEXT, request TEXT NOT NULL, progress TEXT, result TEXT, error TEXT,
  namespaces TEXT NOT NULL DEFAULT '', branch TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS ended_sessions (id TEXT PRIMARY KEY, expires INTEGER NOT NULL);
DROP TABLE IF EXISTS requests;
"""


class ServiceDatabase:
    """One file, of one service at a time; each transaction opens a connection, which takes less than a millisecond."""

    def __init__(self, file: Path) -> None:
        """
        Raises:
            AlreadyServedError: another service of the lake runs. Its jobs would be taken for interrupted ones.
        """
        self._file, self._lock = file, file.with_suffix(".lock").open("a+")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            self._lock.seek(0)
            holder = self._lock.read(20).strip()
            self._lock.close()
            raise AlreadyServedError(
                f"This lake is served already, by the process {holder or '?'}.",
                "Use that service, or stop it first: a lake has one service, with all of its jobs and results.",
            ) from exc
        self._lock.truncate(0)
        self._lock.write(str(os.getpid()))
        self._lock.flush()
        if not file.exists():
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
        with closing(sqlite3.connect(file, timeout=_TIMEOUT_S)) as db:
            db.execute("PRAGMA journal_mode=WAL")
            db.executescript(_TABLES)

    def close(self) -> None:
        """Let another service use it."""
        self._lock.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Read and write; all changes of the block are committed together, or none."""
        with self.reading() as db:
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read only."""
        try:
            with closing(sqlite3.connect(self._file, timeout=_TIMEOUT_S, isolation_level=None)) as db:
                db.row_factory = sqlite3.Row
                yield db
        except sqlite3.DatabaseError as exc:
            raise ServiceError(f"The service's records in {self._file.name} cannot be used: {exc}.") from exc
