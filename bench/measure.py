"""Interleaved timing: machines are noisy, so what is compared runs turn by turn, and medians are compared.

A part of the benchmark reports ratios (one thing beside another in the same rounds), contenders (rows per second and peak memory
of each) and figures (a number with a limit of its own). They are kept in bench/results, from which bench/page.py makes a page.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.machine import ROOT, Watch, code_version, hardware, versions

RESULTS = Path(os.environ.get("BENCH_RESULTS") or Path(__file__).parent / "results")
#: Minimum number of rounds for a meaningful median.
ROUNDS = 3
_watch = Watch()


@dataclass(frozen=True)
class Times:
    """The seconds of every round."""

    runs: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.runs)

    def less(self, other: Times) -> Times:
        """The difference of each round to the other's round, which has the same noise."""
        return Times(tuple(own - others for own, others in zip(self.runs, other.runs, strict=True)))


@dataclass(frozen=True)
class Ratio:
    """One thing measured against another in the same run."""

    what: str
    seconds: float
    against: str
    against_seconds: float
    limit: float | None
    runs: tuple[float, ...] = ()
    against_runs: tuple[float, ...] = ()
    own: bool = False
    """Whether both are ours: then a slower time is no loss."""

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
class Figure:
    """A number by itself: seconds that somebody waits, commits per second, the largest input."""

    what: str
    value: float
    unit: str
    limit: float | None = None
    """The most that it may be."""
    runs: tuple[float, ...] = ()
    note: str = ""

    @property
    def verdict(self) -> str:
        return "" if self.limit is None else "ok" if self.value <= self.limit else "OVER"

    def __str__(self) -> str:
        limit = "" if self.limit is None else f" (at most {self.limit:g}) {self.verdict}"
        value = f"{self.value:,.0f}" if self.value >= 1000 else f"{self.value:.4g}"
        return f"{self.what}: {value} {self.unit}{limit}{f' [{self.note}]' if self.note else ''}"


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
    runs: tuple[float, ...] = ()

    def __str__(self) -> str:
        speed = f"{self.rows / self.seconds:12,.0f} rows/s"
        return (
            f"{self.name:34} {self.seconds:7.1f} s {speed} {self.peak_mb:6} MB peak {self.written_mb:8.1f} MB written"
        )


def middle(runs: Sequence[Contender]) -> Contender:
    """The median time of several runs, and the most memory."""
    first = runs[0]
    taken = tuple(run.seconds for run in runs)
    peak = max(run.peak_mb for run in runs)
    return Contender(first.name, statistics.median(taken), first.rows, peak, first.written_mb, taken)


def interleaved(
    contenders: Mapping[str, Callable[[], object]],
    rounds: int,
    before: Callable[[], object] | None = None,
) -> dict[str, Times]:
    """The times of each contender, run in turns; every other round backwards, so that none always follows the same contender."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds):
        order = list(contenders.items())
        for name, work in order if number % 2 == 0 else reversed(order):
            if before:
                before()
            started = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - started)
    return {name: Times(tuple(taken)) for name, taken in times.items()}


def versus(what: str, times: Times, against: str, other: Times, limit: float | None = None) -> Ratio:
    """The ratio of two medians, ours and somebody else's, with the rounds of both."""
    return Ratio(what, times.median, against, other.median, limit, times.runs, other.runs)


def beside_own(what: str, times: Times, against: str, other: Times, limit: float | None = None) -> Ratio:
    """The ratio of two medians of ours."""
    return replace(versus(what, times, against, other, limit), own=True)


def waited(what: str, times: Times, limit: float | None = None, note: str = "") -> Figure:
    """The seconds that somebody waits."""
    return Figure(what, times.median, "s", limit, times.runs, note)


def report(
    name: str,
    ratios: Sequence[Ratio] = (),
    contenders: Sequence[Contender] = (),
    figures: Sequence[Figure] = (),
    notes: Sequence[str] = (),
) -> int:
    """Print what was measured, keep it in bench/results, and say (as an exit code) whether all limits hold.

    Args:
        name: the name of the file.
        ratios: compared pairs.
        contenders: rows per second and memory.
        figures: single numbers.
        notes: what a reader must know, such as a contender that was left out.
    """
    for result in (*ratios, *figures, *notes):
        print(result, flush=True)
    kept = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command(),
        "code": measured_code(),
        "machine": hardware(),
        "versions": versions(),
        "load": _watch.seen(),
        "peak_mb": peak_mb(),
        "notes": list(notes),
        "contenders": [_contender(contender) for contender in contenders],
        "ratios": [{**_rounded(ratio), "ratio": round(ratio.ratio, 3), "verdict": ratio.verdict} for ratio in ratios],
        "figures": [{**_rounded(figure), "verdict": figure.verdict} for figure in figures],
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    file = RESULTS / f"{name}.json"
    new = file.with_suffix(".new")
    new.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n")
    new.replace(file)
    verdicts = [result.verdict for result in (*ratios, *figures)]
    return int("OVER" in verdicts)


def peak_mb() -> dict[str, int]:
    """The most memory of this process, and of any one of its children so far."""
    kinds = {"self": resource.RUSAGE_SELF, "largest child": resource.RUSAGE_CHILDREN}
    return {name: resource.getrusage(kind).ru_maxrss // 1024 for name, kind in kinds.items()}


def command() -> list[str]:
    """The module that runs and its arguments, which hold the sizes."""
    return [_module().replace("/", ".").removesuffix(".py"), *sys.argv[1:]]


def measured_code() -> str:
    return code_version(_module())


def _module() -> str:
    return str(Path(sys.argv[0]).resolve().relative_to(ROOT))


def _contender(contender: Contender) -> dict[str, Any]:
    return {**_rounded(contender), "rows_per_second": round(contender.rows / contender.seconds)}


def _rounded(result: Ratio | Contender | Figure) -> dict[str, Any]:
    return {key: _short(value) for key, value in asdict(result).items()}


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.4g}") if abs(value) < 1000 else round(value, 1)
    return [_short(item) for item in value] if isinstance(value, tuple) else value
