"""Limits per key: requests per minute, and requests at the same time."""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from lakehouse.core.errors import TooManyRequestsError

_MAX_KEYS = 10_000
#: Wrong keys per minute and address.
FAILURES_PER_MINUTE = 60


class Limits:
    """Admits requests; each key has a bucket that fills up over a minute."""

    def __init__(self, per_minute: int, concurrent: int) -> None:
        """
        Args:
            per_minute: requests per minute and key; 0: no limit.
            concurrent: requests at the same time and key; 0: no limit.
        """
        self._per_minute, self._concurrent = per_minute, concurrent
        self._lock = threading.Lock()
        self._buckets: dict[str, tuple[float, float]] = {}
        self._running: defaultdict[str, int] = defaultdict(int)

    @contextmanager
    def admitted(self, key: str) -> Iterator[None]:
        """Count a request while the block runs; raises TooManyRequestsError."""
        with self._lock:
            if self._concurrent and self._running[key] >= self._concurrent:
                raise TooManyRequestsError(
                    f"{self._concurrent} requests with this key run already.",
                    "Wait for one to end (serve.concurrency).",
                )
            self._take(key, self._per_minute)
            self._running[key] += 1
        try:
            yield
        finally:
            with self._lock:
                self._running[key] -= 1
                if not self._running[key]:
                    del self._running[key]

    def failed(self, address: str) -> None:
        """Count a request with a wrong key; raises TooManyRequestsError if there were many from this address."""
        with self._lock:
            self._take(f"failures {address}", FAILURES_PER_MINUTE)

    def _take(self, key: str, per_minute: int) -> None:
        if not per_minute:
            return
        now = time.monotonic()
        tokens, at = self._buckets.get(key, (float(per_minute), now))
        tokens = min(per_minute, tokens + (now - at) * per_minute / 60)
        if tokens < 1:
            wait = math.ceil((1 - tokens) * 60 / per_minute)
            raise TooManyRequestsError(
                f"More than {per_minute} requests per minute.", f"Try again in {wait} s (serve.rate).", wait
            )
        if len(self._buckets) >= _MAX_KEYS:
            self._buckets.clear()
        self._buckets[key] = (tokens - 1, now)
