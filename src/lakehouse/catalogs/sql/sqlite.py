"""A catalog's database in one SQLite file, shared with Spark and PyIceberg."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from lakehouse.catalogs.sql.database import DuplicateKeyError, Rows, Transaction
from lakehouse.catalogs.sql.schema import VERSION, statements
from lakehouse.core.errors import CatalogBusyError, HomeError, LakeError

T = TypeVar("T")

#: How long a writer waits for a busy file; the slowest commit of eight writers took under a second.
BUSY_TIMEOUT_MS = 30_000
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

_PRIVATE, _SHARED = 0o600, 0o660
_IDENTITY = "INTEGER PRIMARY KEY AUTOINCREMENT"


class SqliteDatabase:
    """One file. Each transaction opens a connection, which takes less than a millisecond."""

    def __init__(self, file: Path, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> None:
        self.file, self.location, self._timeout_ms = file, str(file), busy_timeout_ms

    def jdbc(self) -> Mapping[str, str]:
        # As a URI, whose path SQLite decodes: the driver takes all after a `?` in a plain path for its own options.
        path = quote(str(self.file))
        return {"uri": f"jdbc:sqlite:file:{path}?journal_mode=WAL&busy_timeout={self._timeout_ms}"}

    def sqlalchemy_url(self) -> str:
        # SQLAlchemy decodes the path.
        return "sqlite:///" + str(self.file).replace("%", "%25")

    def write(self, work: Callable[[Transaction], T]) -> T:
        with self.transaction() as db:
            return work(db)

    def problems(self, db: Transaction) -> Sequence[str]:
        problems = [str(row[0]) for row in db.execute("PRAGMA quick_check(10)").fetchall()]
        return [] if problems == ["ok"] else problems

    def restart_ids(self, db: Transaction, table: str, number: int) -> None:
        """SQLite continues after the highest id by itself."""

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        # IMMEDIATE: a transaction that reads before it writes could not wait for a commit in between.
        with self._begun("BEGIN IMMEDIATE") as db:
            yield db

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        with self._begun("BEGIN") as db:
            yield db

    def _connect(self) -> sqlite3.Connection:
        folder = self.file.parent
        if self.file.is_file() and not (os.access(self.file, os.W_OK) and os.access(folder, os.W_OK)):
            # Without a log beside it the file holds all commits, and SQLite need not create one to read it.
            log = self.file.with_name(self.file.name + "-wal")
            options = "mode=ro" if log.exists() and log.stat().st_size else "mode=ro&immutable=1"
            address = f"file:{quote(str(self.file))}?{options}"
            return sqlite3.connect(address, timeout=self._timeout_ms / 1000, isolation_level=None, uri=True)
        if folder.is_dir() and not self.file.exists():
            # SQLite gives its log the mode of the file.
            mode = _SHARED if folder.stat().st_mode & stat.S_IWGRP else _PRIVATE
            os.close(os.open(self.file, os.O_WRONLY | os.O_CREAT, mode))
        return sqlite3.connect(self.file, timeout=self._timeout_ms / 1000, isolation_level=None)

    @contextmanager
    def _begun(self, begin: str) -> Iterator[Transaction]:
        try:
            db = self._connect()
        except (sqlite3.OperationalError, OSError) as exc:
            raise HomeError(f"The catalog {self.file} cannot be opened: {exc}.", "lake doctor") from exc
        try:
            # user_version states that the tables exist, so that a read takes one page and not a dozen DDL statements.
            if db.execute("PRAGMA user_version").fetchone()[0] < VERSION:
                _create_tables(db, self.file)
            db.execute(begin)
            yield _SqliteTransaction(db)
            db.execute("COMMIT")
        except sqlite3.DatabaseError as exc:
            raise self._error(exc) from exc
        finally:
            db.close()  # rolls back what is not committed

    def _error(self, exc: sqlite3.DatabaseError) -> LakeError:
        # The low byte is the kind; an extended code such as SQLITE_BUSY_SNAPSHOT tells more.
        if getattr(exc, "sqlite_errorcode", 0) & 0xFF in _BUSY:
            return CatalogBusyError(f"The catalog {self.file} is busy: {exc}.", "Try again.")
        return HomeError(
            f"The catalog {self.file} cannot be used: {exc}.",
            "See lake doctor. If the file is damaged, restore it from a backup (the data files are intact).",
        )


class _SqliteTransaction:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Rows:
        try:
            return self._db.execute(sql, tuple(parameters))
        except sqlite3.IntegrityError as exc:
            raise DuplicateKeyError(str(exc)) from exc


def _create_tables(db: sqlite3.Connection, file: Path) -> None:
    """Create the tables. SQLite does not wait for a busy file to change the journal mode, so this does."""
    deadline = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError as exc:
            if "locked" not in str(exc) or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    db.execute("BEGIN IMMEDIATE")
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version < VERSION:  # unless another process was first
        if version:
            _back_up(file, version)
        for statement in statements(_IDENTITY):
            db.execute(statement)
        db.execute(f"PRAGMA user_version={VERSION}")
    db.execute("COMMIT")


def _back_up(file: Path, version: int) -> None:
    """Copy the catalog of an older release before it is upgraded. The upgrade changes no other file of a lake."""
    unfinished = file.with_name(f"{file.name}.v{version}.new")
    try:
        unfinished.unlink(missing_ok=True)
        os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IMODE(file.stat().st_mode)))
        # Another connection, which sees the state before this transaction.
        with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(unfinished)) as copy:
            source.backup(copy)
        unfinished.replace(file.with_name(f"{file.name}.v{version}.bak"))
    except OSError as exc:
        raise HomeError(
            f"The catalog {file} of an older release cannot be copied before it is upgraded: {exc.strerror}.",
            "Free some space on its disk. The catalog is unchanged.",
        ) from exc
