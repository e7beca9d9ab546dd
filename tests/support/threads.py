"""Many at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def at_once(work: Callable[[int], object], many: int) -> list[object]:
    """The answers of many threads that start at the same moment; errors are answers too."""
    barrier = threading.Barrier(many)

    def run(number: int) -> object:
        barrier.wait()
        try:
            return work(number)
        except Exception as exc:  # noqa: BLE001 # the test looks at what came
            return exc

    with ThreadPoolExecutor(many) as pool:
        return list(pool.map(run, range(many)))
