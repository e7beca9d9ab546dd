"""Resources that a test run uses: memory, processor time, Java processes, and Sparks among them."""

from __future__ import annotations

import os
import threading
import uuid
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import mean

import psutil

#: Every process of the run inherits it, also one that detaches from its parent.
VARIABLE = "TEST_RUN"
_INTERVAL_S = 1.0
#: The main class of a Spark driver.
_SPARK = "org.apache.spark.deploy.SparkSubmit"


@dataclass
class Peak:
    """The peaks of each value, not necessarily at the same time."""

    memory: int = 0
    java: int = 0
    sparks: int = 0

    def __str__(self) -> str:
        return f"{self.memory / 1e9:.1f} GB, {self.java} Java processes, {self.sparks} Sparks"


@dataclass
class _Seen:
    """A process of the run."""

    process: psutil.Process
    java: bool = False
    spark: bool = False
    cpu_s: float = 0.0


@dataclass
class Sampler:
    """Looks at all processes of a run once a second. Memory is the sum of resident sets: shared pages count more than once."""

    run: str = field(default_factory=lambda: uuid.uuid4().hex)
    peak: Peak = field(default_factory=Peak)
    busy: list[float] = field(default_factory=list)
    """How busy all cores were in each interval, in percent, whoever used them."""
    _seen: dict[tuple[int, float], _Seen | None] = field(default_factory=dict)
    _ended: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        threading.Thread(target=self._watch, daemon=True).start()

    def stop(self) -> None:
        self._ended.set()

    @property
    def cpu_s(self) -> float:
        """Processor time of all processes, but for what those that ended used in their last second."""
        return sum(usage.cpu_s for usage in self._seen.values() if usage)

    def busy_by_parts(self, parts: int = 10) -> list[int]:
        """How busy the cores were in equal parts of the time."""
        bounds = [len(self.busy) * part // parts for part in range(parts + 1)]
        return [round(mean(self.busy[start:end] or [0.0])) for start, end in pairwise(bounds)]

    def _watch(self) -> None:
        psutil.cpu_percent()  # the first call only begins to count
        while not self._ended.wait(_INTERVAL_S):
            self.busy.append(psutil.cpu_percent())
            self._sample()

    def _sample(self) -> None:
        memory = java = sparks = 0
        for process in psutil.process_iter():
            try:
                seen = self._known(process)
                if seen is None:
                    continue
                used = process.cpu_times()
                seen.cpu_s = used.user + used.system
                memory += process.memory_info().rss
                java, sparks = java + seen.java, sparks + seen.spark
            except (psutil.Error, OSError):  # it has ended, or belongs to another user
                continue
        self.peak = Peak(max(self.peak.memory, memory), max(self.peak.java, java), max(self.peak.sparks, sparks))

    def _known(self, process: psutil.Process) -> _Seen | None:
        key = (process.pid, process.create_time())
        if key not in self._seen or self._changed(self._seen[key], process):
            self._seen[key] = self._first_look(process)
        return self._seen[key]

    @staticmethod
    def _changed(seen: _Seen | None, process: psutil.Process) -> bool:
        """A child runs the program of its parent until it loads its own: Python becomes Java, a worker of Spark Python."""
        return seen is not None and seen.java != (process.name() == "java")

    def _first_look(self, process: psutil.Process) -> _Seen | None:
        if process.pid == os.getpid() or not self._is_ours(process):
            return None
        java = process.name() == "java"
        return _Seen(process, java, java and _SPARK in process.cmdline())

    def _is_ours(self, process: psutil.Process) -> bool:
        """By the variable, or, where a program was given an environment of its own, by its parent."""
        if process.environ().get(VARIABLE) == self.run:
            return True
        parent = process.parent()
        return parent is not None and self._seen.get((parent.pid, parent.create_time())) is not None
