"""All pipelines on whatever lake the environment names, twice, in a process with a Spark of its own.

As a program: `python -m tests.support.all_pipelines PIPELINE…` prints what came of it as JSON: the states of both runs of each pipeline, and
every row that it made outside of bronze.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lakehouse.config.load import load_settings
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble

ROOT = Path(__file__).parents[2]
ALL = ("market", "taxi", "social", "files")
#: What differs from run to run by its nature.
EXCEPT = {"ingested_at", "file_modified_at", "source_file"}


def made(lake: Lake, pipelines: tuple[str, ...]) -> dict[str, Any]:
    """What running them twice comes to."""
    states, rows = {}, {}
    for name in pipelines:
        states[name] = [lake.run(name).state, lake.run(name).state]
        for table in lake.pipelines()[name].tables:
            if not table.name.startswith("bronze."):
                columns = [column.name for column in lake.describe(table.name).columns if column.name not in EXCEPT]
                answer = lake.sql(f"select {', '.join(columns)} from {table.name}", engine="duckdb").rows()
                rows[table.name] = sorted(str(row) for row in answer)
    return {"states": states, "rows": rows, "branches": lake.branches(), "log": len(lake.refs.log.lines(limit=1000))}


def everything(settings: Mapping[str, str], *pipelines: str) -> dict[str, Any]:
    """The same, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.all_pipelines", *(pipelines or ALL)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **settings},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


if __name__ == "__main__":
    master = os.environ.get("LAKE_SPARK__MASTER", "local[2]")
    with assemble(load_settings({"spark.master": master})) as opened:
        sys.stdout.write(json.dumps(made(opened, tuple(sys.argv[1:]))))
