"""What a table's history costs: one more day after 1, 10 and 100 times the days, and reads after 10 to 10,000 snapshots.

`python -m bench.growth market [--days N] [--tickers N] [--factors 1 10 100]` runs the increment in lakes of each size, in turns;
`python -m bench.growth snapshots [--counts 10 1000 10000]` reads, describes, lists and travels. Keeps bench/results/growth_*.json.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from datetime import date, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from bench.lakes import bare_duckdb, catalog_of, metadata_location, open_lake
from bench.measure import ROUNDS, Figure, Ratio, Times, beside_own, interleaved, report, versus, waited
from bench.processes import LAKE, run, stop_spark
from lakehouse.core.names import TableName
from lakehouse.lake import Lake
from lakehouse.pipelines.market.sample import write_day

FIRST_DAY = date(2020, 1, 6)
LIMIT = 1.3
TABLE = "bench.history"
_HOUR_MS = 3_600_000


def market(asked: argparse.Namespace) -> int:
    """One more day, when the table has few days and when it has many: the cost must follow the change."""
    with tempfile.TemporaryDirectory(prefix="lake-bench-") as scratch, ExitStack() as running:
        lakes = {factor: filled(Path(scratch), asked.days * factor, asked.tickers, running) for factor in asked.factors}
        runs: dict[int, list[float]] = {factor: [] for factor in lakes}
        for number in range(asked.rounds + 1):  # the first warms up
            for factor, env in lakes.items():
                day = FIRST_DAY + timedelta(days=asked.days * factor + number)
                write_day(Path(env["LAKE_SOURCES__MARKET__PATH"]), day, tickers=asked.tickers)
                taken = interleaved({"run": partial(run, [LAKE, "run", "market"], env)}, 1)["run"].runs
                runs[factor] += taken if number else ()
                print(f"one more day after {asked.days * factor}: {taken[0]:.1f} s", flush=True)
    times = {factor: Times(tuple(seconds)) for factor, seconds in runs.items()}
    first, *others = times
    ratios = [
        beside_own(f"one more day, {factor} times the history", times[factor], f"{first} time", times[first], LIMIT)
        for factor in others
    ]
    figures = [waited(f"one more day after {asked.days * factor}", taken) for factor, taken in times.items()]
    return report("growth_market", ratios, figures=figures, notes=[f"{asked.tickers} tickers, about 400 bars each"])


def filled(scratch: Path, days: int, tickers: int, running: ExitStack) -> dict[str, str]:
    """A lake with this number of days of bars and a warm Spark, as the environment of its commands."""
    folder = scratch / f"files{days}"
    env = {"LAKE_HOME": str(scratch / f"lake{days}"), "LAKE_SOURCES__MARKET__PATH": str(folder)}
    for day in range(days):
        write_day(folder, FIRST_DAY + timedelta(days=day), tickers=tickers)
    running.callback(stop_spark, env)
    run([LAKE, "sql", "select 1", "--engine", "spark"], env)
    run([LAKE, "run", "market"], env)
    print(f"a lake of {days} days", flush=True)
    return env


def snapshots(asked: argparse.Namespace) -> int:
    """Reads, descriptions, histories and travels of a table with many snapshots, each after a new commit."""
    times: dict[int, dict[str, Times]] = {}
    for number in asked.counts:
        with tempfile.TemporaryDirectory(prefix="lake-bench-") as scratch:
            times[number] = long_history(Path(scratch) / "lake", number, asked.rounds)
        print(f"{number:6} " + "  ".join(f"{what} {taken.median:.4f} s" for what, taken in times[number].items()))
    first, *others = asked.counts
    ratios: list[Ratio] = []
    figures: list[Figure] = []
    for number in asked.counts:
        figures += [waited(f"{what}, {number:,} snapshots", taken) for what, taken in times[number].items()]
        bare = times[number]["bare DuckDB"]
        ratios.append(versus(f"read, {number:,} snapshots", times[number]["read"], "bare DuckDB", bare))
    for number in others:
        ratios += [
            beside_own(f"{what}, {number:,} snapshots", taken, f"{first} snapshots", times[first][what])
            for what, taken in times[number].items()
        ]
    notes = ["Every snapshot shares the data files of the first: what grows is the metadata file, as after compaction."]
    return report("growth_snapshots", ratios, figures=figures, notes=notes)


def long_history(home: Path, snapshots: int, rounds: int) -> dict[str, Times]:
    """The times of each operation on a table with this number of snapshots."""
    pointer = with_snapshots(home, snapshots)
    with open_lake(home) as lake:
        middle = lake.history(TABLE)[snapshots // 2].id
        bare = bare_duckdb("avro", "iceberg")
        text = f"select count(*), max(id) from {TABLE}"

        def plain() -> object:
            location = metadata_location(home, TABLE)
            return bare.execute(f"select count(*), max(id) from iceberg_scan('{location}')").to_arrow_table()

        ways: dict[str, Callable[[], object]] = {
            "read": lambda: lake.sql(text, engine="duckdb").to_arrow(),
            "bare DuckDB": plain,
            "describe": lambda: lake.describe(TABLE),
            "history": lambda: lake.history(TABLE),
            "travel": lambda: lake.sql(text, engine="duckdb", as_of=middle).to_arrow(),
        }
        # A lake caches metadata files, which never change, so each call comes after a commit, which writes a new one.
        commits = count()
        return interleaved(ways, rounds, before=lambda: commit(lake, pointer, next(commits)))


def with_snapshots(home: Path, snapshots: int) -> dict[str, Any]:
    """Write the metadata file of a table with this number of snapshots and return its content; real commits would take hours."""
    import pyarrow

    catalog = catalog_of(home)
    catalog.create_namespace_if_not_exists("bench")
    rows = pyarrow.table({"id": range(10_000), "word": [f"word {number % 97}" for number in range(10_000)]})
    catalog.create_table(TABLE, schema=rows.schema).append(rows)
    metadata: dict[str, Any] = json.loads(Path(metadata_location(home, TABLE).removeprefix("file://")).read_text())
    (only,) = metadata["snapshots"]
    made: list[dict[str, Any]] = []
    for number in range(snapshots):
        snapshot = copy.deepcopy(only)
        snapshot["snapshot-id"] = only["snapshot-id"] if number == snapshots - 1 else 1_000_000 + number
        snapshot["timestamp-ms"] = only["timestamp-ms"] - (snapshots - 1 - number) * _HOUR_MS
        snapshot["sequence-number"] = number + 1
        if number:
            snapshot["parent-snapshot-id"] = made[-1]["snapshot-id"]
        made.append(snapshot)
    metadata |= {"snapshots": made, "last-sequence-number": snapshots}
    metadata["snapshot-log"] = [
        {"snapshot-id": snapshot["snapshot-id"], "timestamp-ms": snapshot["timestamp-ms"]} for snapshot in made
    ]
    with open_lake(home) as lake:
        commit(lake, metadata, -1)
    return metadata


def commit(lake: Lake, metadata: dict[str, Any], number: int) -> None:
    """Point the table at another metadata file with the same content."""
    catalog = lake._components.runner().catalog
    name = TableName.parse(TABLE)
    current = catalog.pointer(name)
    assert current is not None
    folder = Path(current.removeprefix("file://")).parent
    file = folder / f"{number + 10:05}-bench.metadata.json"
    file.write_text(json.dumps(metadata))
    assert catalog.swap_pointer(name, current, f"file://{file}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["market", "snapshots"])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--days", type=int, default=3, help="days of the smallest history")
    parser.add_argument("--tickers", type=int, default=1000, help="tickers of a day; each has about 400 bars")
    parser.add_argument("--factors", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--counts", type=int, nargs="+", default=[10, 1_000, 10_000])
    asked = parser.parse_args()
    return market(asked) if asked.what == "market" else snapshots(asked)


if __name__ == "__main__":
    sys.exit(main())
