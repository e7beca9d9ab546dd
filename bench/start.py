"""Startup times: a cold query, help, the first and the second Spark statement. `make bench` runs it."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from bench.lakes import catalog_of, snippet
from bench.measure import ROUNDS, Ratio, Times, beside_own, interleaved, report, versus
from bench.processes import JAVA, LAKE, run, stop_spark
from lakehouse.config.load import load_settings

QUERY = "select count(*) from bench.numbers"

# A script that knows the pointer: the minimum that such a query can cost.
BARE = """
import sqlite3, duckdb, importlib.util
(location,) = sqlite3.connect({catalog!r}).execute(
    "select metadata_location from iceberg_tables where catalog_name = 'lake'"
    " and table_namespace = 'bench' and table_name = 'numbers'").fetchone()
connection = duckdb.connect(config={{"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}})
for name in ("avro", "iceberg"):
    folder = importlib.util.find_spec("duckdb_extension_" + name).submodule_search_locations[0]
    connection.execute(f"LOAD '{{folder}}/extensions/v{{duckdb.__version__}}/{{name}}.duckdb_extension'")
print(connection.execute(f"select count(*) from iceberg_scan('{{location}}')").fetchall())
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=15, help="rounds of the commands without Spark")
    parser.add_argument("--spark-rounds", type=int, default=ROUNDS)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lake-bench-") as scratch:
        home = Path(scratch) / "lake"
        env = {"LAKE_HOME": str(home)}
        bare = make_lake(home, asked.rows)
        plain = Path(scratch) / "plain.py"
        plain.write_text(snippet("spark", load_settings({"home": home})) + f"\nspark.sql({QUERY!r}).collect()\n")
        try:
            ratios = [*commands(bare, env, asked.rounds), *spark(plain, env, asked.spark_rounds)]
        finally:
            stop_spark(env)
    return report("start", ratios)


def make_lake(home: Path, rows: int) -> Path:
    """A lake with a table of numbers, made without Spark, and the bare script that counts them."""
    import pyarrow

    catalog = catalog_of(home)
    catalog.create_namespace_if_not_exists("bench")
    numbers = pyarrow.array(range(rows))
    table = pyarrow.table({"id": numbers, "s": numbers.cast(pyarrow.string())})
    catalog.create_table("bench.numbers", schema=table.schema).append(table)
    bare = home.parent / "bare.py"
    bare.write_text(BARE.format(catalog=str(home / "catalog.db")))
    return bare


def commands(bare: Path, env: dict[str, str], rounds: int) -> list[Ratio]:
    """Commands that need no Spark."""
    took = interleaved(
        {
            "sql": lambda: run([LAKE, "sql", QUERY], env),
            "bare": lambda: run([sys.executable, str(bare)]),
            "help": lambda: run([LAKE, "--help"]),
            "nothing": lambda: run([sys.executable, "-c", "pass"]),
        },
        rounds,
    )
    return [
        versus("cold lake sql", took["sql"], "bare sqlite3 + DuckDB script", took["bare"], 1.3),
        versus("lake --help", took["help"], "python -c pass", took["nothing"], 4.0),
    ]


def spark(plain: Path, env: dict[str, str], rounds: int) -> list[Ratio]:
    """The first statement of a cold lake, and the one after it."""
    statement = [LAKE, "sql", QUERY, "--engine", "spark"]
    taken: dict[str, list[float]] = {"first": [], "second": [], "plain": []}
    for _ in range(rounds):
        stop_spark(env)
        for name in ("first", "second"):
            taken[name] += interleaved({name: lambda: run(statement, env)}, 1)[name].runs
        stop_spark(env)
        taken["plain"] += interleaved({"plain": lambda: run([sys.executable, str(plain)], JAVA)}, 1)["plain"].runs
    first, second, other = (Times(tuple(taken[name])) for name in ("first", "second", "plain"))
    return [
        versus("first Spark statement of a cold lake", first, "plain spark.jars session", other, 0.5),
        beside_own("second lake sql --engine spark", second, "the first", first, 0.1),
    ]


if __name__ == "__main__":
    sys.exit(main())
