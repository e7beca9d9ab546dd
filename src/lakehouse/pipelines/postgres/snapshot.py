"""A snapshot of the database that other connections can join, and its errors as SourceErrors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import NotInstalledError, SourceError
from lakehouse.core.names import nearest
from lakehouse.pipelines.postgres.relation import Relation, column_of
from lakehouse.pipelines.postgres.settings import ADDRESS_HINT, Address

if TYPE_CHECKING:
    from psycopg import Connection, Error

NUMERIC_HINT = "A numeric column that was declared without a precision may hold 20 digits before the point."
_CONNECT_TIMEOUT_S = 5
#: Reads wait only for changes of the table's definition.
_LOCK_TIMEOUT_MS = 30_000

#: The start of the oldest transaction: of sessions that this user may see (all of them with pg_read_all_stats), and of
#: transactions prepared for a two-phase commit, which have no session.
_WATERMARK = """
SELECT least(
  statement_timestamp(),
  (SELECT min(xact_start) FROM pg_stat_activity
   WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()),
  (SELECT min(prepared) FROM pg_prepared_xacts WHERE database = current_database())
)"""

#: A numeric without a precision is read as Spark reads it: 18 digits after the point, 20 before.
_COLUMNS = """
SELECT name, base, declared,
  CASE WHEN modifier < 0 THEN 38 ELSE ((modifier - 4) >> 16) & 65535 END,
  CASE WHEN modifier < 0 THEN 18 ELSE (((modifier - 4) & 2047) # 1024) - 1024 END
FROM (
  SELECT a.attname AS name, a.attnum AS position, coalesce(b.typname, t.typname) AS base,
    format_type(a.atttypid, a.atttypmod) AS declared,
    CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END AS modifier
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type b ON b.oid = t.typbasetype
  WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
    AND a.attnum > 0 AND NOT a.attisdropped
) AS columns
ORDER BY position"""

_TABLES = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
ORDER BY 1, 2 LIMIT 1000"""


@dataclass(frozen=True)
class DatabaseSnapshot:
    """A snapshot of the database."""

    address: Address
    connection: Connection[tuple[Any, ...]]
    watermark: datetime
    """A row that the snapshot does not see was changed at or after this time (see changes.py for the exceptions)."""
    name: str
    """The name by which other connections join the snapshot."""

    @property
    def join_sql(self) -> str:
        """The first statements of a transaction that joins the snapshot."""
        name = self.name.replace("'", "''")
        return (
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;"
            f" SET TRANSACTION SNAPSHOT '{name}'; SET LOCAL lock_timeout = {_LOCK_TIMEOUT_MS}"
        )

    def fetch(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with translated(self.address):
            return self.connection.execute(query, values or None).fetchall()

    def relation(self, schema: str, name: str, key: Sequence[str], updated_at: str) -> Relation:
        """A table of the database; SourceError if the table or a required column does not exist."""
        described = self.fetch(_COLUMNS, schema, name)
        if not described:
            raise SourceError(f"{self.address} has no table {schema}.{name}.", self._suggestion(schema, name))
        columns = [column_of(*facts) for facts in described]
        names, updated_at = [column.name for column in columns], updated_at.lower()
        if missing := [column for column in key if column not in names]:
            raise SourceError(
                f"{schema}.{name} has no column {missing[0]}, which is its key.", _nearest_columns(missing[0], names)
            )
        if updated_at and updated_at not in names:
            raise SourceError(
                f"{schema}.{name} has no column {updated_at} with the time of a row's last change.",
                f"{_nearest_columns(updated_at, names)} Add one that a trigger maintains, name another with"
                ' `updated_at`, or set `updated_at = ""` to read the whole table each time.',
            )
        relation = Relation(schema, name, columns, updated_at)
        if updated_at and relation.column(updated_at).kind != "timestamp":
            raise SourceError(
                f"{schema}.{name}.{updated_at} is a {relation.column(updated_at).declared}, not a timestamp.",
                'Name a timestamp with `updated_at`, or set `updated_at = ""` to read the whole table each time.',
            )
        if len(set(names)) < len(names):
            raise SourceError(f"{schema}.{name} has two columns whose names differ only in case.", "Rename one.")
        return relation

    def _suggestion(self, schema: str, name: str) -> str:
        known = [f"{row[0]}.{row[1]}" for row in self.fetch(_TABLES)]
        near = nearest(f"{schema}.{name}", known)
        return (
            f"Did you mean {', '.join(near)}?"
            if near
            else f"Check `schema` and the database; it has {len(known)} tables."
        )


@contextmanager
def open_snapshot(address: Address) -> Iterator[DatabaseSnapshot]:
    """A snapshot of the database, for the duration of the block."""
    with _connect(address) as connection, translated(address):
        # Before the snapshot: of the transactions that it will not see, this counts those that run already; all others
        # start later.
        watermark = connection.execute(_WATERMARK).fetchone()
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # idle while Spark reads
            snapshot = connection.execute("SELECT pg_export_snapshot()").fetchone()
            assert watermark and snapshot
            yield DatabaseSnapshot(address, connection, watermark[0].astimezone(UTC), snapshot[0])


@contextmanager
def translated(address: Address) -> Iterator[None]:
    """Errors of the database's client as SourceErrors."""
    import psycopg

    try:
        yield
    except psycopg.Error as exc:
        raise _source_error(address, exc) from None  # the chain would show the address with its password


def _connect(address: Address) -> Connection[tuple[Any, ...]]:
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
            # The user's ~/.postgresql and PGOPTIONS must not change what is read.
            options=f"-c timezone=UTC -c lock_timeout={_LOCK_TIMEOUT_MS}",
            autocommit=True,
            **cast(Any, address.options),
        )


def _source_error(address: Address, error: Error) -> SourceError:
    from psycopg import errors

    message = address.redact(error.diag.message_primary or str(error))
    if isinstance(error, errors.InsufficientPrivilege):
        return SourceError(f"{address}: {message}.", f'GRANT SELECT to "{address.user}" on it, or use another user.')
    if isinstance(error, errors.LockNotAvailable):
        return SourceError(f"{address}: {message}.", "Another session changes the table's definition; try again later.")
    if isinstance(error, errors.NumericValueOutOfRange):
        return SourceError(f"{address}: {message}.", NUMERIC_HINT)
    if not isinstance(error, errors.OperationalError) or error.sqlstate:
        return SourceError(f"{address}: {message}.", "Ask the database's owner, or try again.")
    # Errors of a connection attempt have only the server's text.
    if "password authentication failed" in str(error) or "no password supplied" in str(error):
        return SourceError(f"{address} rejects the password of {address.user}.", f"Correct `url`. {ADDRESS_HINT}")
    if "does not exist" in str(error) or "no pg_hba.conf entry" in str(error):
        return SourceError(f"{address}: {message.rpartition('FATAL:')[2].strip()}.", "Correct `url`.")
    return SourceError(f"{address} cannot be reached: {message}", "Start the database, or correct `url`.")


def _nearest_columns(name: str, names: Sequence[str]) -> str:
    near = nearest(name, names)
    return f"Did you mean {', '.join(near)}?" if near else f"Its columns: {', '.join(names)}."
