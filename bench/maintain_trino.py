"""`lake maintain` beside Trino's `optimize`, on copies of the same damaged tables in an object store.

`python -m bench.maintain_trino [--commits N] [--partitions N] [--mends N] [--rounds N]` starts the servers of the profile `sql` with
Trino and keeps bench/results/maintain_trino.json. Both mend copies by turns; then Trino and DuckDB read what each has left.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.support.damaged_tables import append, create

from bench.damages import ROWS, Damage, copied, one_row_commits, tiny_partitions
from bench.maintain import compacted
from bench.measure import Ratio, interleaved, report, versus
from bench.trino import TrinoStack, trino_stack
from lakehouse.config.load import load_settings
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble

SCHEMA = "b"
OPTIMIZE = "alter table {} execute optimize"
READ = "select count(*), sum(id), count(distinct day) from {}"


def deletes_by_trino(stack: TrinoStack) -> Damage:
    """Ten files with delete files, which Trino writes for every DELETE."""

    def merge_on_read_deletes(lake: Lake, table: str, count: int) -> None:
        create(lake, table)
        for start in range(0, ROWS, ROWS // 10):
            append(lake, range(start, start + ROWS // 10), table)
        for number in range(max(1, count // 20)):
            stack.ask(f"delete from {table} where id % 1000 = {number}")

    return merge_on_read_deletes


def ratios(lake: Lake, stack: TrinoStack, damage: Damage, count: int, asked: argparse.Namespace) -> Iterator[Ratio]:
    """Mend copies of a damaged table by both, and read them by both."""
    name = damage.__name__
    damaged = f"{SCHEMA}.{name}"
    damage(lake, damaged, count)
    ways: dict[str, Callable[[str], object]] = {
        "lake": compacted(lake),
        "trino": lambda table: stack.ask(OPTIMIZE.format(table)),
    }
    waiting = {
        how: iter([copied(lake, damaged, f"{damaged}_{how}{number}") for number in range(asked.mends)]) for how in ways
    }
    mends = {how: partial(lambda how: ways[how](next(waiting[how])), how) for how in ways}
    taken = interleaved(mends, asked.mends)
    yield versus(f"{name}: maintain", taken["lake"], "Trino's optimize", taken["trino"])
    reads: dict[str, Callable[[str], object]] = {
        "Trino": stack.ask,
        "DuckDB": lambda sql: lake.sql(sql, engine="duckdb").rows(),
    }
    tables = {how: f"{damaged}_{how}0" for how in ways}
    assert len({str(stack.ask(READ.format(table))) for table in (damaged, *tables.values())}) == 1
    for engine, ask in reads.items():
        times = interleaved({how: partial(ask, READ.format(table)) for how, table in tables.items()}, asked.rounds)
        yield versus(
            f"{name}: read by {engine} after maintain", times["lake"], "after Trino's optimize", times["trino"]
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=2000, help="commits of one row")
    parser.add_argument("--partitions", type=int, default=200, help="partitions; of the deletes, a twentieth of it")
    parser.add_argument("--mends", type=int, default=3, help="copies of each table that each mends")
    parser.add_argument("--rounds", type=int, default=11)
    asked = parser.parse_args()
    measured: list[Ratio] = []
    with tempfile.TemporaryDirectory() as folder, trino_stack(Path(folder), SCHEMA) as stack:
        settings = load_settings({}, environ={**os.environ, **stack.environment})
        with assemble(settings) as lake:
            create(lake, f"{SCHEMA}.warm")
            append(lake, [1], f"{SCHEMA}.warm")
            stack.ask(OPTIMIZE.format(f"{SCHEMA}.warm"))  # for Java's compiler
            measured += ratios(lake, stack, one_row_commits, asked.commits, asked)
            measured += ratios(lake, stack, deletes_by_trino(stack), asked.partitions, asked)
            measured += ratios(lake, stack, tiny_partitions, asked.partitions, asked)
    note = (
        f"{ROWS:,} rows in MinIO; {asked.commits:,} commits, {asked.partitions} partitions; Trino with a heap of 3 GB"
    )
    return report("maintain_trino", measured, notes=[note])


if __name__ == "__main__":
    sys.exit(main())
