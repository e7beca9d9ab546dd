"""Reads of a damaged table after `lake maintain` beside the same table freshly written and after Spark's own procedure; health.

`python -m bench.maintain [--commits N] [--partitions N] [--rounds N] [--mends N] [--no-spark]` keeps bench/results/maintain.json.
Each damage is one that our own writers can cause. Reads are queries of DuckDB over the whole table, turn by turn.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
from tests.support.damaged_tables import BY_DAY, FUTURE_DAYS, append, create, maintainer, many_tables, opened, rows
from tests.support.light_runs import with_settings

from bench.damages import DAMAGES, ROWS, Damage, copied, one_row_commits, tiny_partitions
from bench.measure import Figure, Ratio, beside_own, interleaved, report, versus, waited
from lakehouse.core.files import LOCAL
from lakehouse.core.metadata_file import load_metadata
from lakehouse.core.names import TableName
from lakehouse.core.requests import MaintainRequest
from lakehouse.lake import Lake

LAKE = str(Path(sys.executable).parent / "lake")
#: Limits: reads of a maintained table / a fresh one, seconds of the command, bytes on disk / reachable bytes.
MOST_READ, MOST_COMMAND_S, MOST_BYTES = 1.1, 1.0, 1.2
PROCEDURE = "CALL lake.system.rewrite_data_files(table => '{}', options => map('min-input-files', '2', 'delete-file-threshold', '1'))"


def read(lake: Lake, table: str) -> Callable[[], object]:
    sql = f"select count(*), sum(id), count(distinct day) from {table}"
    return lambda: lake.sql(sql, engine="duckdb").rows()


def damage_ratios(lake: Lake, damage: Damage, count: int, rounds: int, mends: int, spark: bool) -> Iterator[Ratio]:
    """Damage a table, mend copies of it in several ways and by turns, and read all of them by turns."""
    name = damage.__name__
    damaged = f"b.{name}"
    damage(lake, damaged, count)
    ways = {"maintained": compacted(lake), **({"procedure": _by_procedure(lake)} if spark else {})}
    waiting = {
        how: iter([copied(lake, damaged, f"{damaged}_{how}{number}") for number in range(mends)]) for how in ways
    }
    taken = interleaved({how: lambda how=how, mend=mend: mend(next(waiting[how])) for how, mend in ways.items()}, mends)  # type: ignore[misc]
    expired = copied(lake, f"{damaged}_maintained0", f"{damaged}_expired")
    request = MaintainRequest((TableName.parse(expired),), only=("expire",))
    maintainer(lake, FUTURE_DAYS, keep_snapshots=1).run(request)
    made = create(lake, f"{damaged}_fresh", **({"partition_spec": BY_DAY} if damage is tiny_partitions else {}))
    made.append(opened(lake, expired).scan().to_arrow().cast(rows([]).schema))
    settle()
    # In pairs, because a read of a long metadata file slows down the next read.
    times = interleaved({"expired": read(lake, expired), "fresh": read(lake, f"{damaged}_fresh")}, rounds)
    times |= interleaved({how: read(lake, f"{damaged}_{how}0") for how in ways}, rounds)
    fresh, files = times["fresh"], lake.health(damaged)[0].files
    before = interleaved({"damaged": read(lake, damaged)}, min(rounds, 3))["damaged"]
    yield beside_own(f"{name}: read {files} files, damaged", before, "freshly written", fresh)
    yield beside_own(f"{name}: read after maintain, all snapshots kept", times["maintained"], "freshly written", fresh)
    yield beside_own(f"{name}: read after maintain and expiry", times["expired"], "freshly written", fresh, MOST_READ)
    if spark:
        yield versus(f"{name}: read after maintain", times["maintained"], "after Spark's procedure", times["procedure"])
        yield versus(f"{name}: maintain", taken["maintained"], "Spark's rewrite_data_files, warm", taken["procedure"])


def compacted(lake: Lake) -> Callable[[str], object]:
    """`lake maintain --only compact`, which is what the procedures of others do."""
    return lambda table: maintainer(lake).run(MaintainRequest((TableName.parse(table),), only=("compact",)))


def settle() -> None:
    """Wait until Java's compilers, in this process's children, have little to do; a minute at most."""
    children = psutil.Process().children(recursive=True)
    for _ in range(60):
        before = sum(child.cpu_times().user for child in children)
        time.sleep(1)
        if sum(child.cpu_times().user for child in children) - before < 0.05:
            return


def _by_procedure(lake: Lake) -> Callable[[str], object]:
    return lambda table: lake.spark.sql(PROCEDURE.format(table)).collect()


def health_figures(folder: Path, rounds: int) -> Iterator[Figure]:
    with with_settings(folder / "many") as lake:
        many_tables(lake, 1000)
        times = interleaved({"health": lake.health}, rounds)["health"]
        yield Figure("health of 1,000 tables, the first in a process", times.runs[0], "s", MOST_COMMAND_S)
        yield waited("health of 1,000 tables, in a process", times, MOST_COMMAND_S)
    with installed(folder) as environment:
        command = [LAKE, "health", "-o", "json"]
        environment = {**environment, "LAKE_HOME": str(folder / "many")}
        run = lambda: subprocess.run(command, env=environment, check=True, capture_output=True)  # noqa: E731
        run()
        yield waited("lake health -o json of 1,000 tables", interleaved({"c": run}, rounds)["c"], MOST_COMMAND_S)
    with with_settings(folder / "one") as lake:
        create(lake, "b.t")
        append(lake, [1], "b.t")
        pointer = opened(lake, "b.t").metadata_location
        raw = load_metadata(pointer, LOCAL)
        last = raw["snapshots"][-1]
        raw["snapshots"] = [{**last, "snapshot-id": number + 1} for number in range(9_999)] + [last]
        Path(pointer.removeprefix("file://")).write_text(json.dumps(raw))
        times = interleaved({"one": lambda: lake.health("b.t")}, rounds)["one"]
        yield waited("health of one table with 10,000 snapshots", times, MOST_COMMAND_S)


@contextmanager
def installed(folder: Path) -> Iterator[dict[str, str]]:
    """The environment of a command whose modules are compiled, as those of an installed package are."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    yield {**environment, "PYTHONPYCACHEPREFIX": str(folder / "compiled")}


