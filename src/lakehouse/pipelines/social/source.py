"""Read users, posts and follows of a social network's PostgreSQL incrementally, with the keys of all present rows.

Few rows are fetched by the driver; more by Spark over JDBC, large tables in concurrent parts, all in one snapshot of the
database. The rows are staged as Parquet: a DataFrame over JDBC would query the database again, and get other rows, each time it is evaluated, and the
snapshot would have to stay open for the whole run.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import SourceError
from lakehouse.pipelines import functions as F
from lakehouse.pipelines.model import Batch, SourceContext
from lakehouse.pipelines.postgres import (
    NUMERIC_HINT,
    SETTINGS,
    Address,
    Column,
    DatabaseSnapshot,
    PostgresSettings,
    Relation,
    arrow_rows,
    fingerprint,
    identifier,
    open_snapshot,
    plan_read,
)
from lakehouse.storage.raw import RawArea

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["FOLLOWS", "POSTS", "SETTINGS", "USERS", "SourceTable", "read"]

#: An application's database has few connections to spare.
_MAX_READS = 16
_ROWS_PER_FETCH = 10_000
_CONNECT_TIMEOUT_S = 10
#: Up to this many rows the driver fetches itself: faster than a Spark job for them.
MAX_FETCHED_ROWS = 20_000
#: Staged files are needed until the end of their run; no run takes longer than this.
_RETENTION_S = 24 * 3600


@dataclass(frozen=True)
class SourceTable:
    """A table of the application and its key."""

    name: str
    key: tuple[str, ...]


USERS = SourceTable("users", ("id",))
POSTS = SourceTable("posts", ("id",))
FOLLOWS = SourceTable("follows", ("follower_id", "followed_id"))


def read(context: SourceContext, table: SourceTable) -> Batch:
    """The rows changed since the context's cursor, or all of them, and the keys of all present rows."""
    settings = PostgresSettings.parse(context.settings)
    folder = f"social/{table.name}"
    _remove_expired(context.raw, folder)
    with open_snapshot(settings.address) as snapshot:
        relation = snapshot.relation(settings.schema, table.name, table.key, settings.updated_at)
        plan = plan_read(snapshot, relation, context.cursor, settings.overlap)
        context.progress(f"{relation}: {plan.reason}")
        staging = _Staging(context, snapshot, relation, settings.rows_per_read, f"{folder}/{uuid.uuid4().hex}")
        rows, count = staging.stage("rows", relation.columns, relation.query(since=plan.since), table.key)
        if plan.since is None:
            present, total, present_count = rows.select(*table.key), count, None  # the rows are counted already
        else:
            keys = [relation.column(name) for name in table.key]
            present, total = staging.stage("keys", keys, relation.query(table.key), table.key)
            present_count = total
        digest = fingerprint(snapshot, relation, table.key, plan.cursor, settings.overlap)
    notes = {"source": f"{settings.address}/{relation}", "read": plan.reason}
    notes |= {"rows_read": str(count), "rows_there": str(total)}
    return Batch(rows, plan.cursor, present, notes, digest, row_count=count, present_count=present_count)


def source_fingerprint(context: SourceContext, table: SourceTable) -> str:
    """Changes if a read would find other rows than the read of the context's cursor; computed by the database."""
    settings = PostgresSettings.parse(context.settings)
    with open_snapshot(settings.address) as snapshot:
        relation = snapshot.relation(settings.schema, table.name, table.key, settings.updated_at)
        return fingerprint(snapshot, relation, table.key, context.cursor, settings.overlap)


@dataclass(frozen=True)
class _Staging:
    """Stages query results of one database snapshot as Parquet files."""

    context: SourceContext
    snapshot: DatabaseSnapshot
    relation: Relation
    rows_per_read: int
    folder: str

    def stage(self, name: str, columns: Sequence[Column], query: str, key: Sequence[str]) -> tuple[DataFrame, int]:
        """The rows of a query with these columns, and their number."""
        splits, count = self._splits(query, key)
        path = self.context.raw.uri(f"{self.folder}/{name}")
        if count <= min(MAX_FETCHED_ROWS, self.rows_per_read):
            self._fetch(f"{self.folder}/{name}/rows.parquet", columns, query)
            schema = ", ".join(f"{_quoted(column.name)} {column.kind}" for column in columns)
            return self.context.spark.read.schema(schema).parquet(path), count
        with _translated(self.snapshot.address, self.relation):
            rows = self._over_jdbc(query, splits)
            rows.write.parquet(path)
            return self.context.spark.read.schema(rows.schema).parquet(path), count

    def _fetch(self, name: str, columns: Sequence[Column], query: str) -> None:
        import pyarrow
        import pyarrow.parquet

        sink = pyarrow.BufferOutputStream()
        pyarrow.parquet.write_table(arrow_rows(columns, self.snapshot.fetch(query)), sink)
        self.context.raw.write(name, sink.getvalue().to_pybytes())

    def _splits(self, query: str, key: Sequence[str]) -> tuple[dict[str, str], int]:
        """Spark's options to read in parts by the first integer column of the key, and the row count."""
        split = next((name for name in key if self.relation.column(name).is_integer), None)
        column = identifier(split) if split else "0"
        bounds_query = f"SELECT count(*), min({column}), max({column}) FROM ({query}) AS lake_rows"
        count, low, high = self.snapshot.fetch(bounds_query)[0]
        reads = min(_MAX_READS, -(-count // self.rows_per_read))
        if split is None or reads < 2 or low == high:
            return {}, count
        bounds = {"lowerBound": str(low), "upperBound": str(high)}
        return {"partitionColumn": split, "numPartitions": str(reads), **bounds}, count

    def _over_jdbc(self, query: str, splits: Mapping[str, str]) -> DataFrame:
        address = self.snapshot.address
        reader = self.context.spark.read.format("jdbc").options(
            url=address.jdbc_url,
            driver="org.postgresql.Driver",
            user=address.user,
            password=address.password,
            dbtable=f"({query}) AS lake_rows",
            # Only with a fetch size does the driver open a transaction, which joins the snapshot.
            fetchsize=str(_ROWS_PER_FETCH),
            sessionInitStatement=self.snapshot.join_sql,
            connectTimeout=str(_CONNECT_TIMEOUT_S),
            ApplicationName="lakehouse",
            **splits,
        )
        kinds = {column.name: column.kind for column in self.relation.columns}
        rows = reader.load()
        return rows.select(*(F.col(_quoted(name)).cast(kinds[name]).alias(name) for name in rows.columns))


@contextmanager
def _translated(address: Address, relation: Relation) -> Iterator[None]:
    """Raise Spark's errors as SourceErrors with the database's message, without a password."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as exc:
        text = str(exc)
        match = re.search(r"PSQLException: (?:ERROR: |FATAL: )?(?P<message>[^\n]+)", text)
        message = address.redact(match["message"] if match else text)
        overflow = "numeric field overflow" in message
        hint = NUMERIC_HINT if overflow else "If its definition was changed meanwhile, run again."
        # From None: the chain may show the password.
        raise SourceError(f"{relation} of {address} could not be read: {message}.", hint) from None


def _remove_expired(area: RawArea, folder: str) -> None:
    """Remove the staged files of earlier runs."""
    expired = (time.time() - _RETENTION_S) * 1e9
    newest: dict[str, int] = {}
    for file in area.list(folder):
        staged = file.name.removeprefix(f"{folder}/").partition("/")[0]
        newest[staged] = max(newest.get(staged, 0), file.modified_ns)
    for staged, modified_ns in newest.items():
        if modified_ns < expired:
            area.remove(f"{folder}/{staged}")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
