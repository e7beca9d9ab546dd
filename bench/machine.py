"""The machine of a measurement: hardware, versions, the code's commit, and how busy others kept it meanwhile."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
#: What the parts share and what they measure; a part adds its own module.
CODE = ("src", "bench/measure.py", "bench/machine.py", "bench/processes.py", "bench/lakes.py")
#: Scripts that a part runs.
SCRIPTS = {
    "bench/ingest.py": "bench/loaders.py",
    "bench/pipelines.py": "bench/plain_scripts.py",
    "bench/small_runs.py": "bench/plain_scripts.py",
}
PACKAGES = ("lakehouse", "duckdb", "duckdb-extension-iceberg", "pyiceberg", "pyarrow", "pyspark", "polars")


def hardware() -> dict[str, Any]:
    """Processor, memory and system."""
    return {
        "cpus": os.cpu_count(),
        "processor": _processor(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """The versions of what is compared."""
    installed = {}
    for name in PACKAGES:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            continue
    return installed


def code_version(module: str) -> str:
    """The last commit that changed the measured code or a part's module, and a digest of changes that are not committed.

    Not the newest commit: that of the results themselves would make every result an old one.
    """
    paths = [*CODE, module, SCRIPTS.get(module, module)]
    commit = _git("log", "-1", "--format=%h", "--", *paths)
    changes = _git("diff", "HEAD", "--", *paths)
    return f"{commit}+{hashlib.sha256(changes.encode()).hexdigest()[:8]}" if changes else commit


class Watch:
    """The load of the machine between its creation and a look at it: others share its processors."""

    def __init__(self) -> None:
        self._ticks = _ticks()
        self._load = os.getloadavg()[0]

    def seen(self) -> dict[str, float]:
        """Load averages over a minute, and the share of processor time that the host gave to others (steal)."""
        spent = [after - before for before, after in zip(self._ticks, _ticks(), strict=True)]
        busy = sum(spent) or 1
        steal = spent[7] if len(spent) > 7 else 0
        return {
            "load_before": round(self._load, 2),
            "load_after": round(os.getloadavg()[0], 2),
            "steal_percent": round(100 * steal / busy, 1),
        }


def _ticks() -> list[int]:
    try:
        return [int(ticks) for ticks in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    except OSError:  # no Linux
        return []


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _git(*arguments: str) -> str:
    return _output(["git", "-C", str(ROOT), *arguments])


def _output(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip()
