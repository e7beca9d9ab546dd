"""An export holds some rows in memory, never all of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow
import pyarrow.ipc
import pytest

ROWS, WIDTH = 4_000_000, 100
#: Exports in a process of its own, and prints by how many bytes its memory grew at most.
EXPORT = """
import sys
from pathlib import Path
import pyarrow
from lakehouse.core.tables import Column, Scan
from lakehouse.engines.duckdb import DuckDB
from lakehouse.tables.export import export_scan

def most_memory():
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) * 1024

source, target = map(Path, sys.argv[1:])
database = DuckDB(200_000_000, target.parent / "spill")
database.execute("SET threads = 2")
scan = Scan((Column("n", "bigint"), Column("words", "string")), files=(str(source),))
before = most_memory()
rows = export_scan(database, scan, target)
print(rows, most_memory() - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["arrow", "parquet"])
def test_an_export_needs_less_memory_than_its_rows(tmp_path: Path, ending: str) -> None:
    source, target = tmp_path / "source.parquet", tmp_path / f"out.{ending}"
    words = f"rpad(md5(n::varchar), {WIDTH}, 'x')"
    duckdb.sql(f"COPY (SELECT n, {words} AS words FROM range({ROWS}) numbers(n)) TO '{source}'")
    done = subprocess.run(
        [sys.executable, "-c", EXPORT, str(source), str(target)], capture_output=True, text=True, check=True
    )
    rows, grown = map(int, done.stdout.split())
    assert rows == ROWS
    assert grown < ROWS * WIDTH * 0.8
    if ending == "arrow":
        with pyarrow.memory_map(str(target)) as mapped:
            reader = pyarrow.ipc.open_file(mapped)
            assert sum(reader.get_batch(place).num_rows for place in range(reader.num_record_batches)) == ROWS
