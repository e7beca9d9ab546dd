"""1 to 16 writers at once: commits per second, conflicts, and that nothing is lost.

`python -m bench.writers [--writers 1 2 4 8 16] [--commits N] [--rounds N]`: every writer is a process that appends small files with
`Lake.ingest`, all to one table or each to its own; beside it, the same rows with PyIceberg alone, which the writer must retry
by itself. Keeps bench/results/writers.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from bench.lakes import catalog_of, open_lake
from bench.measure import ROUNDS, Figure, report
from lakehouse.ingest.statements import COLUMNS_PROPERTY, dump_recorded_columns

ROWS = 100
TARGETS = ("one table", "tables of their own")
KINDS = ("lake ingest", "PyIceberg append")
#: A writer that loses this often in a row is counted as failed.
PATIENCE = 1000


def table_of(target: str, writer: int) -> str:
    return "bench.shared" if target == TARGETS[0] else f"bench.own_{writer}"


def rows_of(writer: int, commit: int) -> dict[str, list[Any]]:
    """The rows of a commit: no two commits have a row in common."""
    first = (writer * 100_000 + commit) * ROWS
    return {"id": list(range(first, first + ROWS)), "word": [f"writer {writer}"] * ROWS}


def write_csv(file: Path, writer: int, commit: int) -> None:
    rows = rows_of(writer, commit)
    lines = [f"{key},{word}" for key, word in zip(rows["id"], rows["word"], strict=True)]
    file.write_text("\n".join(["id,word", *lines]) + "\n")


def create_tables(home: Path, tables: list[str]) -> None:
    """Empty tables with what `lake ingest` records of its files, so that no Spark is started to record it."""
    import pyarrow

    sample = home.parent / "sample.csv"
    write_csv(sample, 0, 0)
    with open_lake(home) as lake:
        planned = lake.ingest(sample, into="bench.sample", dry_run=True).columns
    schema = pyarrow.schema({"id": pyarrow.int64(), "word": pyarrow.string()})
    catalog = catalog_of(home)
    catalog.create_namespace_if_not_exists("bench")
    for table in tables:
        catalog.create_table(table, schema=schema, properties={COLUMNS_PROPERTY: dump_recorded_columns(planned)})


def work(home: Path, kind: str, table: str, writer: int, commits: int) -> None:
    """One writer: gets ready, waits for the start, commits, and says how often it lost."""
    append = by_lake(home, table, writer, commits) if kind == KINDS[0] else by_pyiceberg(home, table, writer)
    print("ready", flush=True)
    sys.stdin.readline()
    conflicts = sum(append(number) for number in range(commits))
    print(json.dumps({"conflicts": conflicts}), flush=True)


def by_lake(home: Path, table: str, writer: int, commits: int) -> Callable[[int], int]:
    from lakehouse.core.errors import LakeError

    folder = home.parent / f"files_{table}_{writer}"
    folder.mkdir(parents=True)
    for number in range(commits):
        write_csv(folder / f"{number}.csv", writer, number)
    lake = open_lake(home)

    def append(number: int) -> int:
        for lost in range(PATIENCE):
            try:
                lake.ingest(folder / f"{number}.csv", into=table)
            except LakeError as exc:
                if exc.code not in ("commit_conflict", "catalog_busy"):
                    raise
            else:
                return lost
        raise SystemExit(f"writer {writer} lost {PATIENCE} times in a row")

    return append


def by_pyiceberg(home: Path, table: str, writer: int) -> Callable[[int], int]:
    import pyarrow
    from pyiceberg.exceptions import CommitFailedException
    from sqlalchemy.exc import OperationalError

    catalog = catalog_of(home)
    schema = pyarrow.schema({"id": pyarrow.int64(), "word": pyarrow.string()})

    def append(number: int) -> int:
        rows = pyarrow.table(rows_of(writer, number), schema=schema)
        for lost in range(PATIENCE):
            try:
                catalog.load_table(table).append(rows)
            except (CommitFailedException, OperationalError):
                continue
            return lost
        raise SystemExit(f"writer {writer} lost {PATIENCE} times in a row")

    return append


def together(home: Path, kind: str, target: str, writers: int, commits: int) -> tuple[float, int]:
    """Start writers, release them at once, and check every row: commits per second, and conflicts."""
    tables = sorted({table_of(target, writer) for writer in range(writers)})
    create_tables(home, tables)
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.writers", "--work", str(home), kind, table_of(target, writer), str(writer),
             "--commits", str(commits)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for writer in range(writers)
    ]  # fmt: skip
    for process in started:
        assert process.stdout and process.stdin
        if process.stdout.readline() != "ready\n":
            raise SystemExit(process.communicate()[1])
    begun = time.perf_counter()
    for process in started:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    conflicts = 0
    for process in started:
        out, err = process.communicate()
        if process.returncode:
            raise SystemExit(f"{kind}, {writers} writers to {target}: {err}")
        conflicts += json.loads(out)["conflicts"]
    took = time.perf_counter() - begun
    check(home, tables, writers, commits)
    return writers * commits / took, conflicts


def check(home: Path, tables: list[str], writers: int, commits: int) -> None:
    """Every row is there once."""
    with open_lake(home) as lake:
        every = " union all ".join(f"select id from {table}" for table in tables)
        ((rows, distinct),) = lake.sql(f"select count(*), count(distinct id) from ({every})", engine="duckdb").rows()
    expected = writers * commits * ROWS
    if (rows, distinct) != (expected, expected):
        raise SystemExit(f"{expected} rows were written, {rows} are there, {distinct} of them different")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writers", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--commits", type=int, default=20, help="commits of each writer")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--work", nargs=4, metavar=("HOME", "KIND", "TABLE", "WRITER"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        home, kind, table, writer = asked.work
        work(Path(home), kind, table, int(writer), asked.commits)
        return 0
    speeds: dict[tuple[str, str, int], list[float]] = {}
    lost: dict[tuple[str, str, int], list[int]] = {}
    for _ in range(asked.rounds):
        for case in [(kind, target, writers) for writers in asked.writers for target in TARGETS for kind in KINDS]:
            with tempfile.TemporaryDirectory(prefix="lake-bench-") as scratch:
                speed, conflicts = together(Path(scratch) / "lake", *case, asked.commits)
            speeds.setdefault(case, []).append(speed)
            lost.setdefault(case, []).append(conflicts)
            print(
                f"{case[0]}, {case[2]} writers to {case[1]}: {speed:.1f} commits/s, {conflicts} conflicts", flush=True
            )
    figures = [
        Figure(
            f"{kind}, {writers} writers to {target}",
            median(runs),
            "commits/s",
            runs=tuple(runs),
            note=f"{median(lost[kind, target, writers]):g} conflicts",
        )
        for (kind, target, writers), runs in speeds.items()
    ]
    return report("writers", figures=figures, notes=["Every row was there once after each round."])


if __name__ == "__main__":
    sys.exit(main())
