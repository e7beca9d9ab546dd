"""How long health takes, and how fast a damaged table is read after `lake maintain`, beside the same table freshly written.

`python -m bench.maintain [COMMITS]` (200 by default) writes bench/results/maintain.json. Each damage is one that our own
writers can cause; times are medians of reads by DuckDB of the whole table, damaged, maintained and fresh by turns.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow
from tests.maintenance.desk import BY_DAY, append, create, delete_by_position, opened, rows
from tests.maintenance.test_health import many_tables
from tests.versioning.shop import pyiceberg, with_settings

from lakehouse.core.files import LOCAL
from lakehouse.core.requests import MaintainRequest
from lakehouse.lake import Lake
from lakehouse.maintenance.walk import load_metadata

RESULTS = Path(__file__).parent / "results" / "maintain.json"
LAKE = str(Path(sys.executable).parent / "lake")
ROWS, READS = 200_000, 15


def one_row_commits(lake: Lake, table: str, count: int) -> None:
    create(lake, table)
    append(lake, range(ROWS), table)
    for number in range(count):
        append(lake, [ROWS + number], table)


def merge_on_read_deletes(lake: Lake, table: str, count: int) -> None:
    create(lake, table)
    for start in range(0, ROWS, ROWS // 10):
        append(lake, range(start, start + ROWS // 10), table)
    for number in range(max(1, count // 20)):
        delete_by_position(lake, list(range(number, ROWS, 1000)), table)


def tiny_partitions(lake: Lake, table: str, count: int) -> None:
    create(lake, table, partition_spec=BY_DAY)
    held = pyiceberg(lake).load_table(table)
    for _ in range(3):
        ids = list(range(ROWS))
        held.append(pyarrow.table({"id": ids, "day": [f"d{id % count}" for id in ids]}, schema=rows([]).schema))


def unsorted_appends(lake: Lake, table: str, count: int) -> None:
    create(lake, table)
    for number in range(max(2, count // 4)):
        append(lake, range(number, ROWS, max(2, count // 4)), table)


DAMAGES: tuple[Callable[[Lake, str, int], None], ...] = (
    one_row_commits,
    merge_on_read_deletes,
    tiny_partitions,
    unsorted_appends,
)


def read_ms(lake: Lake, table: str) -> float:
    begin = time.perf_counter()
    lake.sql(f"select count(*), sum(id), count(distinct day) from {table}", engine="duckdb").rows()
    return (time.perf_counter() - begin) * 1000


def damage_figures(lake: Lake, damage: Callable[[Lake, str, int], None], count: int) -> dict[str, Any]:
    table, fresh = f"b.{damage.__name__}", f"b.{damage.__name__}_fresh"
    damage(lake, table, count)
    damaged = statistics.median(read_ms(lake, table) for _ in range(READS))
    files = lake.health(table)[0].files
    begin = time.perf_counter()
    lake.maintain(table)
    seconds = time.perf_counter() - begin
    content = opened(lake, table).scan().to_arrow()
    made = create(lake, fresh, **({"partition_spec": BY_DAY} if damage is tiny_partitions else {}))
    made.append(content.cast(rows([]).schema))
    maintained, written = [], []
    for _ in range(READS):
        maintained.append(read_ms(lake, table))
        written.append(read_ms(lake, fresh))
    ratio = statistics.median(maintained) / statistics.median(written)
    return {
        "damage": damage.__name__,
        "files": files,
        "files_after": lake.health(table)[0].files,
        "damaged_ms": round(damaged, 1),
        "maintained_ms": round(statistics.median(maintained), 1),
        "fresh_ms": round(statistics.median(written), 1),
        "ratio_to_fresh": round(ratio, 2),
        "maintain_s": round(seconds, 2),
    }


def health_figures(folder: Path) -> dict[str, float]:
    with with_settings(folder / "many") as lake:
        many_tables(lake, 1000)
        begin = time.perf_counter()
        lake.health()
        first = time.perf_counter() - begin
        begin = time.perf_counter()
        lake.health()
        again = time.perf_counter() - begin
    begin = time.perf_counter()
    environment = {**os.environ, "LAKE_HOME": str(folder / "many")}
    subprocess.run([LAKE, "health", "-o", "json"], env=environment, check=True, capture_output=True)
    command = time.perf_counter() - begin
    with with_settings(folder / "one") as lake:
        create(lake, "b.t")
        append(lake, [1], "b.t")
        pointer = opened(lake, "b.t").metadata_location
        raw = load_metadata(pointer, LOCAL)
        last = raw["snapshots"][-1]
        raw["snapshots"] = [{**last, "snapshot-id": number + 1} for number in range(9_999)] + [last]
        Path(pointer.removeprefix("file://")).write_text(json.dumps(raw))
        begin = time.perf_counter()
        lake.health("b.t")
        one = time.perf_counter() - begin
    return {
        "tables_1000_first_s": round(first, 3),
        "tables_1000_again_s": round(again, 3),
        "tables_1000_command_s": round(command, 3),
        "snapshots_10000_s": round(one, 3),
    }


def bytes_ratio(folder: Path) -> float:
    """Bytes on disk after expiry, by those that are reachable."""
    with with_settings(folder / "bytes") as lake:
        one_row_commits(lake, "b.t", 30)
        own = lake._components.maintainer()
        late = replace(
            own,
            settings=replace(own.settings, keep_snapshots=1, delete_after_hours=0),
            now=lambda: datetime.now(UTC) + timedelta(days=60),
        )
        late.run(MaintainRequest())
        replace(late, now=lambda: datetime.now(UTC) + timedelta(days=120)).run(MaintainRequest())
        inventory = late.inventories.take((datetime.now(UTC) + timedelta(days=100)).isoformat())
        needed = sum(Path(uri.removeprefix("file://")).stat().st_size for uri in inventory.files)
        stored = sum(each.stat().st_size for each in (lake.folder / "warehouse").rglob("*") if each.is_file())
        return round(stored / needed, 3)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, Any] = {"commits": count, "rows": ROWS, "health": health_figures(Path(folder))}
        with with_settings(Path(folder) / "lake") as lake:
            found["damages"] = [damage_figures(lake, damage, count) for damage in DAMAGES]
        found["bytes_on_disk_by_reachable"] = bytes_ratio(Path(folder))
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
