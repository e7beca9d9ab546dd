"""CSV into a day-partitioned Iceberg table: ours beside what a user would write with other engines, each on its best bulk path.

`python -m bench.ingest [ROWS] [--rounds N]` (10 million by default) runs each contender in a process of its own, in turns on the same
file, and keeps rows per second and peak memory in bench/results/ingest.json. The floor is the least that any loader does: read,
parse, write Parquet with zstd, from plain and from gzip text. `--memory-limit 4g` asks instead for the largest input that each
path takes in that memory, doubling the rows (bench/results/ingest_memory.json).

dlt and DuckLake live in an environment of their own, `.venv-peers` (`make bench-peers`; BENCH_PEERS names another); without it
they are skipped with a message.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import duckdb

from bench.lakes import snippet
from bench.loaders import FLOOR_GZIP, LOADERS, OURS, PEERS
from bench.machine import ROOT
from bench.measure import ROUNDS, Contender, Figure, Times, middle, report, versus
from bench.processes import JAVA, LAKE, Process, count, stop_spark, watched
from lakehouse.config.load import load_settings

LIMITS = {"PySpark inferSchema": 0.5}
#: Rows of the first try in a memory limit, and how long a try may take.
FIRST_ROWS, TRY_S = 2_000_000, 600.0


def make_csv(file: Path, rows: int) -> None:
    """Orders over thirty days, as a shop would export them."""
    duckdb.sql(
        f"""COPY (SELECT i AS id, TIMESTAMP '2026-01-01' + to_seconds((i * 7919) % 2592000) AS ts, (i * 31) % 100000 AS customer,
        'item ' || (i % 500) AS item, round((i % 9973) / 7.0, 2) AS price, 1 + i % 9 AS quantity,
        ['London', 'Austin', 'New York', 'Zürich'][1 + i % 4] AS city, 'note, with a comma ' || (i % 1000) AS note
        FROM range({rows}) t(i)) TO '{file}' (HEADER, DELIMITER ',')"""
    )


def peers_python() -> str:
    """The Python of the environment of the peers, or nothing."""
    python = Path(os.environ.get("BENCH_PEERS") or ROOT / ".venv-peers") / "bin" / "python"
    return str(python) if python.exists() else ""


@dataclass(frozen=True)
class Load:
    """One contender's load of one file."""

    name: str
    file: Path
    home: Path

    @property
    def env(self) -> dict[str, str]:
        return {"LAKE_HOME": str(self.home), **JAVA}

    def command(self) -> list[str]:
        if self.name == OURS:
            return [LAKE, "ingest", str(self.file), "--into", "bench.t", "--partition-by", "days(ts)"]
        loader = LOADERS[self.name]
        head = snippet(loader.engine, load_settings({"home": self.home})) if loader.engine else ""
        self.home.mkdir(parents=True, exist_ok=True)
        names = f"FILE, HOME = {str(self.file)!r}, {str(self.home)!r}\n"
        script = self.home.with_suffix(".py")
        script.write_text(names + head + loader.code)
        return [peers_python() if self.name in PEERS else sys.executable, str(script)]

    def run(self, limit_mb: int = 0, limit_s: float = 0.0) -> Process:
        done = watched(self.command(), self.env, limit_mb, limit_s)
        stop_spark(self.env)
        return done

    def rows(self) -> int:
        """The rows that arrived; each peer counts its own."""
        said = self.home / "rows.txt"
        return int(said.read_text()) if said.exists() else count(self.home, "bench.t")

    def written_mb(self) -> float:
        return round(sum(file.stat().st_size for file in self.home.rglob("*.parquet")) / 1e6, 1)


def chosen(names: list[str]) -> tuple[list[str], list[str]]:
    """The contenders to run, and notes on those that are left out."""
    every = [OURS, *LOADERS]
    if unknown := set(names) - set(every):
        raise SystemExit(f"Unknown contender: {', '.join(sorted(unknown))}. Choose from: {', '.join(every)}.")
    wanted = [name for name in every if not names or name in names]
    if peers_python():
        return wanted, []
    absent = [name for name in wanted if name in PEERS]
    notes = [f"{', '.join(absent)} left out: no environment of the peers (make bench-peers)."] if absent else []
    return [name for name in wanted if name not in PEERS], notes


