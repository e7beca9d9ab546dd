"""Measure everything: `make bench-all`, or `python -m bench.all [--only start,query] [--quick] [--again]`.

Each part is a process of its own with sizes and a time budget (bench/parts.py). A part whose result was written by the same code with
the same sizes is skipped, so that an interrupted benchmark goes on where it was; `--again` measures it anyway. At the end
docs/benchmarks.md is written from all results. `--quick` tries every part in tiny sizes and leaves results and page in bench/work.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench import page
from bench.machine import ROOT, code_version
from bench.measure import RESULTS
from bench.parts import PARTS, Part

#: What the tries of `--quick` leave.
WORK = ROOT / "bench" / "work"
#: How long a part may take to clean up after it was interrupted.
_CLEAN_UP_S = 120


def is_current(part: Part, quick: bool, results: Path) -> bool:
    """Whether there is a result of this code with these sizes."""
    try:
        kept = json.loads((results / f"{part.result(quick)}.json").read_text())
    except (OSError, ValueError):
        return False
    module = part.module.replace(".", "/") + ".py"
    return bool(kept.get("command") == part.command(quick) and kept.get("code") == code_version(module))


def run_part(part: Part, quick: bool, results: Path) -> str:
    """Run a part; returns how it ended."""
    file = results / f"{part.result(quick)}.json"
    before = file.stat().st_mtime_ns if file.exists() else 0
    started = time.monotonic()
    command = [sys.executable, "-m", *part.command(quick)]
    print(f"==> {part.name}: python {' '.join(command[1:])} (at most {part.minutes} min)", flush=True)
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "BENCH_RESULTS": str(results)})
    try:
        process.wait(part.minutes * 60)
    except subprocess.TimeoutExpired:
        interrupt(process)
        return f"ended after {part.minutes} min without a result"
    except KeyboardInterrupt:
        process.wait(_CLEAN_UP_S)  # Ctrl-C reached it, too
        raise
    if not file.exists() or file.stat().st_mtime_ns == before:
        return f"FAILED (exit code {process.returncode})"
    return f"{'ok' if process.returncode == 0 else 'measured, limits not met'}, {time.monotonic() - started:.0f} s"


def interrupt(process: subprocess.Popen[bytes]) -> None:
    """End a part so that it stops its Spark and removes its folders."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(_CLEAN_UP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def chosen(only: str) -> list[Part]:
    """The parts that are named; `query` stands for query_sf1 and query_sf10."""
    names = [name.strip() for name in only.split(",") if name.strip()]
    for name in names:
        if not any(_is_called(part, name) for part in PARTS):
            raise SystemExit(f"Unknown part: {name!r}. Choose from: {', '.join(part.name for part in PARTS)}.")
    return [part for part in PARTS if not names or any(_is_called(part, name) for name in names)]


def _is_called(part: Part, name: str) -> bool:
    return part.name == name or part.name.startswith(f"{name}_")


def measure(parts: Sequence[Part], quick: bool, again: bool, results: Path) -> dict[str, str]:
    """Run the parts one after the other; returns how each ended."""
    ended: dict[str, str] = {}
    for part in parts:
        if quick and part.quick is None:
            ended[part.name] = "left out of --quick"
        elif not again and is_current(part, quick, results):
            ended[part.name] = "skipped: measured for this code and these sizes"
        else:
            ended[part.name] = run_part(part, quick, results)
        print(f"<== {part.name}: {ended[part.name]}", flush=True)
    return ended


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of parts, separated by commas")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try every part")
    parser.add_argument("--again", action="store_true", help="measure what was measured, too")
    asked = parser.parse_args()
    results, docs = (WORK / "results", WORK / "docs") if asked.quick else (RESULTS, ROOT / "docs")
    results.mkdir(parents=True, exist_ok=True)
    ended = measure(chosen(asked.only), asked.quick, asked.again, results)
    page.write(results, docs)
    print(f"\n{docs / 'benchmarks.md'} is written.")
    for name, how in ended.items():
        print(f"{name:24} {how}")
    return int(any(how.startswith(("FAILED", "ended")) for how in ended.values()))


if __name__ == "__main__":
    sys.exit(main())
