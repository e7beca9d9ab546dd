"""Post events over HTTP from a background thread: a receiver that is down costs a run nothing and is reported once."""

from __future__ import annotations

import atexit
import json
import logging
import threading
import time
from collections.abc import Mapping
from http import HTTPStatus
from queue import Empty, Full, Queue
from typing import Any

from lakehouse.core.errors import BadSettingError
from lakehouse.process.http_client import HttpRequest, NoAnswerError, send

_LOG = logging.getLogger("lakehouse.events")
#: More events than this wait only if the receiver is slow; the newest are then dropped.
_MOST_WAITING = 1_000
#: Failures in a row after which the rest of this process sends nothing more to a receiver.
_MOST_FAILURES = 2


class HttpSink:
    """Posts JSON to one address."""

    def __init__(self, setting: str, url: str, timeout_s: float, token: str = "") -> None:
        """
        Args:
            setting: the name of the setting with the address, for the warning.
            token: sent as a bearer token.
        """
        if not url.startswith(("http://", "https://")):
            raise BadSettingError(f"{setting} is not an address of HTTP.", "Write http://… or https://…")
        self._setting, self._url, self._timeout_s, self._token = setting, url, timeout_s, token
        self._waiting: Queue[bytes] = Queue(_MOST_WAITING)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._failures, self._warned = 0, False

    def send(self, event: Mapping[str, Any]) -> None:
        """Queue an event and return at once."""
        if self._failures >= _MOST_FAILURES:
            return
        try:
            self._waiting.put_nowait(json.dumps(event).encode())
        except Full:
            self._warn("it is too slow, so events were dropped")
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True, name="lake-events")
                self._thread.start()
                # A command ends right after its last event, which must still leave.
                atexit.register(self.flush)

    def flush(self, seconds: float | None = None) -> bool:
        """Wait until everything is delivered or given up, at most so long (default: the timeout)."""
        deadline = time.monotonic() + (self._timeout_s if seconds is None else seconds)
        while self._waiting.unfinished_tasks and time.monotonic() < deadline:
            time.sleep(0.01)
        return not self._waiting.unfinished_tasks

    def _work(self) -> None:
        while True:
            body = self._waiting.get()
            try:
                self._post(body)
                self._failures = 0
            except Exception as exc:  # noqa: BLE001 - whatever happens here must not reach the run
                self._failures += 1
                self._warn(exc.reason if isinstance(exc, NoAnswerError) else type(exc).__name__)
                if self._failures >= _MOST_FAILURES:
                    self._give_up()
            finally:
                self._waiting.task_done()

    def _post(self, body: bytes) -> None:
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        response = send(HttpRequest(self._url, "POST", body, headers, self._timeout_s))
        if response.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise NoAnswerError(f"it answered {response.status}")

    def _give_up(self) -> None:
        while True:
            try:
                self._waiting.get_nowait()
            except Empty:
                return
            self._waiting.task_done()

    def _warn(self, reason: str) -> None:
        # Without the address: a webhook's may be a secret.
        if not self._warned:
            self._warned = True
            _LOG.warning("Events are not delivered to %s: %s. Runs go on without it.", self._setting, reason)
