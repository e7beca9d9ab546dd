"""What a process of a test has done so far."""

from __future__ import annotations

import psutil


def processor_seconds(pid: int) -> float:
    """The processor time of a process, which unlike the clock does not go on while a busy machine lets it wait."""
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)
