"""The interface of a SQL catalog's database: SQLite in a file or PostgreSQL on a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Rows(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class Transaction(Protocol):
    """An open transaction."""

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Rows:
        """Execute one statement with `?` placeholders. DuplicateKeyError if a key is taken."""


class Database(Protocol):
    """Stores the tables of a SQL catalog."""

    location: str
    """Where it is, for error messages: without a password."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Open a write transaction: committed at the end of the block, rolled back on an error. One of ours runs at a time."""

    def reading(self) -> AbstractContextManager[Transaction]:
        """Open a read transaction, in which all statements see the same state."""

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run work in a write transaction, and retry it a few times if the database is busy."""

    def problems(self, db: Transaction) -> Sequence[str]:
        """Return what is wrong with the database itself."""

    def restart_ids(self, db: Transaction, table: str, number: int) -> None:
        """Let the generated ids of a table continue with a number, after rows were inserted with ids of their own."""

    def jdbc(self) -> Mapping[str, str]:
        """Return the properties of Iceberg's JdbcCatalog."""

    def sqlalchemy_url(self) -> str:
        """Return the URL for PyIceberg. It may hold a password."""


class DuplicateKeyError(Exception):
    """A key is taken; rolls back the transaction that it is raised in."""
