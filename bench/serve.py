"""Dashboard queries by many clients at once: `lake serve` beside one DuckDB process per query, and beside Trino.

`python -m bench.serve [--seconds 60] [--rows 10000000] [--clients 32] [--trino]`: mixed queries with varying literals, result cache off.
`--trino` starts the servers of the profile `sql` in a folder of its own; `lake serve` and Trino then read the same Iceberg table there.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb
import psutil
import requests

from bench.machine import Watch, code_version, hardware, versions
from bench.trino import trino_stack

LAKE = Path(sys.executable).parent / "lake"
RESULTS = Path(__file__).parent / "results" / "serve.json"
QUERIES = (
    "select count(*) as n from {table} where shop = {shop}",
    "select shop, sum(amount) as total from {table} where day >= date '{day}' group by shop order by total desc limit 10",
    "select day, avg(amount) as mean from {table} where shop between {shop} and {shop} + 5 group by day order by day limit 31",
    "select id, amount from {table} where id = {id}",
    "select count(*) as n, max(amount) as most from {table} where amount > {amount} and day < date '{day}'",
)
CREATE = """create table sales as
select id, (id * 7919) % 200 as shop, cast((id * 31) % 997 as double) as amount,
  cast(date_add('day', id % 365, date '2026-01-01') as date) as day
from (select a * 10000 + b as id from unnest(sequence(0, {rows} - 1)) t(a), unnest(sequence(0, 9999)) u(b))"""
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


def load(name: str, ask: Callable[[str], object], table: str, clients: int, seconds: float, pid: int = 0) -> Load:
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
    return sum(process.memory_full_info().pss for process in (root, *root.children(recursive=True))) >> 20


def rows(file: Path, count: int) -> None:
    duckdb.sql(
        f"""COPY (SELECT i AS id, (i * 7919) % 200 AS shop, CAST((i * 31) % 997 AS DOUBLE) AS amount,
        DATE '2026-01-01' + CAST(i % 365 AS INTEGER) AS day FROM range({count}) t(i)) TO '{file}' (FORMAT parquet)"""
    )


@contextmanager
def serving(environment: dict[str, str], cache: str = "0") -> Iterator[tuple[str, int]]:
    """`lake serve` without limits on a free port; gives its address and process id."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    limits = {"LAKE_SERVE__CACHE": cache, "LAKE_SERVE__RATE": "0", "LAKE_SERVE__CONCURRENCY": "0", "LAKE_AUTH": "off"}
    service = subprocess.Popen(
        [LAKE, "serve", "--port", str(port)],
        env={**os.environ, **environment, **limits},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert service.stderr is not None
    try:
        line = service.stderr.readline()
        if "listens" not in line:
            raise SystemExit(line + service.stderr.read())
        while True:
            try:
                requests.get(f"http://127.0.0.1:{port}/readyz", timeout=5).raise_for_status()
                break
            except requests.RequestException:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}", service.pid
    finally:
        service.terminate()
        service.wait()
        service.stderr.close()


def served(name: str, file: Path | None, environment: dict[str, str], arguments: argparse.Namespace) -> Load:
    """Let the clients ask the service of a lake, into which the rows of a file are ingested first."""
    sessions = threading.local()
    with serving(environment) as (url, pid):
        if file is not None:
            headers = {"Content-Type": "application/vnd.apache.parquet"}
            with file.open("rb") as rows:
                requests.post(f"{url}/ingest/shop.sales", data=rows, headers=headers, timeout=3600).raise_for_status()

        def over_http(sql: str) -> None:
            if not hasattr(sessions, "session"):
                sessions.session = requests.Session()
            sessions.session.post(f"{url}/query", json={"sql": sql}, timeout=120).raise_for_status()

        return load(name, over_http, "shop.sales", arguments.clients, arguments.seconds, pid)


def in_processes(home: Path, arguments: argparse.Namespace) -> Load:
    """One DuckDB process per query, on the files of a lake."""
    metadata = sorted((home / "warehouse" / "shop" / "sales" / "metadata").glob("*.json"))[-1]

    def in_a_process(sql: str) -> None:
        subprocess.run([sys.executable, "-c", PROCESS, sql], check=True, capture_output=True)

    scan = f"iceberg_scan('{metadata}')"
    return load("a DuckDB process per query", in_a_process, scan, arguments.clients, arguments.seconds)


def beside_trino(folder: Path, arguments: argparse.Namespace) -> list[Load]:
    """The service and Trino on the same table in an object store, which Trino writes."""
    with trino_stack(folder, "shop") as stack:
        stack.ask(CREATE.format(rows=arguments.rows // 10_000))
        ours = served("lake serve, in the object store", None, stack.environment, arguments)
        load("Trino, warming up", stack.ask, "sales", 4, arguments.seconds / 2)  # for Java's compiler
        server = next(process.pid for process in psutil.process_iter(["cmdline"]) if is_trino(process, folder))
        return [ours, load("Trino", stack.ask, "sales", arguments.clients, arguments.seconds, server)]


def is_trino(process: psutil.Process, folder: Path) -> bool:
    words = process.info["cmdline"] or []
    return "io.trino.server.TrinoServer" in words and any(str(folder) in word for word in words)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--trino", action="store_true")
    arguments, watch = parser.parse_args(), Watch()
    with tempfile.TemporaryDirectory() as name:
        folder, file = Path(name), Path(name) / "rows.parquet"
        rows(file, arguments.rows)
        contenders = [served("lake serve", file, {"LAKE_HOME": str(folder / "lake")}, arguments)]
        contenders.append(in_processes(folder / "lake", arguments))
        contenders += beside_trino(folder, arguments) if arguments.trino else []
    rates = {contender.name: contender.per_second for contender in contenders}
    ratios = {
        f"{ours} to {other}": round(rates[ours] / rates[other], 2)
        for ours, other in (
            ("lake serve", "a DuckDB process per query"),
            ("lake serve, in the object store", "Trino"),
            ("lake serve", "Trino"),
        )
        if rates.get(other)
    }
    RESULTS.write_text(
        json.dumps(
            {
                "machine": hardware(),
                "versions": versions(),
                "code": code_version("bench/serve.py"),
                "load": watch.seen(),
                "rows": arguments.rows,
                "clients": arguments.clients,
                "seconds": arguments.seconds,
                "contenders": [asdict(contender) for contender in contenders],
                "throughput": ratios,
            },
            indent=1,
        )
        + "\n"
    )


if __name__ == "__main__":
    main()
