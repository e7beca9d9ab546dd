"""Send events to where the settings say: files, addresses, a webhook, a tracer."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.events import EventSettings
from lakehouse.events.delivery import HttpSink
from lakehouse.events.lines import RotatingLines
from lakehouse.events.openlineage import Work, run_event

if TYPE_CHECKING:
    from lakehouse.events.traces import Tracer

_LOG = logging.getLogger("lakehouse.events")
_MEGABYTE = 1_000_000


class Events:
    """Sends the events of one lake to where its settings say."""

    def __init__(self, settings: EventSettings, logs: Path) -> None:
        """
        Args:
            logs: the folder of the lake's logs.
        """
        self.namespace = settings.namespace
        most = int(settings.log_megabytes * _MEGABYTE)
        self.lines = RotatingLines(logs / "lake.jsonl", most)
        """The lake's log."""
        self._is_logged = settings.log
        self._lineage_file = RotatingLines(Path(settings.file).expanduser(), most) if settings.file else None
        self._lineage_url = (
            HttpSink("events.url", settings.url, settings.timeout_s, settings.api_key) if settings.url else None
        )
        self._webhook = HttpSink("events.webhook", settings.webhook, settings.timeout_s) if settings.webhook else None
        self._tracer: Tracer | None = None
        if settings.traces:
            from lakehouse.events.traces import Tracer

            self._tracer = Tracer(HttpSink("events.traces", settings.traces, settings.timeout_s))
        self._warned: set[str] = set()

    def lineage(self, kind: str, work: Work) -> None:
        """Send an OpenLineage event: START, COMPLETE, FAIL or ABORT."""
        if self._lineage_file is None and self._lineage_url is None:
            return
        event = run_event(kind, work, self.namespace)
        if self._lineage_file is not None:
            self._write("events.file", self._lineage_file, event)
        if self._lineage_url is not None:
            self._lineage_url.send(event)

    def log(self, event: str, run: str = "", level: str = "info", **facts: Any) -> None:
        """Write a line to the lake's log."""
        if self._is_logged:
            line = {"at": datetime.now(UTC), "level": level, "event": event, "run": run, **facts}
            self._write("events.log", self.lines, line)

    def alert(self, event: str, **facts: Any) -> None:
        """Send a message to the webhook."""
        if self._webhook is not None:
            self._webhook.send({"event": event, "at": datetime.now(UTC).isoformat(), **facts})

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, Any]) -> Iterator[None]:
        """A trace around a block."""
        with self._tracer.span(name, attributes) if self._tracer else nullcontext():
            yield

    def flush(self, seconds: float | None = None) -> bool:
        """Wait until every message was delivered or given up; False if that takes longer than the timeout."""
        spans = self._tracer.sink if self._tracer else None
        sinks = [sink for sink in (self._lineage_url, self._webhook, spans) if sink is not None]
        delivered = [sink.flush(seconds) for sink in sinks]
        return all(delivered)

    def _write(self, setting: str, lines: RotatingLines, event: Mapping[str, Any]) -> None:
        """Write, and report the first failure only: a full disk must not fail a run that needs no more of it."""
        try:
            lines.write(event)
        except OSError as exc:
            if setting not in self._warned:
                self._warned.add(setting)
                _LOG.warning("Events are not written (%s): %s. Runs go on without it.", setting, exc.strerror or exc)