def bytes_on_disk(folder: Path) -> Figure:
    """Bytes on disk after expiry, by those that are reachable."""
    with with_settings(folder / "bytes") as lake:
        one_row_commits(lake, "b.t", 30)
        late = maintainer(lake, FUTURE_DAYS, keep_snapshots=1, delete_after_hours=0)
        late.run(MaintainRequest())
        replace(late, now=lambda: datetime.now(UTC) + timedelta(days=2 * FUTURE_DAYS)).run(MaintainRequest())
        inventory = late.inventories.take((datetime.now(UTC) + timedelta(days=100)).isoformat())
        needed = sum(Path(uri.removeprefix("file://")).stat().st_size for uri in inventory.files)
        stored = sum(file.stat().st_size for file in (lake.folder / "warehouse").rglob("*") if file.is_file())
        return Figure("bytes on disk after expiry, by reachable bytes", stored / needed, "times", MOST_BYTES)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=10_000, help="commits of one row")
    parser.add_argument("--partitions", type=int, default=200, help="partitions; of the other damages, parts of it")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--mends", type=int, default=3, help="copies of each table that each way mends")
    parser.add_argument("--no-spark", action="store_true", help="without Spark's own procedure")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = [*health_figures(Path(folder), min(asked.rounds, 9)), bytes_on_disk(Path(folder))]
        ratios: list[Ratio] = []
        with with_settings(Path(folder) / "lake", spark__master="local[2]") as lake:
            if not asked.no_spark:
                one_row_commits(lake, "b.warm", 3)
                _by_procedure(lake)("b.warm")
            for damage in DAMAGES:
                count = asked.commits if damage is one_row_commits else asked.partitions
                ratios += damage_ratios(lake, damage, count, asked.rounds, asked.mends, not asked.no_spark)
    note = f"{ROWS:,} rows; {asked.commits:,} commits, {asked.partitions} partitions; DuckDB reads; Spark local[2]"
    return report("maintain", ratios, figures=figures, notes=[note])


if __name__ == "__main__":
    sys.exit(main())
