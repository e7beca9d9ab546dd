"""A real HTTP server on loopback that keeps what is posted to it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Receiver:
    """What a server was sent."""

    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def wait(self, count: int, seconds: float = 5.0) -> list[dict[str, Any]]:
        """Wait for so many messages."""
        deadline = time.monotonic() + seconds
        while len(self.bodies) < count and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(self.bodies) == count, self.bodies
        return self.bodies


@contextmanager
def receiver(status: int = 200, delay_s: float = 0.0) -> Iterator[Receiver]:
    """A server that answers with a status, after a delay."""
    received, ended = Receiver(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            ended.wait(delay_s)
            received.headers.append(dict(self.headers))
            received.bodies.append(json.loads(body))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Keep the output of tests clean."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that has given up is expected."""

    with Server(("127.0.0.1", 0), Handler) as server:
        received.url = f"http://127.0.0.1:{server.server_port}/events"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield received
        finally:
            ended.set()
            server.shutdown()
            thread.join()
