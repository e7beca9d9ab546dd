"""Run the tests in concurrent lanes, balanced by the timing file, and report time and memory.

`python -m tools.suite.lanes [PYTEST_ARGS…]`. Files that share servers or a Spark form a batch, which is one pytest process: each
server starts once and ends with its batch, so that memory holds what one batch needs and not what all of them do. A lane takes
the longest batch that is left. A further lane takes only what starts no server. There are more lanes than cores because tests
wait for servers and timers: the report says how busy the cores were. (The groups of pytest-xdist do nothing under pytest 9.2.)
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tools.suite import timings
from tools.suite.timings import FAMILIES, ROOT, Timing
from tools.suite.usage import VARIABLE, Sampler

#: With two and the one for `plain`, that one ended ten minutes before them, and a fifth of two cores was unused.
LANES = 3
FAST_LANES = 3
#: More than lanes: a file's time is that of all its tests, of which `--fast` leaves most out.
FAST_BATCHES = 9
#: Families of the extra lane.
UNSHARED = frozenset({"plain"})
#: How many Sparks a batch of a family has at most, and how many there may be at once.
SPARKS = {"stack": 2, "servers": 1, "warm": 1, "session": 1, "sparks": 2, "spark": 1, "plain": 0}
MOST_SPARKS = 4
#: Families that share nothing are cut into batches of about this length, which fill up the lanes at the end.
DIVIDED = ("sparks", "spark", "plain")
DIVIDED_S = 90.0
#: Without pytest's cache: two processes cannot write its one file at once.
PYTEST = (sys.executable, "-u", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tools.suite.timings")
#: `--fast`: what starts no JVM and no server.
FAST = "not spark and not slow and not servers"
SLOWEST = 15
NO_TESTS = 5
"""Pytest's exit code when the arguments deselect every test of a batch."""
WRONG = ("E   ", "FAILED ", "ERROR ")
"""Prefixes of the lines that report failures."""


@dataclass(frozen=True)
class Batch:
    """Test files that run in one process."""

    family: str
    files: tuple[Timing, ...]

    @property
    def seconds(self) -> float:
        return sum(file.seconds for file in self.files)


def batches(files: Iterable[Timing]) -> list[Batch]:
    """The files in batches, the longest first."""
    made: list[Batch] = []
    for family in FAMILIES:
        members = [file for file in files if file.family == family]
        parts = round(sum(file.seconds for file in members) / DIVIDED_S) if family in DIVIDED else 1
        made += divided(family, members, max(1, parts))
    return sorted((batch for batch in made if batch.files), key=lambda batch: batch.seconds, reverse=True)


def divided(family: str, files: Iterable[Timing], count: int) -> list[Batch]:
    """The files in this number of batches of about the same length, neighbours together.

    Tests of one folder use the same libraries and often the same service, which each process loads and starts anew.
    """
    ordered = sorted(files, key=lambda file: file.path)
    length = sum(file.seconds for file in ordered) / count
    parts: list[list[Timing]] = [[] for _ in range(count)]
    before = 0.0
    for file in ordered:
        middle = before + file.seconds / 2
        parts[min(int(middle / length), count - 1) if length else 0].append(file)
        before += file.seconds
    return [Batch(family, tuple(part)) for part in parts]


@dataclass
class Queue:
    """The batches that wait, and how many Sparks those that run may have."""

    waiting: list[Batch]
    sparks: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def take(self, families: frozenset[str] = frozenset(FAMILIES)) -> Batch | None:
        """The first batch of these families that fits beside what runs; waits for one. None if there is none left."""
        with self._changed:
            while wanted := [batch for batch in self.waiting if batch.family in families]:
                for batch in wanted:
                    if self.sparks + SPARKS[batch.family] <= MOST_SPARKS:
                        self.waiting.remove(batch)
                        self.sparks += SPARKS[batch.family]
                        return batch
                self._changed.wait()
        return None

    def done(self, batch: Batch) -> None:
        with self._changed:
            self.sparks -= SPARKS[batch.family]
            self._changed.notify_all()


