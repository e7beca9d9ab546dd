"""Users, posts and follows in a social network's database: all rows once, then those that changed, and the keys there are.

Spark reads over JDBC, large tables in several parts at once, all of them in one snapshot of the database. What it reads
is put down as Parquet first: a DataFrame over JDBC would ask the database again, and get other rows, each time that
it is looked at, and the snapshot would have to be held open for as long as the run goes on.
"""

from __future__ import annotations

import re
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.core.errors import SourceError
from lakehouse.core.uris import file_uri
from lakehouse.pipelines.postgres import (
    DIGITS,
    SETTINGS,
    Address,
    PostgresSettings,
    Relation,
    View,
    identifier,
    view,
    wanted,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakehouse.pipelines.model import Reading

__all__ = ["FOLLOWS", "POSTS", "SETTINGS", "USERS", "Extract", "SourceTable", "read"]

#: Connections are dear to a database that serves an application.
_MOST_READS = 16
_ROWS_PER_FETCH = 10_000
_CONNECT_TIMEOUT_S = 10
#: What was put down is needed until the end of its run; a run that takes longer than that is not one we know.
_KEPT_S = 24 * 3600


@dataclass(frozen=True)
class SourceTable:
    """A table of the application, and what tells its rows apart."""

    name: str
    key: tuple[str, ...]


USERS = SourceTable("users", ("id",))
POSTS = SourceTable("posts", ("id",))
FOLLOWS = SourceTable("follows", ("follower_id", "followed_id"))


@dataclass(frozen=True)
class Extract:
    """What was read of a table at one moment."""

    rows: DataFrame
    present: DataFrame
    """The keys of all rows that were there."""
    cursor: str
    notes: Mapping[str, str]


def read(reading: Reading, table: SourceTable) -> Extract:
    """The rows that are new or changed since the reading's cursor, or all of them, and the keys of all."""
    settings = PostgresSettings.parse(reading.settings)
    folder = reading.raw / "social" / table.name
    _sweep(folder)
    with view(settings.address) as seen:
        relation = seen.relation(settings.schema, table.name, table.key, settings.updated_at)
        what = wanted(seen, relation, reading.cursor, settings.overlap)
        reading.say(f"{relation}: {what.reason}")
        part = _Part(reading.spark, seen, relation, settings.rows_per_read, folder / uuid.uuid4().hex)
        rows, count = part.put_down("rows", relation.query(since=what.since), table.key)
        if what.since is None:
            present, total = rows.select(*table.key), count
        else:
            present, total = part.put_down("keys", relation.query(table.key), table.key)
    notes = {"source": f"{settings.address}/{relation}", "read": what.reason}
    return Extract(rows, present, what.cursor, notes | {"rows_read": str(count), "rows_there": str(total)})


@dataclass(frozen=True)
class _Part:
    """QueryRouter to one snapshot of the database, answered by Spark into files."""

    spark: SparkSession
    seen: View
    relation: Relation
    rows_per_read: int
    folder: Path

    def put_down(self, name: str, query: str, key: Sequence[str]) -> tuple[DataFrame, int]:
        """The rows of a query, and how many they are."""
        splits, count = self._splits(query, key)
        path = file_uri(self.folder / name)
        with _translated(self.seen.address, self.relation):
            rows = self._over_jdbc(query, splits)
            rows.write.parquet(path)
            return self.spark.read.schema(rows.schema).parquet(path), count

    def _splits(self, query: str, key: Sequence[str]) -> tuple[dict[str, str], int]:
        """Spark's options to read in parts, by the first whole number of the key, if there is one and it is worth it."""
        split = next((name for name in key if self.relation.column(name).is_whole_number), None)
        column = identifier(split) if split else "0"
        count, low, high = self.seen.ask(f"SELECT count(*), min({column}), max({column}) FROM ({query}) AS lake_rows")[
            0
        ]
        reads = min(_MOST_READS, -(-count // self.rows_per_read))
        if split is None or reads < 2 or low == high:
            return {}, count
        bounds = {"lowerBound": str(low), "upperBound": str(high)}
        return {"partitionColumn": split, "numPartitions": str(reads), **bounds}, count

    def _over_jdbc(self, query: str, splits: Mapping[str, str]) -> DataFrame:
        from pyspark.sql import functions as F

        address = self.seen.address
        reader = self.spark.read.format("jdbc").options(
            url=address.jdbc_url,
            driver="org.postgresql.Driver",
            user=address.user,
            password=address.password,
            dbtable=f"({query}) AS lake_rows",
            # With a fetch size the driver opens a transaction, which is what a snapshot is joined by.
            fetchsize=str(_ROWS_PER_FETCH),
            sessionInitStatement=self.seen.joining,
            connectTimeout=str(_CONNECT_TIMEOUT_S),
            ApplicationName="lakehouse",
            **splits,
        )
        kinds = {column.name: column.kind for column in self.relation.columns}
        rows = reader.load()
        return rows.select(*(F.col(_quoted(name)).cast(kinds[name]).alias(name) for name in rows.columns))


@contextmanager
def _translated(address: Address, relation: Relation) -> Iterator[None]:
    """Errors of Spark as SourceErrors that say what the database said, without a password."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as exc:
        text = str(exc)
        said = re.search(r"PSQLException: (?:ERROR: |FATAL: )?(?P<why>[^\n]+)", text)
        why = address.hiding(said["why"] if said else text)
        hint = DIGITS if "numeric field overflow" in why else "If its definition was changed meanwhile, run again."
        # From None: the chain would carry texts that we have not looked through.
        raise SourceError(f"{relation} of {address} could not be read: {why}.", hint) from None


def _sweep(folder: Path) -> None:
    """Remove what earlier runs put down."""
    for left in folder.iterdir() if folder.is_dir() else ():
        try:
            if time.time() - left.stat().st_mtime > _KEPT_S:
                shutil.rmtree(left)
        except FileNotFoundError:  # another run sweeps too
            continue


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
