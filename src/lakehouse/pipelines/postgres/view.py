"""The database at one moment, and what went wrong with it in our words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from lakehouse.core.errors import NotInstalledError, SourceError
from lakehouse.core.names import nearest
from lakehouse.pipelines.postgres.address import WRITTEN, Address
from lakehouse.pipelines.postgres.relation import Relation, column_of

if TYPE_CHECKING:
    from psycopg import Connection, Error

DIGITS = "A numeric column that was declared without a precision may hold 20 digits before the point."
_CONNECT_TIMEOUT_S = 5
#: Reading waits for nobody but those who change the table's definition; they should be done after that.
_LOCK_TIMEOUT_MS = 30_000

#: Own sessions, of which the database always tells, and others if the user may see them (pg_read_all_stats); a
#: transaction prepared for a two-phase commit is no session any more.
_MARK = """
SELECT least(
  statement_timestamp(),
  (SELECT min(xact_start) FROM pg_stat_activity
   WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()),
  (SELECT min(prepared) FROM pg_prepared_xacts WHERE database = current_database())
)"""

#: A numeric without a precision is read as Spark would: 18 digits after the point, 20 before.
_COLUMNS = """
SELECT name, base, declared,
  CASE WHEN modifier < 0 THEN 38 ELSE ((modifier - 4) >> 16) & 65535 END,
  CASE WHEN modifier < 0 THEN 18 ELSE (((modifier - 4) & 2047) # 1024) - 1024 END
FROM (
  SELECT a.attname AS name, a.attnum AS place, coalesce(b.typname, t.typname) AS base,
    format_type(a.atttypid, a.atttypmod) AS declared,
    CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END AS modifier
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type b ON b.oid = t.typbasetype
  WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
    AND a.attnum > 0 AND NOT a.attisdropped
) AS columns
ORDER BY place"""

_TABLES = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
ORDER BY 1, 2 LIMIT 1000"""


@dataclass(frozen=True)
class View:
    """The database at one moment."""

    address: Address
    connection: Connection[tuple[Any, ...]]
    mark: datetime
    """Whatever is not seen here was changed at or after this moment (as far as the database lets us know)."""
    snapshot: str
    """By this name other connections see exactly the same."""

    @property
    def joining(self) -> str:
        """What another connection says first in its transaction in order to see the same."""
        name = self.snapshot.replace("'", "''")
        return (
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;"
            f" SET TRANSACTION SNAPSHOT '{name}'; SET LOCAL lock_timeout = {_LOCK_TIMEOUT_MS}"
        )

    def ask(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with translated(self.address):
            return self.connection.execute(query, values or None).fetchall()

    def relation(self, schema: str, name: str, key: Sequence[str], changed: str) -> Relation:
        """A table of the database; SourceError if it is not there or lacks a column that is needed."""
        found = self.ask(_COLUMNS, schema, name)
        if not found:
            raise SourceError(f"{self.address} has no table {schema}.{name}.", self._instead(schema, name))
        columns = [column_of(*facts) for facts in found]
        names, changed = [column.name for column in columns], changed.lower()
        if lost := [each for each in key if each not in names]:
            raise SourceError(f"{schema}.{name} has no column {lost[0]}, which is its key.", _told(lost[0], names))
        if changed and changed not in names:
            raise SourceError(
                f"{schema}.{name} has no column {changed} that says when a row was changed.",
                f"{_told(changed, names)} Add one that a trigger keeps, name another with `updated_at`, or set"
                ' `updated_at = ""` to read the whole table each time.',
            )
        relation = Relation(schema, name, columns, changed)
        if changed and relation.column(changed).kind != "timestamp":
            raise SourceError(
                f"{schema}.{name}.{changed} is a {relation.column(changed).declared}, not a moment.",
                'Name a timestamp with `updated_at`, or set `updated_at = ""` to read the whole table each time.',
            )
        if len(set(names)) < len(names):
            raise SourceError(f"{schema}.{name} has two columns whose names differ only in case.", "Rename one.")
        return relation

    def _instead(self, schema: str, name: str) -> str:
        known = [f"{row[0]}.{row[1]}" for row in self.ask(_TABLES)]
        near = nearest(f"{schema}.{name}", known)
        return (
            f"Nearest: {', '.join(near)}." if near else f"Check `schema` and the database; it has {len(known)} tables."
        )


@contextmanager
def view(address: Address) -> Iterator[View]:
    """The database as it is now, for as long as the block lasts."""
    with _connected(address) as connection, translated(address):
        # RunRequest before the snapshot is taken: of the transactions that the snapshot will not see, those that run already
        # are counted here, and all others begin later. PostgreSQL's now() is the beginning of a transaction.
        mark = connection.execute(_MARK).fetchone()
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # it waits while Spark reads
            snapshot = connection.execute("SELECT pg_export_snapshot()").fetchone()
            assert mark and snapshot
            yield View(address, connection, mark[0].astimezone(UTC), snapshot[0])


@contextmanager
def translated(address: Address) -> Iterator[None]:
    """Errors of the database's client as SourceErrors."""
    import psycopg

    try:
        yield
    except psycopg.Error as exc:
        raise _explained(address, exc) from None  # the chain would show the address with its password


def _connected(address: Address) -> Connection[tuple[Any, ...]]:
    try:
        import psycopg
    except ImportError as exc:
        raise NotInstalledError("psycopg", "postgres") from exc
    with translated(address):
        return psycopg.connect(
            host=address.host,
            port=address.port,
            dbname=address.database,
            user=address.user,
            password=address.password,
            connect_timeout=_CONNECT_TIMEOUT_S,
            application_name="lakehouse",
            # Nobody's ~/.postgresql or PGOPTIONS changes what is read.
            options=f"-c timezone=UTC -c lock_timeout={_LOCK_TIMEOUT_MS}",
            autocommit=True,
            **cast(Any, address.options),
        )


def _explained(address: Address, error: Error) -> SourceError:
    from psycopg import errors

    said = address.hiding(error.diag.message_primary or str(error))
    if isinstance(error, errors.InsufficientPrivilege):
        return SourceError(f"{address}: {said}.", f'GRANT SELECT to "{address.user}" on it, or use another user.')
    if isinstance(error, errors.LockNotAvailable):
        return SourceError(f"{address}: {said}.", "Somebody changes the table's definition; try again later.")
    if isinstance(error, errors.NumericValueOutOfRange):
        return SourceError(f"{address}: {said}.", DIGITS)
    if not isinstance(error, errors.OperationalError) or error.sqlstate:
        return SourceError(f"{address}: {said}.", "Ask the database's owner, or try again.")
    # While connecting, the client knows only the server's text.
    if "password authentication failed" in str(error) or "no password supplied" in str(error):
        return SourceError(f"{address} does not take the password of {address.user}.", f"Correct `url`. {WRITTEN}")
    if "does not exist" in str(error) or "no pg_hba.conf entry" in str(error):
        return SourceError(f"{address}: {said.rpartition('FATAL:')[2].strip()}.", "Correct `url`.")
    return SourceError(f"{address} cannot be reached: {said}", "Start the database, or correct `url`.")


def _told(wanted: str, names: Sequence[str]) -> str:
    near = nearest(wanted, names)
    return f"Nearest: {', '.join(near)}." if near else f"Its columns: {', '.join(names)}."
