"""Pipelines from source to gold: `lake run` beside the plain script that one would write, with Spark and without.

`python -m bench.pipelines market 5000000 20000000`, `… taxi 3000000 12000000 --rounds 3`. Every contender runs in a process of its own on the same files, one after
the other; rows per second, peak memory and ratios are kept in bench/results/. The plain scripts read, drop duplicates, write bronze and silver, and sum up one
gold table, all in doubles as they come; `PySpark, same tables` makes what `lake run` makes (types, derived columns, all gold tables) and leaves bad rows out. `lake run` also
counts every rule, keeps rejected rows, checks the tables, and publishes them at once.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from datetime import date, timedelta
from itertools import product
from pathlib import Path

from bench.lakes import snippet
from bench.measure import ROUNDS, Contender, Times, middle, report, versus
from bench.plain_scripts import KEEP, PLAIN, SCRIPTS
from bench.processes import JAVA, LAKE, count, measured, stop_spark, written_since
from lakehouse.config.load import load_settings
from lakehouse.pipelines.market.sample import write_day
from lakehouse.pipelines.taxi.sample import write_month

FIRST_DAY = date(2025, 6, 2)
#: A day of 2,500 tickers is about 1 million bars.
TICKERS_PER_MILLION = 2_500


def market_files(folder: Path, rows: int) -> None:
    """One file a day, of about a million bars each."""
    folder.mkdir(parents=True)
    days = max(rows // 1_000_000, 1)
    for day in range(days):
        write_day(
            folder, FIRST_DAY + timedelta(days=day), tickers=max(TICKERS_PER_MILLION * rows // days // 1_000_000, 10)
        )


def taxi_files(folder: Path, rows: int) -> None:
    """Months of a million trips each."""
    folder.mkdir(parents=True)
    for number in range(max(rows // 1_000_000, 1)):
        write_month(folder, f"{2025 + number // 12}-{number % 12 + 1:02}", rows=min(rows, 1_000_000))


def contender(name: str, pipeline: str, folder: Path, home: Path) -> list[str]:
    if name == "lake run":
        return [LAKE, "run", pipeline]
    settings = load_settings({"home": home})
    head = snippet("spark", settings) if name.startswith("PySpark") else snippet("pyiceberg", settings) + KEEP + PLAIN
    return [sys.executable, "-c", f"FOLDER = {str(folder)!r}\n{head}\n{SCRIPTS[pipeline][name]}"]


def compare(pipeline: str, sizes: list[int], make: Callable[[Path, int], None], rounds: int) -> int:
    """Every contender on every size; each size is kept by itself, so that a long one can be measured on another day.

    On a machine that others use too, several rounds: the contenders take turns, and the medians are compared.
    """
    failed = 0
    bronze = {"market": "bronze.minute_aggs", "taxi": "bronze.yellow_trips"}[pipeline]
    for rows in sizes:
        with tempfile.TemporaryDirectory(prefix="lake-bench-") as scratch:
            folder = Path(scratch) / "files"
            make(folder, rows)
            every: dict[str, list[Contender]] = {"lake run": [], **{name: [] for name in SCRIPTS[pipeline]}}
            for number, name in product(range(rounds), every):
                home = Path(scratch) / f"{number}_{name.replace(' ', '_').replace('+', '').replace(',', '')}"
                env = {
                    "LAKE_HOME": str(home),
                    f"LAKE_SOURCES__{pipeline.upper()}__PATH": str(folder),
                    **JAVA,
                }
                seconds, peak = measured(contender(name, pipeline, folder, home), env)
                every[name].append(Contender(name, seconds, count(home, bronze), peak, written_since(home)))
                print(f"{pipeline} {rows:>10,} {every[name][-1]}", flush=True)
                stop_spark(env)
                shutil.rmtree(home)
            contenders = {name: middle(runs) for name, runs in every.items()}
            took = {name: Times(result.runs) for name, result in contenders.items()}
            ours = took.pop("lake run")
            limit = {"PySpark": 1.0, "PySpark, same tables": 1.0}
            ratios = [
                versus(f"lake run {pipeline}, {rows:,} rows", ours, name, other, limit.get(name))
                for name, other in took.items()
            ]
            failed |= report(f"pipelines_{pipeline}_{rows // 1_000_000}m", ratios, list(contenders.values()))
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["market", "taxi"])
    parser.add_argument("sizes", type=int, nargs="*", help="numbers of rows")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often every contender runs")
    asked = parser.parse_args()
    return compare(asked.what, asked.sizes, market_files if asked.what == "market" else taxi_files, asked.rounds)


if __name__ == "__main__":
    sys.exit(main())
