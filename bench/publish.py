"""Publishing twenty tables beside publishing one, apart from their writes: one transaction of the catalog either way.

`python -m bench.publish [postgresql://…]`: on SQLite, and on that PostgreSQL too. Keeps bench/results/publish.json.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench.measure import Ratio, report
from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.catalogs.sql.rows import add
from lakehouse.core.names import TableName
from lakehouse.core.refs import Commit

ROUNDS = 100
MANY = 20
LIMIT = 3.0


def ready(where: str | Path) -> SqlCatalog:
    """A catalog with twenty tables; what publishing moves are pointers, so that they need not point at files."""
    catalog = SqlCatalog(open_database(where), "file:///nowhere")
    with catalog.database.transaction() as db:
        for table in _tables(MANY):
            add(db, catalog.name, table, f"file:///{table}/0.metadata.json", "TABLE")
    return catalog


def published(catalog: SqlCatalog, number: int, tables: int) -> float:
    """Seconds that it takes to publish so many changed tables, tag and log included."""
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


def measured(name: str, where: str | Path) -> list[Ratio]:
    catalog = ready(where)
    one, many = [], []
    for number in range(ROUNDS):
        one.append(published(catalog, number, 1))
        many.append(published(catalog, number, MANY))
    twenty = statistics.median(many), statistics.median(one)
    return [Ratio(f"publish {MANY} tables on {name}", twenty[0], "publish one", twenty[1], LIMIT)]


def _tables(count: int) -> list[TableName]:
    return [TableName("bench", f"t{number}") for number in range(count)]


def main(*addresses: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        ratios = measured("SQLite", Path(folder) / "catalog.db")
    for address in addresses:
        ratios += measured("PostgreSQL", address)
    return report("publish", ratios)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
