"""Keyed rows into a large table: `lake ingest --key` into Iceberg and Hudi, beside plain MERGE INTO and PyIceberg's upsert.

`python -m bench.upsert [ROWS [CONTENDER…]] [--rounds N]`: a tenth of ROWS (10 million by default) is upserted into ROWS, nine of ten of them updates, spread over the whole table.
Keeps bench/results/upsert.json, or upsert_some.json if only some contenders are named.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

import duckdb

from bench.lakes import snippet
from bench.measure import ROUNDS, Contender, Times, middle, report, versus
from bench.processes import JAVA, LAKE, measured, run, written_since
from lakehouse.config.load import load_settings

SCHEMA = "id bigint, customer bigint, item string, price double, city string, note string"
MERGE = """
spark.read.option("header", True).schema({schema!r}).csv({file!r}).createOrReplaceTempView("came")
spark.sql("MERGE INTO lake.bench.t t USING came s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
"""
PYICEBERG = """
import duckdb
table = catalog.load_table("bench.t")
rows = duckdb.sql("select * from read_csv({file!r})").to_arrow_table().cast(table.schema().as_arrow())
table.upsert(rows, join_cols=["id"])
"""


def make_csv(file: Path, rows: int, first: int, step: int, word: str) -> None:
    """Rows with ids from `first`, every `step`-th."""
    duckdb.sql(
        f"""COPY (SELECT {first} + i * {step} AS id, (i * 31) % 100000 AS customer, '{word} ' || (i % 500) AS item, round((i % 9973) / 7.0, 2) AS price,
        ['London', 'Austin', 'New York', 'Zürich'][1 + i % 4] AS city, 'note ' || i AS note FROM range({rows}) t(i)) TO '{file}' (HEADER)"""
    )


def lake(home: Path, *arguments: str) -> None:
    run([LAKE, *arguments], {"LAKE_HOME": str(home)})


def upserted(name: str, command: list[str], home: Path, rows: int) -> Contender:
    """Run a command that upserts rows."""
    began = time.time()
    took, peak = measured(command, {"LAKE_HOME": str(home), **JAVA})
    done = Contender(name, took, rows, peak, written_since(home, began))
    print(done, flush=True)
    return done


CONTENDERS = {
    "ours, Iceberg": "iceberg",
    "ours, Hudi": "hudi",
    "plain MERGE INTO": "iceberg",
    "PyIceberg upsert": "iceberg",
}


def commands(name: str, home: Path, came: str) -> list[str]:
    """What a contender runs to upsert a file."""
    settings = load_settings({"home": home})
    if "MERGE" in name:
        return [sys.executable, "-c", snippet("spark", settings) + MERGE.format(file=came, schema=SCHEMA)]
    if "PyIceberg" in name:
        return [sys.executable, "-c", snippet("pyiceberg", settings) + PYICEBERG.format(file=came)]
    return [LAKE, "ingest", came, "--into", "bench.t"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=int, nargs="?", default=10_000_000)
    parser.add_argument("contenders", nargs="*", help=f"only these: {', '.join(CONTENDERS)}")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    asked = parser.parse_args()
    chosen = {name: kind for name, kind in CONTENDERS.items() if name in (asked.contenders or CONTENDERS)}
    runs: dict[str, list[Contender]] = {name: [] for name in chosen}
    with tempfile.TemporaryDirectory(prefix="lake-bench-") as scratch:
        folder = Path(scratch)
        table, came = folder / "table.csv", str(folder / "came.csv")
        make_csv(table, asked.rows, 0, 1, "item")
        make_csv(Path(came), asked.rows // 10, asked.rows // 100, 10, "new")
        for _, (name, kind) in product(range(asked.rounds), chosen.items()):
            home = folder / "lake"
            lake(home, "ingest", str(table), "--into", "bench.t", "--key", "id", "--format", kind)
            if kind == "iceberg":
                lake(home, "down")  # making the table started a Spark; ours needs none here, MERGE brings its own
            runs[name].append(upserted(name, commands(name, home, came), home, asked.rows // 10))
            lake(home, "down")
            shutil.rmtree(home)
    took = {name: middle(rounds) for name, rounds in runs.items()}
    limits = {("ours, Iceberg", "PyIceberg upsert"): 0.05}
    return report(
        "upsert" if len(chosen) == len(CONTENDERS) else "upsert_some",
        [
            versus(mine, Times(took[mine].runs), other, Times(took[other].runs), limits.get((mine, other)))
            for mine in ("ours, Iceberg", "ours, Hudi")
            for other in ("plain MERGE INTO", "PyIceberg upsert")
            if mine in took and other in took
        ],
        list(took.values()),
    )


if __name__ == "__main__":
    sys.exit(main())
