"""Publishing 1 to 100 tables, apart from their writes: one transaction of the catalog either way.

`python -m bench.publish [postgresql://…] [--rounds N] [--tables 1 5 20 100]`: on SQLite, and on that PostgreSQL too.
Keeps bench/results/publish.json.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from bench.measure import Figure, Ratio, Times, beside_own, report
from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.catalogs.sql.rows import add
from lakehouse.core.names import TableName
from lakehouse.core.refs import Commit

TABLES = (1, 5, 20, 100)
#: The limit for publishing this many tables, as a multiple of publishing one.
LIMITS = {20: 3.0}


def ready(where: str | Path, tables: int) -> SqlCatalog:
    """A catalog with tables; what publishing moves are pointers, so that they need not point at files."""
    catalog = SqlCatalog(open_database(where), "file:///nowhere")
    with catalog.database.transaction() as db:
        for table in _tables(tables):
            add(db, catalog.name, table, f"file:///{table}/0.metadata.json", "TABLE")
    return catalog


def published(catalog: SqlCatalog, number: int, tables: int) -> float:
    """Seconds to publish this number of changed tables, tag and log included."""
    branch = f"run_{tables}_{number}"
    catalog.create_branch(branch)
    here = catalog.on(branch)
    for table in _tables(tables):
        start = here.pointer(table)
        assert start is not None
        here.swap_pointer(table, start, f"file:///{table}/{branch}.metadata.json")
    started = time.perf_counter()
    done = catalog.publish(branch, Commit(run=branch, message="bench"), tag=branch)
    taken = time.perf_counter() - started
    assert done
    catalog.drop_tag(branch)
    return taken


def measured(name: str, where: str | Path, sizes: list[int], rounds: int) -> tuple[list[Ratio], list[Figure]]:
    catalog = ready(where, max(sizes))
    runs: dict[int, list[float]] = {size: [] for size in sizes}
    for number in range(rounds):
        for size in sizes:
            runs[size].append(published(catalog, number, size))
    taken = {size: Times(tuple(seconds)) for size, seconds in runs.items()}
    smallest = taken[sizes[0]]
    return (
        [
            beside_own(
                f"publish {size} tables on {name}", taken[size], f"publish {sizes[0]}", smallest, LIMITS.get(size)
            )
            for size in sizes[1:]
        ],
        [
            Figure(f"publish {size} tables on {name}", 1000 * times.median, "ms", runs=_spread(times))
            for size, times in taken.items()
        ],
    )


def _spread(times: Times) -> tuple[float, ...]:
    return tuple(1000 * seconds for seconds in (min(times.runs), times.median, max(times.runs)))


def _tables(count: int) -> list[TableName]:
    return [TableName("bench", f"t{number}") for number in range(count)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("addresses", nargs="*", help="PostgreSQL databases")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--tables", type=int, nargs="+", default=list(TABLES))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ratios, figures = measured("SQLite", Path(folder) / "catalog.db", asked.tables, asked.rounds)
    for address in asked.addresses:
        more = measured("PostgreSQL", address, asked.tables, asked.rounds)
        ratios, figures = ratios + more[0], figures + more[1]
    notes = [] if asked.addresses else ["No PostgreSQL was named: SQLite alone."]
    return report("publish", ratios, figures=figures, notes=notes)


if __name__ == "__main__":
    sys.exit(main())
