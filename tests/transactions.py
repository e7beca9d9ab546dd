"""Small pipelines without Spark that write several tables at once, in processes that may be killed.

As a program: `python -m tests.transactions HOME CATALOG WORK…`, where WORK is `write NAME RUNS TABLE…` or
`die STEP RUN TABLE…`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow

from lakehouse.assemble import assemble
from lakehouse.catalogs.sql import SqlCatalog, log, refs, rows
from lakehouse.config.load import load_settings
from lakehouse.core.errors import RunConflictError
from lakehouse.lake import Lake
from lakehouse.pipelines import Pipeline, Table

ROOT = Path(__file__).parents[1]
SHAPE = pyarrow.schema([("run", pyarrow.string()), ("n", pyarrow.int64())])


def opened(home: Path, catalog: str = "") -> Lake:
    """A lake on SQLite, or on the PostgreSQL at an address."""
    flags = {"home": home, "spark.master": "local[1]", **({"catalog.uri": catalog} if "://" in catalog else {})}
    return assemble(load_settings(flags, environ={}))


def writing(name: str, run: str, tables: list[str]) -> Pipeline:
    """A pipeline that adds the same row to each of its tables."""

    def adds(table: str) -> Callable[[Any, Mapping[str, str]], int]:
        def add(catalog: Any, settings: Mapping[str, str]) -> int:
            held = catalog.create_table_if_not_exists(table, schema=SHAPE)
            held.append(pyarrow.table({"run": [run], "n": [1]}, schema=SHAPE))
            return 1

        return add

    def nothing() -> Any:
        raise AssertionError("these tables are made without Spark")

    return Pipeline(name, tuple(Table(table, nothing, light=adds(table)) for table in tables))


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


#: Where a process dies, by the function before or after which it does, and how often that is called first.
STEPS: dict[str, tuple[Any, str, str, int]] = {
    "before publishing": (SqlCatalog, "publish", "before", 0),
    "before the first table": (rows, "exchange", "before", 0),
    "between two tables": (rows, "exchange", "before", 1),
    "after the last table": (log, "write", "before", 0),
    "before the branch is forgotten": (refs, "forget_branch", "before", 1),
    "before the commit": (refs, "make_tag", "after", 0),
    "after the commit": (SqlCatalog, "publish", "after", 0),
}


def die_at(step: str) -> None:
    """Have this process killed when it comes to a step."""
    place, name, when, calls = STEPS[step]
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


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def command(home: Path, catalog: str, *work: str) -> list[str]:
    return [sys.executable, "-m", "tests.transactions", str(home), catalog, *work]


def main(home: str, catalog: str, what: str, *words: str) -> None:
    with opened(Path(home), catalog) as lake:
        if what == "write":
            write(lake, words[0], int(words[1]), list(words[2:]))
        else:
            die_at(words[0])
            lake.run(writing("dies", words[1], list(words[2:])), id=words[1], light=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
