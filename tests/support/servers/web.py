"""A web server for tests that has every fault a download meets: it fails, stalls, cuts off, ignores ranges, redirects."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar


@dataclass
class Web:
    """What is published, how the server misbehaves, and what it was asked."""

    files: dict[str, bytes] = field(default_factory=dict)
    etags: bool = True
    last_modified: str = ""
    ranges: bool = True
    checks_if_range: bool = True
    heads: bool = True
    statuses: list[int] = field(default_factory=list)
    """Answers to the next requests in place of the right ones."""
    cut_after: list[int] = field(default_factory=list)
    """The next bodies end after so many bytes."""
    stall_after: list[int] = field(default_factory=list)
    """The next bodies fall silent after so many bytes."""
    lengths: bool = True
    redirects: dict[str, str] = field(default_factory=dict)
    retry_after: str = ""
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    address: str = ""
    then: dict[str, bytes] = field(default_factory=dict)
    """Files that change once a body was cut off."""

    def of(self, method: str) -> list[dict[str, str]]:
        """The headers of the requests of one kind."""
        return [headers for kind, _, headers in self.asked if kind == method]


@contextmanager
def serving() -> Iterator[Web]:
    """A server on loopback for as long as the block runs."""
    web = Web()
    handler = type("Handler", (_Handler,), {"web": web})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    web.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    web: ClassVar[Web]

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        web, path = self.web, self.path.partition("?")[0]
        web.asked.append((self.command, self.path, dict(self.headers)))
        if path in web.redirects:
            self.send_response(302)
            self.send_header("Location", web.redirects[path])
            self.end_headers()
        elif not body and not web.heads:
            self.send_error(501)
        elif web.statuses:
            self.send_response(web.statuses.pop(0))
            if web.retry_after:
                self.send_header("Retry-After", web.retry_after)
            self.end_headers()
        elif path not in web.files:
            self.send_error(404)
        else:
            self._file(web.files[path], body)

    def _file(self, content: bytes, body: bool) -> None:
        web, etag = self.web, f'"{hash(content)}"'
        start = self._start(content, etag)
        if start is not None and start >= len(content):
            self.send_response(416)
            self.end_headers()
            return
        self.send_response(200 if start is None else 206)
        if start is not None:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if web.etags:
            self.send_header("ETag", etag)
        if web.last_modified:
            self.send_header("Last-Modified", web.last_modified)
        if web.lengths:
            self.send_header("Content-Length", str(len(content) - (start or 0)))
        self.end_headers()
        if body:
            self._send(content[start or 0 :])

    def _start(self, content: bytes, etag: str) -> int | None:
        web, wanted = self.web, self.headers.get("Range", "")
        if not wanted or not web.ranges:
            return None
        known = {etag if web.etags else "", web.last_modified} - {""}
        if web.checks_if_range and self.headers.get("If-Range") not in known:
            return None
        return int(wanted.removeprefix("bytes=").rstrip("-"))

    def _send(self, rest: bytes) -> None:
        web = self.web
        try:
            if web.stall_after:
                self.wfile.write(rest[: web.stall_after.pop(0)])
                self.wfile.flush()
                time.sleep(1.5)
            elif web.cut_after:
                self.wfile.write(rest[: web.cut_after.pop(0)])
                web.files |= web.then
            else:
                self.wfile.write(rest)
        except OSError:
            pass  # whoever asked has gone, which is what they do when a server stalls
        self.close_connection = True
