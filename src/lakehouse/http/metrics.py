"""Metrics for Prometheus: requests by route and status, their duration, queries and jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)

__all__ = ["CONTENT_TYPE_LATEST", "Metrics"]


class Metrics:
    """The metrics of one service."""

    def __init__(self, gauges: Mapping[str, tuple[str, Callable[[], float]]]) -> None:
        """
        Args:
            gauges: by name, what it says and the function that measures it.
        """
        self._registry = CollectorRegistry()
        self._requests = Counter("lake_requests", "Requests", ["method", "route", "status"], registry=self._registry)
        self._seconds = Histogram(
            "lake_request_seconds", "Duration of requests", ["route"], buckets=_BUCKETS, registry=self._registry
        )
        self._rows = Counter("lake_rows_returned", "Rows in results", registry=self._registry)
        for name, (about, measure) in gauges.items():
            Gauge(f"lake_{name}", about, registry=self._registry).set_function(measure)

    def count(self, method: str, route: str, status: int, seconds: float, rows: int) -> None:
        """Count one request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        if rows:
            self._rows.inc(rows)

    def text(self) -> bytes:
        """All metrics in Prometheus' format."""
        return generate_latest(self._registry)