def compare(rows: int, rounds: int, names: list[str]) -> int:
    """Every contender in turns on one file."""
    wanted, notes = chosen(names)
    runs: dict[str, list[Contender]] = {name: [] for name in wanted}
    with tempfile.TemporaryDirectory(prefix="lake-bench-") as scratch:
        plain, packed = Path(scratch) / "orders.csv", Path(scratch) / "orders.csv.gz"
        make_csv(plain, rows)
        with plain.open("rb") as source, gzip.open(packed, "wb", compresslevel=6) as target:
            shutil.copyfileobj(source, target, 1 << 20)
        for number in range(rounds):
            for at, name in enumerate(wanted):
                load = Load(name, packed if name == FLOOR_GZIP else plain, Path(scratch) / f"{number}_{at}")
                done = load.run()
                if done.code:
                    raise SystemExit(f"{name} failed:\n{done.said}")
                assert load.rows() == rows, f"{name} loaded {load.rows()} of {rows} rows"
                runs[name].append(Contender(name, done.seconds, rows, done.peak_mb, load.written_mb()))
                print(runs[name][-1], flush=True)
                shutil.rmtree(load.home)
    results = {name: middle(measured) for name, measured in runs.items()}
    if OURS not in results:
        return report("ingest_some", (), list(results.values()), notes=notes)
    ours = Times(results[OURS].runs)
    ratios = [
        versus("lake ingest, cold", ours, name, Times(contender.runs), LIMITS.get(name))
        for name, contender in results.items()
        if name != OURS
    ]
    return report("ingest_some" if names else "ingest", ratios, list(results.values()), notes=notes)


def largest(limit_mb: int, first: int, most: int, names: list[str]) -> int:
    """The largest of doubling inputs that each contender takes within a limit of memory."""
    wanted, notes = chosen(names)
    wanted = [name for name in wanted if name not in (FLOOR_GZIP,)]
    took, why, peaks = dict.fromkeys(wanted, 0), dict.fromkeys(wanted, ""), dict.fromkeys(wanted, 0)
    rows = first
    while rows <= most and not all(why.values()):
        with tempfile.TemporaryDirectory(prefix="lake-bench-") as scratch:
            file = Path(scratch) / "orders.csv"
            make_csv(file, rows)
            for at, name in enumerate(contender for contender in wanted if not why[contender]):
                load = Load(name, file, Path(scratch) / str(at))
                done = load.run(limit_mb, TRY_S)
                why[name] = done.ended_for or ("error" if done.code else "")
                if not done.code:
                    took[name], peaks[name] = rows, done.peak_mb
                print(f"{name:26} {rows:>12,} rows {done.peak_mb:6} MB {why[name] or 'ok'}", flush=True)
                if why[name] == "error":
                    print(done.said[-2000:], flush=True)
                shutil.rmtree(load.home, ignore_errors=True)
        rows *= 2
    figures = [
        Figure(name, took[name], "rows", note=_ended(why[name], peaks[name], took[name], first)) for name in wanted
    ]
    notes += [
        f"Ended above {limit_mb} MB of the process, its children and its Spark, or after {TRY_S:.0f} s; rows doubled."
    ]
    return report("ingest_memory", figures=figures, notes=notes)


def _ended(why: str, peak: int, rows: int, first: int) -> str:
    """Why the next try did not succeed, and the memory of the last that did."""
    words = {"memory": "exceed the memory", "time": "take too long", "error": "fail", "": "were not tried"}
    return f"{peak:,} MB; {2 * rows or first:,} rows {words[why]}"


def megabytes(text: str) -> int:
    """4g or 512m in megabytes."""
    number, unit = text[:-1], text[-1].lower()
    if unit not in ("g", "m") or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no size: write 4g or 512m")
    return int(number) * (1024 if unit == "g" else 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=int, nargs="?", default=10_000_000)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--contender", action="append", default=[], help="only this one; may be repeated")
    parser.add_argument(
        "--memory-limit", type=megabytes, default=0, metavar="SIZE", help="find the largest input in 4g"
    )
    parser.add_argument("--first-rows", type=int, default=FIRST_ROWS, help="rows of the first try in a memory limit")
    asked = parser.parse_args()
    if asked.memory_limit:
        return largest(asked.memory_limit, asked.first_rows, asked.rows, asked.contender)
    return compare(asked.rows, asked.rounds, asked.contender)


if __name__ == "__main__":
    sys.exit(main())
