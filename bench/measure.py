"""Interleaved timing: machines are noisy, so what is compared runs turn by turn and only ratios are kept."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Ratio:
    """One thing measured against another in the same run."""

    what: str
    seconds: float
    against: str
    against_seconds: float
    limit: float | None

    @property
    def ratio(self) -> float:
        return self.seconds / self.against_seconds

    @property
    def verdict(self) -> str:
        return "" if self.limit is None else "ok" if self.ratio <= self.limit else "OVER"

    def __str__(self) -> str:
        limit = "" if self.limit is None else f" (at most {self.limit:g}) {self.verdict}"
        return (
            f"{self.what} {self.seconds:.3f} s / {self.against} {self.against_seconds:.3f} s = {self.ratio:.2f}{limit}"
        )


@dataclass(frozen=True)
class Contender:
    """What one contender took: the median of its runs, and the most memory of any."""

    name: str
    seconds: float
    rows: int
    peak_mb: int
    """Of the command, its children and the lake's background Spark."""
    written_mb: float
    """Data files that it wrote."""

    def __str__(self) -> str:
        speed = f"{self.rows / self.seconds:12,.0f} rows/s"
        return (
            f"{self.name:34} {self.seconds:7.1f} s {speed} {self.peak_mb:6} MB peak {self.written_mb:8.1f} MB written"
        )


def written_since(home: Path, moment: float = 0.0) -> float:
    """Megabytes of data files of a lake that are newer than a moment."""
    files = (file.stat() for file in (home / "warehouse").rglob("*.parquet"))
    return round(sum(stat.st_size for stat in files if stat.st_mtime >= moment) / 1e6, 1)


def run(command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
    """Run a command that must succeed, quietly."""
    done = subprocess.run(command, env={**os.environ, **(env or {})}, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stderr}")


def medians(contenders: Mapping[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """The median time of each contender, run in turns."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, work in contenders.items():
            started = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - started)
    return {name: statistics.median(taken) for name, taken in times.items()}


def report(name: str, ratios: Sequence[Ratio], contenders: Sequence[Contender] = ()) -> int:
    """Print the ratios, keep them in bench/results, and say (as an exit code) whether all limits hold."""
    for each in ratios:
        print(each)
    RESULTS.mkdir(exist_ok=True)
    machine = {"cpus": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()}
    kept = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine,
        "contenders": [
            {**asdict(each), "seconds": round(each.seconds, 2), "rows_per_second": round(each.rows / each.seconds)}
            for each in contenders
        ],
        "ratios": [{**asdict(each), "ratio": round(each.ratio, 3), "verdict": each.verdict} for each in ratios],
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(kept, indent=2) + "\n")
    return int(any(each.verdict == "OVER" for each in ratios))
