"""Writers that change one table for some seconds, each in a process of its own, and report what was acknowledged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from lakehouse.config.load import load_settings
from lakehouse.core.errors import CommitConflictError, LakeError
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble
from tests.conftest import LAKE, cache_only

ROOT = Path(__file__).parents[2]


def start_writer(home: Path, table: str, number: int, way: str, seconds: float) -> subprocess.Popen[str]:
    """Start a writer: of at least two steps, and until the seconds are over.

    Args:
        way: `merge` (Python), `command` (MERGE by `lake sql`), `upsert` or `maintain`.
    """
    arguments = [str(home), table, str(number), way, str(seconds)]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.racing_writers", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


def merge_statement(table: str, number: int, step: int) -> str:
    """Adds 1 to the writer's own counter, and a row for the step: both would show a statement that counted twice or half."""
    source = f"select {number} as writer, 0 as step, 1 as n union all select {number}, {step}, 1"
    return (
        f"merge into {table} t using ({source}) s on t.writer = s.writer and t.step = s.step"
        " when matched then update set n = t.n + s.n when not matched then insert *"
    )


def _by_python(lake: Lake, table: str, number: int, step: int) -> str:
    try:
        lake.sql(merge_statement(table, number, step)).rows()
    except CommitConflictError:
        return "conflict"
    except LakeError as exc:
        return f"{type(exc).__name__}: {exc}"
    return "done"


def _by_command(lake: Lake, table: str, number: int, step: int) -> str:
    process = subprocess.run(
        [LAKE, "sql", merge_statement(table, number, step), "-o", "json"],
        env={**os.environ, "LAKE_HOME": str(lake.folder)},
        capture_output=True,
        text=True,
    )
    if process.returncode == 0:
        return "done"
    return "conflict" if '"commit_conflict"' in process.stderr else process.stderr


def _by_upsert(lake: Lake, table: str, number: int, step: int) -> str:
    file = lake.folder / f"upsert-{number}-{step}.csv"
    file.write_text(f"writer,step,n\n{number},0,{step}\n{number},{step},1\n")
    try:
        lake.ingest(file, into=table, key=("writer", "step"))
    except CommitConflictError:
        return "conflict"
    except LakeError as exc:
        return f"{type(exc).__name__}: {exc}"
    return "done"


def _by_maintenance(lake: Lake, table: str, number: int, step: int) -> str:
    time.sleep(0.5)
    report = lake.maintain(table)
    failed = [f"{action.action}: {action.detail}" for action in report.actions if action.state == "failed"]
    return "; ".join(failed) or "done"


WAYS: dict[str, Callable[[Lake, str, int, int], str]] = {
    "merge": _by_python,
    "command": _by_command,
    "upsert": _by_upsert,
    "maintain": _by_maintenance,
}


def main(home: str, table: str, number: int, way: str, seconds: float) -> None:
    """Write until the time is over, and print a JSON list with the outcome and the seconds of each step."""
    outcomes: list[tuple[int, str, float]] = []
    with assemble(load_settings({"home": home}, environ=cache_only())) as lake:
        end, step = time.monotonic() + seconds, 0
        while step < 2 or time.monotonic() < end:
            step += 1
            begun = time.monotonic()
            outcome = WAYS[way](lake, table, number, step)
            outcomes.append((step, outcome, round(time.monotonic() - begun, 2)))
    sys.stdout.write(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], float(sys.argv[5]))
