"""Small pipelines without Spark that write several tables at once, in processes that may be killed.

As a program: `python -m tests.support.transaction_pipelines HOME WORK…`, where WORK is `write NAME RUNS TABLE…` or
`die STEP RUN TABLE…`; where the lake's catalog is, the environment says.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow

from lakehouse.catalogs.nessie import NessieCatalog
from lakehouse.catalogs.nessie.api import NessieApi
from lakehouse.catalogs.sql import SqlCatalog, log, refs, rows
from lakehouse.config.load import load_settings
from lakehouse.core.errors import CatalogUnreachableError, RunConflictError
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble
from lakehouse.pipelines import LightContext, Pipeline, Table

ROOT = Path(__file__).parents[2]
SHAPE = pyarrow.schema([("run", pyarrow.string()), ("n", pyarrow.int64())])


def opened(home: Path, environ: Mapping[str, str] | None = None) -> Lake:
    """A lake on SQLite, or on the catalog of an environment."""
    return assemble(load_settings({"home": home, "spark.master": "local[1]"}, environ=environ or {}))


def writing(name: str, run: str, tables: list[str]) -> Pipeline:
    """A pipeline that adds the same row to each of its tables."""

    def adds(table: str) -> Callable[[LightContext], int]:
        def add(context: LightContext) -> int:
            # `create_table_if_not_exists` writes a metadata file before it finds out that there is a table.
            there = context.catalog.table_exists(table)
            target = context.catalog.load_table(table) if there else context.catalog.create_table(table, schema=SHAPE)
            target.append(pyarrow.table({"run": [run], "n": [1]}, schema=SHAPE))
            return 1

        return add

    def nothing() -> Any:
        raise AssertionError("these tables are made without Spark")

    return Pipeline(name, tuple(Table(table, nothing, light=adds(table)) for table in tables))


def failing_first(times: int) -> Pipeline:
    """A pipeline whose catalog does not answer the first so many times."""
    pipeline = writing("shop", "first", ["shop.one"])
    (table,) = pipeline.tables
    assert isinstance(table, Table) and table.light
    return replace(pipeline, tables=(replace(table, light=_failing_first(times, table.light)),))


def _failing_first(times: int, work: Callable[[LightContext], int]) -> Callable[[LightContext], int]:
    left = [times]

    def attempt(context: LightContext) -> int:
        if left[0]:
            left[0] -= 1
            raise CatalogUnreachableError("The catalog does not answer.", "Start it.")
        return work(context)

    return attempt


def write(lake: Lake, name: str, runs: int, tables: list[str]) -> None:
    """Run after run, each until it is published: a conflict that outlasts its replays is the caller's to repeat."""
    for number in range(runs):
        run = f"{name}_{number}"
        while True:
            try:
                assert lake.run(writing(name, run, tables), id=run, light=True).state == "published"
                break
            except RunConflictError:
                continue


Step = tuple[Any, str, str, int]
#: Where a process dies, by the function before or after which it does, and how often that is called first.
STEPS: dict[str, Step] = {
    "before publishing": (SqlCatalog, "publish", "before", 0),
    "before the first table": (rows, "swap", "before", 0),
    "between two tables": (rows, "swap", "before", 1),
    "after the last table": (log, "write", "before", 0),
    "before the branch is dropped": (refs, "drop_branch", "before", 0),
    "before the commit": (refs, "create_tag", "after", 0),
    "after the commit": (SqlCatalog, "publish", "after", 0),
}
#: The same where the commit is one request to a server.
NESSIE_STEPS: dict[str, Step] = {
    "before publishing": (NessieCatalog, "publish", "before", 0),
    "before the commit": (NessieApi, "merge", "before", 0),
    "between the commit and its tag": (NessieApi, "merge", "after", 0),
    "after the commit": (NessieCatalog, "publish", "after", 0),
}


def die_at(step: Step) -> None:
    """Have this process killed when it comes to a step."""
    place, name, when, calls = step
    real, left = getattr(place, name), [calls]

    def deadly(*args: Any, **kwargs: Any) -> Any:
        if left[0]:
            left[0] -= 1
            return real(*args, **kwargs)
        if when == "after":
            real(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("dead")

    setattr(place, name, deadly)


def command(home: Path, *work: str) -> list[str]:
    return [sys.executable, "-m", "tests.support.transaction_pipelines", str(home), *work]


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """That of such a process."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **settings}


def main(home: str, what: str, *words: str) -> None:
    with opened(Path(home), os.environ) as lake:
        if what == "write":
            write(lake, words[0], int(words[1]), list(words[2:]))
        else:
            die_at((NESSIE_STEPS if os.environ.get("LAKE_CATALOG__KIND") == "nessie" else STEPS)[words[0]])
            lake.run(writing("dies", words[1], list(words[2:])), id=words[1], light=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