@dataclass
class Lane:
    """Takes batch after batch and shows every line of pytest as it comes, with the lane's number before it."""

    number: int
    queue: Queue
    arguments: Sequence[str]
    environment: dict[str, str]
    families: frozenset[str] = frozenset(FAMILIES)
    measured: dict[str, Timing] = field(default_factory=dict)
    codes: set[int] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0
    thread: threading.Thread | None = None

    def start(self) -> Lane:
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()
        return self

    def ended(self) -> Lane:
        assert self.thread
        self.thread.join()
        return self

    def _work(self) -> None:
        begun = time.monotonic()
        while batch := self.queue.take(self.families):
            self._show(f"{batch.family}: {len(batch.files)} files, {batch.seconds:.0f} s the last time\n")
            self._run(batch)
            self.queue.done(batch)
        self.seconds = time.monotonic() - begun

    def _run(self, batch: Batch) -> None:
        with tempfile.NamedTemporaryFile(suffix=".json") as measured:
            process = subprocess.Popen(
                [*PYTEST, *self.arguments, *(file.path for file in batch.files)],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=ROOT,
                env={**self.environment, timings.VARIABLE: measured.name},
            )
            assert process.stdout
            for line in process.stdout:
                self._show(line)
                if line.startswith(WRONG):
                    self.wrong.append(line)
            self.codes.add(process.wait())
            if Path(measured.name).stat().st_size:
                self.measured |= timings.read(Path(measured.name))

    def _show(self, line: str) -> None:
        sys.stdout.write(f"{self.number}| {line}")
        sys.stdout.flush()


def main(arguments: list[str]) -> int:
    fast = "--fast" in arguments
    paths = [argument for argument in arguments if Path(argument.partition("::")[0]).exists()]
    options = [argument for argument in arguments if argument not in (*paths, "--fast")]
    sampler, begun = Sampler(), time.monotonic()
    environment = {**os.environ, VARIABLE: sampler.run}
    # Hundreds of commands import the same modules: each is compiled once.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    files = chosen(paths)
    if fast:
        options = ["-m", FAST, *options]
        queue, takes = Queue(divided("plain", files, FAST_BATCHES)), [frozenset(FAMILIES)] * FAST_LANES
    else:
        queue, takes = Queue(batches(files)), [*[frozenset(FAMILIES)] * LANES, UNSHARED]
    sampler.start()
    lanes = [
        Lane(number, queue, options, environment, families).start() for number, families in enumerate(takes, start=1)
    ]
    for lane in lanes:
        lane.ended()
    sampler.stop()
    report(lanes, sampler, time.monotonic() - begun)
    if not arguments:
        timings.write(timings.MEASURED, {name: timing for lane in lanes for name, timing in lane.measured.items()})
    return max({code for lane in lanes for code in lane.codes} - {NO_TESTS}, default=NO_TESTS)


def chosen(paths: Sequence[str]) -> list[Timing]:
    """The test files, or those that arguments name."""
    known = timings.read(timings.COMMITTED)
    requested = paths or sorted(str(file.relative_to(ROOT)) for file in (ROOT / "tests").rglob("test_*.py"))
    known |= collected(sorted({path.partition("::")[0] for path in requested} - set(known)))
    return [replace(known[path.partition("::")[0]], path=path) for path in requested]


def collected(files: Sequence[str]) -> dict[str, Timing]:
    """The families of files that are not in the timing file: in a wrong one, a file would start servers of its own."""
    if not files:
        return {}
    with tempfile.NamedTemporaryFile(suffix=".json") as measured:
        environment = {**os.environ, timings.VARIABLE: measured.name}
        subprocess.run([*PYTEST, "--collect-only", *files], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
        named = timings.read(Path(measured.name)) if Path(measured.name).stat().st_size else {}
    return {file: named.get(file, Timing(file)) for file in files}


def report(lanes: Sequence[Lane], sampler: Sampler, seconds: float) -> None:
    """Print the failures again at the end, the slowest files, and the use of the machine."""
    sys.stdout.writelines(line for lane in lanes for line in lane.wrong)
    measured = [file for lane in lanes for file in lane.measured.values()]
    for file in sorted(measured, key=lambda file: file.seconds, reverse=True)[:SLOWEST]:
        sys.stdout.write(f"{file.seconds:8.1f} s  {file.path} ({file.family})\n")
    by_lane = ", ".join(f"lane {lane.number} {lane.seconds:.0f} s" for lane in lanes)
    sys.stdout.write(f"make test: {seconds:.0f} s of tests ({by_lane}), {sampler.cpu_s:.0f} s of processor time\n")
    by_tenth = " ".join(str(percent) for percent in sampler.busy_by_parts())
    sys.stdout.write(f"{os.cpu_count()} cores busy, % in each tenth of the time: {by_tenth}\n")
    sys.stdout.write(f"at most, at once: {sampler.peak}\n")


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:  # which every pytest has got, too
        sys.exit(130)
