"""Small queries of many clients with and without two slow downloads beside them, large results by format, and the latency of one client.

`python -m bench.neighbours [--seconds 10] [--rows 3000000] [--clients 32] [--rounds 5]`. Keeps bench/results/neighbours.json. What is
compared is measured in turns; beside medians it states the least, and the processor time of the service with its query processes,
which depend less on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import socket
import statistics
import tempfile
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import duckdb
import psutil
import requests

from bench.machine import Watch, code_version, hardware, versions
from bench.serve import Load, load, memory, serving

RESULTS = Path(__file__).parent / "results" / "neighbours.json"
FORMATS = {
    "arrow": "application/vnd.apache.arrow.stream",
    "json": "application/json",
    "json lines": "application/x-ndjson",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
}
LARGE = "select * from shop.sales"


def ingest(url: str, folder: Path, rows: int) -> None:
    """A table of five types."""
    file = folder / "rows.parquet"
    duckdb.sql(
        f"""COPY (SELECT i AS id, (i * 7919) % 200 AS shop, CAST((i * 31) % 997 AS DOUBLE) AS amount, 'item ' || i AS item,
        DATE '2026-01-01' + CAST(i % 365 AS INTEGER) AS day, CAST(i AS DECIMAL(20, 2)) AS price FROM range({rows}) t(i))
        TO '{file}' (FORMAT parquet)"""
    )
    headers = {"Content-Type": FORMATS["parquet"]}
    with file.open("rb") as content:
        requests.post(f"{url}/ingest/shop.sales", data=content, headers=headers, timeout=600).raise_for_status()


def processor_s(pid: int) -> float:
    """Processor time of the service and of its query processes."""
    service = psutil.Process(pid)
    times = [process.cpu_times() for process in (service, *service.children(recursive=True))]
    return sum(spent.user + spent.system for spent in times)


def downloads(url: str, rounds: int, pid: int) -> dict[str, dict[str, Any]]:
    """All rows in each format, in turns: the median and the least of the rounds."""
    measured: dict[str, list[dict[str, Any]]] = {format: [] for format in FORMATS}
    for _ in range(rounds):
        for format, accept in FORMATS.items():
            measured[format].append(download(url, accept, pid))
    return {
        format: {
            "seconds": statistics.median(measure["seconds"] for measure in measures),
            "least_seconds": min(measure["seconds"] for measure in measures),
            "processor_s": min(measure["processor_s"] for measure in measures),
            "mb": measures[0]["mb"],
            "memory_mb": max(measure["memory_mb"] for measure in measures),
        }
        for format, measures in measured.items()
    }


def download(url: str, accept: str, pid: int) -> dict[str, Any]:
    """All rows in one format: seconds, megabytes, and how much the service's memory grew meanwhile."""
    before, most, size, begun, spent = memory(pid), 0, 0, time.monotonic(), processor_s(pid)
    headers = {"Accept": accept, "Accept-Encoding": "identity"}
    with requests.post(f"{url}/query", json={"sql": LARGE}, headers=headers, stream=True, timeout=600) as answer:
        answer.raise_for_status()
        for number, part in enumerate(iter(lambda: answer.raw.read(1 << 20), b"")):
            size += len(part)
            if number % 50 == 0:
                most = max(most, memory(pid))
    return {
        "seconds": round(time.monotonic() - begun, 2),
        "processor_s": round(processor_s(pid) - spent, 2),
        "mb": size >> 20,
        "memory_mb": max(most - before, 0),
    }


def slow_download(url: str, done: threading.Event) -> None:
    """A client that takes 5 kB/s of a JSON result."""
    host, port = url.removeprefix("http://").split(":")
    body = json.dumps({"sql": LARGE}).encode()
    head = f"POST /query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with closing(socket.create_connection((host, int(port)))) as connection:
        connection.sendall(head.encode() + body)
        while not done.wait(1):
            connection.recv(5 << 10)


def small_queries(name: str, url: str, arguments: argparse.Namespace, pid: int) -> Load:
    sessions = threading.local()

    def ask(sql: str) -> None:
        if not hasattr(sessions, "session"):
            sessions.session = requests.Session()
        sessions.session.post(f"{url}/query", json={"sql": sql}, timeout=120).raise_for_status()

    return load(name, ask, "shop.sales", arguments.clients, arguments.seconds, pid)


def latency(url: str, statements: list[str], pid: int) -> dict[str, float]:
    """One client: milliseconds, the median and the least, and of processor time."""
    session, took, spent = requests.Session(), [], processor_s(pid)
    for sql in statements:
        begun = time.monotonic()
        session.post(f"{url}/query", json={"sql": sql}, timeout=60).raise_for_status()
        took.append(time.monotonic() - begun)
    spent = (processor_s(pid) - spent) / len(statements)
    return {
        "p50_ms": round(statistics.median(took) * 1000, 1),
        "least_ms": round(min(took) * 1000, 1),
        "processor_ms": round(spent * 1000, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    arguments, watch = parser.parse_args(), Watch()
    with tempfile.TemporaryDirectory() as name, serving({"LAKE_HOME": f"{name}/lake"}) as (url, pid):
        ingest(url, Path(name), arguments.rows)
        requests.post(f"{url}/ingest/shop.shops", json=[{"id": n} for n in range(200)], timeout=60).raise_for_status()
        scan = latency(url, [f"select item from shop.sales where id = {number}" for number in range(200)], pid)
        small = latency(url, [f"select id from shop.shops where id = {number}" for number in range(200)], pid)
        tiny = latency(url, [f"select {number} as n" for number in range(200)], pid)
        by_format = downloads(url, arguments.rounds, pid)
        alone = small_queries("small queries", url, arguments, pid)
        done = threading.Event()
        threads = [threading.Thread(target=slow_download, args=(url, done)) for _ in range(2)]
        with ExitStack() as stack:
            stack.callback(done.set)
            for thread in threads:
                thread.start()
            beside = small_queries("beside two downloads at 5 kB/s", url, arguments, pid)
    with tempfile.TemporaryDirectory() as name, serving({"LAKE_HOME": f"{name}/lake"}, cache="64MB") as (url, pid):
        cached = latency(url, ["select 1 as n"] * 200, pid)
    report = {
        "machine": hardware(),
        "versions": versions(),
        "code": code_version("bench/neighbours.py"),
        "load": watch.seen(),
        "rows": arguments.rows,
        "clients": arguments.clients,
        "latency": {
            "one row of 3 million": scan,
            "one row of 200": small,
            "without a table": tiny,
            "cached": cached,
        },
        "downloads": by_format,
        "small": [vars(alone), vars(beside)],
        "p95_ratio": round(beside.p95_ms / max(alone.p95_ms, 1), 2),
    }
    RESULTS.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
