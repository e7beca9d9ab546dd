"""Dashboard queries by many clients at once: `lake serve` beside one DuckDB process per query, and beside Trino.

`python -m bench.serve [--seconds 60] [--rows 10000000] [--clients 32] [--trino URL]`: mixed queries with varying literals, result cache off.
For Trino, start the stack first (`lake --profile sql up trino`) and give its address; the rows are copied into its catalog `memory`.
Keeps bench/results/serve.json.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb
import psutil
import requests

LAKE = Path(sys.executable).parent / "lake"
RESULTS = Path(__file__).parent / "results" / "serve.json"
QUERIES = (
    "select count(*) as n from {table} where shop = {shop}",
    "select shop, sum(amount) as total from {table} where day >= date '{day}' group by shop order by total desc limit 10",
    "select day, avg(amount) as mean from {table} where shop between {shop} and {shop} + 5 group by day order by day limit 31",
    "select id, amount from {table} where id = {id}",
    "select count(*) as n, max(amount) as most from {table} where amount > {amount} and day < date '{day}'",
)
PROCESS = """
import sys, duckdb
from lakehouse.engines.duckdb.connection import load_extension
connection = duckdb.connect()
load_extension(connection, "avro"); load_extension(connection, "iceberg")
connection.execute(sys.argv[1]).fetchall()
"""


@dataclass
class Load:
    """What a contender did."""

    name: str
    queries: int
    errors: int
    per_second: float
    p50_ms: float
    p95_ms: float
    memory_mb: tuple[int, int] = (0, 0)
    """Of the service and its processes, after a quarter of the time and at the end."""


def query(table: str, random_: random.Random) -> str:
    day = f"2026-{random_.randint(1, 12):02}-{random_.randint(1, 28):02}"
    values = {"shop": random_.randint(0, 199), "id": random_.randint(0, 10**6), "amount": random_.randint(0, 990)}
    return random_.choice(QUERIES).format(table=table, day=day, **values)


def load(name: str, ask: Callable[[str], None], table: str, clients: int, seconds: float, pid: int = 0) -> Load:
    """Let all clients ask until the time is over."""
    took: list[float] = []
    errors: list[str] = []
    end = time.monotonic() + seconds

    def client(number: int) -> None:
        random_ = random.Random(number)
        while (begun := time.monotonic()) < end:
            try:
                ask(query(table, random_))
                took.append(time.monotonic() - begun)
            except Exception as exc:  # noqa: BLE001 - counted, and the first one is shown
                errors.append(str(exc))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    time.sleep(seconds / 4)
    early = memory(pid)
    for thread in threads:
        thread.join()
    elapsed = time.monotonic() - begun
    cuts = statistics.quantiles(took, n=20) if len(took) > 1 else [0.0] * 19
    done = Load(
        name,
        len(took),
        len(errors),
        round(len(took) / elapsed, 1),
        round(cuts[9] * 1000),
        round(cuts[18] * 1000),
        (early, memory(pid)),
    )
    print(done, *errors[:1], flush=True)
    return done


def memory(pid: int) -> int:
    if not pid:
        return 0
    root = psutil.Process(pid)
    return sum(each.memory_full_info().pss for each in (root, *root.children(recursive=True))) >> 20


def rows(file: Path, count: int) -> None:
    duckdb.sql(
        f"""COPY (SELECT i AS id, (i * 7919) % 200 AS shop, CAST((i * 31) % 997 AS DOUBLE) AS amount,
        DATE '2026-01-01' + CAST(i % 365 AS INTEGER) AS day FROM range({count}) t(i)) TO '{file}' (FORMAT parquet)"""
    )


def served(folder: Path, arguments: argparse.Namespace) -> list[Load]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    limits = {"LAKE_SERVE__CACHE": "0", "LAKE_SERVE__RATE": "0", "LAKE_SERVE__CONCURRENCY": "0", "LAKE_AUTH": "off"}
    environment = {**os.environ, "LAKE_HOME": str(folder / "lake"), **limits}
    service = subprocess.Popen([LAKE, "serve", "--port", str(port)], env=environment, stderr=subprocess.PIPE, text=True)
    assert service.stderr is not None
    service.stderr.readline()
    url, sessions = f"http://127.0.0.1:{port}", threading.local()
    try:
        while True:
            try:
                requests.get(f"{url}/healthz", timeout=5)
                break
            except requests.ConnectionError:
                time.sleep(0.1)
        with (folder / "rows.parquet").open("rb") as file:
            headers = {"Content-Type": "application/vnd.apache.parquet"}
            requests.post(f"{url}/ingest/shop.sales", data=file, headers=headers, timeout=3600).raise_for_status()
        metadata = sorted((folder / "lake" / "warehouse" / "shop" / "sales" / "metadata").glob("*.json"))[-1]

        def over_http(sql: str) -> None:
            if not hasattr(sessions, "session"):
                sessions.session = requests.Session()
            sessions.session.post(f"{url}/query", json={"sql": sql}, timeout=120).raise_for_status()

        def in_a_process(sql: str) -> None:
            subprocess.run([sys.executable, "-c", PROCESS, sql], check=True, capture_output=True)

        scan = f"iceberg_scan('{metadata}')"
        return [
            load("lake serve", over_http, "shop.sales", arguments.clients, arguments.seconds, service.pid),
            load("a DuckDB process per query", in_a_process, scan, arguments.clients, arguments.seconds),
        ]
    finally:
        service.terminate()
        service.wait()
        service.stderr.close()


def on_trino(folder: Path, arguments: argparse.Namespace) -> list[Load]:
    from urllib.parse import urlsplit

    from trino.dbapi import connect

    address = urlsplit(arguments.trino)

    def ask(sql: str) -> None:
        connection = connect(host=address.hostname, port=address.port, user="lake", catalog="memory", schema="default")
        cursor = connection.cursor()
        cursor.execute(sql)
        cursor.fetchall()
        connection.close()

    ask("drop table if exists sales")
    ask(
        "create table sales as select id, (id * 7919) % 200 as shop, cast((id * 31) % 997 as double) as amount,"
        " date_add('day', id % 365, date '2026-01-01') as day from (select a * 10000 + b as id"
        f" from unnest(sequence(0, {max(arguments.rows // 10_000, 1) - 1})) t(a), unnest(sequence(0, 9999)) u(b))"
    )
    return [load("Trino", ask, "sales", arguments.clients, arguments.seconds)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--trino", default="")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows(folder / "rows.parquet", arguments.rows)
        found = served(folder, arguments) + (on_trino(folder, arguments) if arguments.trino else [])
    ours = found[0].per_second
    ratios = {each.name: round(ours / each.per_second, 2) for each in found[1:] if each.per_second}
    RESULTS.write_text(
        json.dumps(
            {
                "rows": arguments.rows,
                "clients": arguments.clients,
                "seconds": arguments.seconds,
                "contenders": [asdict(each) for each in found],
                "times_the_throughput_of": ratios,
            },
            indent=1,
        )
        + "\n"
    )


if __name__ == "__main__":
    main()
