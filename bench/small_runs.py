"""Small runs, where users notice the latency: the demo's market sample (3 days, about 11,000 rows, four tables), beside plain PySpark.

`python -m bench.small_runs [--rounds N] [--stack]`. The plain script makes the same tables and starts its own Spark, as scripts do.
`--stack` starts storage and PostgreSQL on free ports and runs `social` on the `sql` profile. Keeps bench/results/small_runs.json.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path

from bench.lakes import snippet
from bench.measure import ROUNDS, Figure, Ratio, Times, interleaved, report, versus, waited
from bench.plain_scripts import MARKET_SAME, SOCIAL_SPARK
from bench.processes import JAVA, LAKE, count, run, stop_spark
from lakehouse.config.load import load_settings
from lakehouse.pipelines.market.sample import write_day

FIRST_DAY = date(2026, 1, 14)
DAYS = 3
COLD, WARM, EDITED, NOTHING = 15.0, 4.0, 5.0, 0.5
SOCIAL, SOCIAL_UNCHANGED = 15.0, 5.0
USERS = 200
PLAIN = "plain PySpark, same tables"

#: The demo's pipeline in a file of its own, with a small edit as a user would make it.
EDITED_MODULE = """
from dataclasses import replace
from lakehouse.pipelines import functions as F
from lakehouse.pipelines.market import gold
from lakehouse.pipelines.market.pipeline import market


def daily_bars(minute_aggs):
    return gold.daily_bars(minute_aggs.where(F.col("volume") >= {edition}))


tables = [replace(table, transform=daily_bars, checks=()) if table.name == "gold.daily_bars" else table for table in market.tables]
edited = replace(market, name="edited", tables=tuple(tables))
"""


def write_days(folder: Path, first: int, days: int = DAYS) -> None:
    """Days of the demo's sample, counted from its first."""
    for number in range(first, first + days):
        write_day(folder, FIRST_DAY + timedelta(days=number))


def plain_script(scratch: Path, number: int, files: Path) -> list[str]:
    """The same tables by a plain script, in a separate lake."""
    script = scratch / f"plain{number}.py"
    head = snippet("spark", load_settings({"home": scratch / f"plain{number}"}))
    script.write_text(f"FOLDER = {str(files)!r}\n{head}\n{MARKET_SAME}")
    return [sys.executable, str(script)]


def cold(scratch: Path, rounds: int) -> tuple[Times, Times]:
    """The first run of a new lake, and the plain script, in turns."""
    files = scratch / "cold_files"
    write_days(files, 0)
    ours: list[float] = []
    plain: list[float] = []
    for number in range(rounds):
        env = {"LAKE_HOME": str(scratch / f"cold{number}"), "LAKE_SOURCES__MARKET__PATH": str(files)}
        script = plain_script(scratch, number, files)
        ours += interleaved({"run": partial(run, [LAKE, "run", "market"], env)}, 1)["run"].runs
        stop_spark(env)
        plain += interleaved({"run": partial(run, script, JAVA)}, 1)["run"].runs
        for table in ("bronze.minute_aggs", "silver.minute_aggs"):
            rows = count(Path(env["LAKE_HOME"]), table), count(scratch / f"plain{number}", table)
            # The script deduplicates at random and reads every file: a few rows more or less.
            assert abs(rows[0] - rows[1]) <= 100 and rows[0] > 5_000, (table, rows)
    return Times(tuple(ours)), Times(tuple(plain))


def warm(scratch: Path, rounds: int) -> tuple[Times, Times]:
    """Three more days in a lake with a warm Spark, then a run with nothing to do."""
    files = scratch / "warm_files"
    env = {"LAKE_HOME": str(scratch / "warm"), "LAKE_SOURCES__MARKET__PATH": str(files)}
    write_days(files, 0)
    more: list[float] = []
    nothing: list[float] = []
    try:
        run([LAKE, "sql", "select 1", "--engine", "spark"], env)
        run([LAKE, "run", "market"], env)
        for number in range(1, rounds + 1):
            write_days(files, number * DAYS)
            more += interleaved({"run": lambda: run([LAKE, "run", "market"], env)}, 1)["run"].runs
            nothing += interleaved({"run": lambda: run([LAKE, "run", "market"], env)}, 1)["run"].runs
    finally:
        stop_spark(env)
    return Times(tuple(more)), Times(tuple(nothing))


