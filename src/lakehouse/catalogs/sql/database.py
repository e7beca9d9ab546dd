"""The database under a SQL catalog: SQLite in a file or PostgreSQL on a server, spoken to in one way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

#: The schemes of addresses that mean PostgreSQL.
POSTGRES = ("postgresql://", "postgres://")


class Rows(Protocol):
    """What a statement gave."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class Transaction(Protocol):
    """A transaction that is open."""

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Rows:
        """Run one statement; every `?` in it stands for a parameter. DuplicateKeyError if a key is taken."""


class Database(Protocol):
    """Where a SQL catalog keeps its tables."""

    place: str
    """Where it is, as an error may say it: without a password."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """A transaction that writes: committed if the block ends well, rolled back if not; one at a time among ours."""

    def reading(self) -> AbstractContextManager[Transaction]:
        """A transaction that only reads, and sees one state of everything however many statements it takes."""

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Work in a transaction, tried again a few times if the database asks for that."""

    def jdbc(self) -> Mapping[str, str]:
        """The properties by which Iceberg's JdbcCatalog finds it."""

    def sqlalchemy_url(self) -> str:
        """The address by which PyIceberg finds it. It may hold a password."""


class DuplicateKeyError(Exception):
    """A row would have the key of another; undoes the transaction it is raised in."""


def open_database(where: str | Path) -> Database:
    """The database at a path (SQLite) or at a postgresql:// address; nothing is opened before it is needed."""
    if str(where).startswith(POSTGRES):
        from lakehouse.catalogs.sql.postgres import PostgresDatabase

        return PostgresDatabase(str(where))
    from lakehouse.catalogs.sql.sqlite import SqliteDatabase

    return SqliteDatabase(Path(where))