def edited(scratch: Path, rounds: int) -> Times:
    """A pipeline file that was changed, run again over its three days."""
    project = scratch / "project"
    write_days(project / "files", 0)
    env = {"LAKE_HOME": str(project / "lake"), "LAKE_SOURCES__EDITED__PATH": str(project / "files")}
    (project / "lake.toml").write_text('pipelines = ["edited"]\n')
    last = FIRST_DAY + timedelta(days=DAYS - 1)
    command = [LAKE, "run", "edited", "--from", str(FIRST_DAY), "--to", str(last)]
    taken: list[float] = []
    try:
        run([LAKE, "sql", "select 1", "--engine", "spark"], env, project)
        for number in range(rounds + 1):
            (project / "edited.py").write_text(EDITED_MODULE.format(edition=number))
            once = interleaved({"run": lambda: run(command, env, project)}, 1)["run"].runs
            taken += once if number else ()
    finally:
        stop_spark(env)
    return Times(tuple(taken))


def social(scratch: Path, rounds: int) -> tuple[list[Ratio], list[Figure]]:
    """`social` on the `sql` profile: PostgreSQL to tables in an object store, and then nothing changed; new servers each round."""
    runs: dict[str, list[float]] = {"first": [], "nothing": [], "plain": []}
    for number in range(rounds):
        for name, taken in social_once(scratch / f"social{number}").items():
            runs[name].append(taken)
    first, nothing, plain = (Times(tuple(seconds)) for seconds in runs.values())
    return (
        [versus("lake run social, sql profile", first, PLAIN, plain)],
        [
            waited("lake run social, sql profile, 1,272 rows", first, SOCIAL),
            waited("lake run social, nothing changed", nothing, SOCIAL_UNCHANGED),
        ],
    )


def social_once(scratch: Path) -> dict[str, float]:
    import psycopg
    from tests.support.servers.stack import Stack, stack_settings

    from lakehouse.pipelines.social import sample
    from lakehouse.stack.native import down
    from lakehouse.stack.services.storage import minio

    scratch.mkdir()
    settings = stack_settings(scratch / "lake")
    if minio(settings) is None:  # to build one takes longer than everything else here
        settings = replace(settings, stack=replace(settings.stack, storage="s3proxy"))
    stack = Stack(settings)
    try:
        url = stack.need("storage", "postgres").databases["oltp"].url
        with psycopg.connect(url, autocommit=True) as connection:
            sample.create(connection, users=USERS)
        env = {**stack.environment, "LAKE_SOURCES__SOCIAL__URL": url, **JAVA}
        # A file in a folder of its own and not an argument: it has the keys of the object store.
        script = scratch / "social.py"
        script.write_text(f"URL = {url!r}\n{snippet('spark', stack.settings)}\n{SOCIAL_SPARK}")
        run([LAKE, "sql", "select 1", "--engine", "spark"], env)
        ways = {
            "first": lambda: run([LAKE, "run", "social"], env),
            "nothing": lambda: run([LAKE, "run", "social"], env),
            "plain": lambda: run([sys.executable, str(script)], env),
        }
        return {name: taken.median for name, taken in interleaved(ways, 1).items()}
    finally:
        stack.close()
        down(stack.settings)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--stack", action="store_true", help="also run social on the sql profile")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lake-bench-") as folder:
        scratch = Path(folder)
        first, plain = cold(scratch, asked.rounds)
        again, nothing = warm(scratch, asked.rounds)
        after_edit = edited(scratch, asked.rounds)
        measured = {
            "first run of a cold lake": (first, COLD),
            "run in a warm lake": (again, WARM),
            "an edited pipeline file, run again": (after_edit, EDITED),
            "nothing to do": (nothing, NOTHING),
        }
        ratios = [versus(name, taken, PLAIN, plain) for name, (taken, _) in measured.items()]
        figures = [waited(name, taken, limit) for name, (taken, limit) in measured.items()]
        notes = ["The servers were not asked for (--stack): social was not run."]
        if asked.stack:
            notes = []
            more = social(scratch, asked.rounds)
            ratios, figures = ratios + more[0], figures + more[1]
    return report("small_runs", ratios, figures=figures, notes=notes)


if __name__ == "__main__":
    sys.exit(main())
