"""MCP over standard input and output: one message of JSON-RPC per line.

The SDK has such a loop, too, but importing it takes a second, and the program that starts `lake mcp` waits for it
(docs/decisions/0039-mcp-is-a-client.md).
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, BinaryIO

from lakehouse.core.cancel import CancelScope
from lakehouse.mcp.server import ABOUT, INVALID_PARAMS, NAME, VERSION, Caller, McpServer, ProtocolError
from lakehouse.mcp.tools import AnyLake

#: Versions of the protocol that begin with `initialize`, oldest first.
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
#: Versions in which each request names its version itself, and `server/discover` is the first.
STATELESS_VERSIONS = ("2026-07-28",)
_PARSE_ERROR, _INVALID_REQUEST, _INTERNAL_ERROR, _UNSUPPORTED_VERSION, _BUSY = -32700, -32600, -32603, -32022, -32000
_META = "io.modelcontextprotocol/"
_PROGRESS_S = 1.0
_MOST_CALLS = 64
#: How long a statement may take to stop after the client has left.
_LEAVE_TIMEOUT_S = 10.0
_LOG = logging.getLogger(__name__)


def serve_stdio(lake: AnyLake, writes: bool) -> None:
    """Serve a lake to the program that started this process, until it closes the input."""
    with _claimed_streams() as (lines, out):
        StdioServer(McpServer(writes), lake, out).serve(lines)


@contextmanager
def _claimed_streams() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The input and output of this process, which nothing else may use meanwhile: what others print goes to standard error."""
    with os.fdopen(os.dup(0), "rb") as lines, os.fdopen(os.dup(1), "wb") as out, open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(2, 1)
        try:
            yield lines, out
        finally:
            os.dup2(lines.fileno(), 0)
            os.dup2(out.fileno(), 1)


class _Running:
    """A request that is being answered on a thread of its own."""

    def __init__(self, request: Any, token: Any) -> None:
        self.request, self.token, self.scope = request, token, CancelScope()
        self.thread: threading.Thread | None = None
        self.steps = 0


class StdioServer:
    """Reads messages, and writes the answers in the order in which they are ready."""

    def __init__(self, server: McpServer, lake: AnyLake, out: BinaryIO) -> None:
        self._server, self._lake, self._out = server, lake, out
        self._calls: dict[Any, _Running] = {}
        self._lock = threading.RLock()
        self._is_over = threading.Event()

    def serve(self, lines: BinaryIO) -> None:
        """Answer until the input ends; what still runs then is stopped."""
        threading.Thread(target=self._report_time, name="mcp progress", daemon=True).start()
        for line in lines:
            if line.strip():
                self._receive(line)
        self._is_over.set()
        running = list(self._calls.values())
        for call in running:
            call.scope.cancel()
        for call in running:
            if call.thread is not None:
                call.thread.join(_LEAVE_TIMEOUT_S)

    def _receive(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            return self._fail(None, _PARSE_ERROR, "A message is one line of JSON.")
        if isinstance(message, dict) and "method" not in message and ("result" in message or "error" in message):
            return None  # an answer, but this server asks nothing
        request = message.get("id") if isinstance(message, dict) else None
        is_request = isinstance(message, dict) and isinstance(request, str | int | None)
        params = (message.get("params") or {}) if is_request else {}
        if not is_request or not isinstance(message.get("method"), str) or not isinstance(params, dict):
            return self._fail(None, _INVALID_REQUEST, "A message has a method and an object of params.")
        if request is None:
            return self._notified(message["method"], params)
        return self._requested(request, message["method"], params)

    def _notified(self, method: str, params: Mapping[str, Any]) -> None:
        if method == "notifications/cancelled" and (call := self._calls.get(params.get("requestId"))) is not None:
            call.scope.cancel()

    def _requested(self, request: Any, method: str, params: Mapping[str, Any]) -> None:
        meta = params.get("_meta")
        call = _Running(request, meta.get("progressToken") if isinstance(meta, dict) else None)
        if method not in McpServer.BLOCKING:
            return self._answer(call, method, params)
        if len(self._calls) >= _MOST_CALLS:
            return self._fail(request, _BUSY, f"{_MOST_CALLS} calls are running. Wait for one to end.")
        self._calls[request] = call
        call.thread = threading.Thread(target=self._answer, args=(call, method, params), daemon=True)
        call.thread.start()
        return None

    def _answer(self, call: _Running, method: str, params: Mapping[str, Any]) -> None:
        message: dict[str, Any]
        try:
            with call.scope.active():
                message = {"result": self._result(call, method, params)}
        except ProtocolError as exc:
            message = {"error": exc.as_dict()}
        except Exception:  # noqa: BLE001 - a client waits for every answer
            if not call.scope.is_canceled:
                _LOG.exception("%s failed", method)
            message = {"error": {"code": _INTERNAL_ERROR, "message": "Internal error; standard error has more."}}
        with self._lock:  # no progress is sent after the answer
            self._calls.pop(call.request, None)
            if not call.scope.is_canceled:
                self._send({"id": call.request, **message})

    def _result(self, call: _Running, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            return _welcome(params)
        is_stateless = _is_stateless(params)
        if method == "server/discover" and is_stateless:
            result: dict[str, Any] = {
                "supportedVersions": list(STATELESS_VERSIONS),
                "capabilities": McpServer.CAPABILITIES,
                "instructions": ABOUT,
            }
        else:
            caller = Caller(lambda: nullcontext(self._lake), lambda text: self._progress(call, text))
            result = self._server.answer(method, params, caller)
        if not is_stateless:
            return result
        about = {f"{_META}serverInfo": {"name": NAME, "version": VERSION}}
        # Nothing may be cached: tables change at any time.
        cache = {} if method in ("tools/call", "prompts/get") else {"ttlMs": 0, "cacheScope": "private"}
        return {**result, **cache, "resultType": "complete", "_meta": about}

    def _progress(self, call: _Running, text: str) -> None:
        with self._lock:
            if call.token is None or self._calls.get(call.request) is not call:
                return
            call.steps += 1
            params = {"progressToken": call.token, "progress": call.steps, "message": text}
            self._send({"method": "notifications/progress", "params": params})

    def _report_time(self) -> None:
        """Tell a client that waits that the work goes on."""
        while not self._is_over.wait(_PROGRESS_S):
            for call in list(self._calls.values()):
                self._progress(call, "running")

    def _fail(self, request: Any, code: int, message: str) -> None:
        self._send({"id": request, "error": {"code": code, "message": message}})

    def _send(self, message: Mapping[str, Any]) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            try:
                self._out.write(line)
                self._out.flush()
            except BrokenPipeError:
                pass  # the client has left, and the end of the input says so, too


def _welcome(params: Mapping[str, Any]) -> dict[str, Any]:
    asked = params.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
        "capabilities": McpServer.CAPABILITIES,
        "serverInfo": {"name": NAME, "version": VERSION},
        "instructions": ABOUT,
    }


def _is_stateless(params: Mapping[str, Any]) -> bool:
    """Whether a request names its version itself; raises ProtocolError if this server does not speak it."""
    meta = params.get("_meta")
    version = meta.get(f"{_META}protocolVersion") if isinstance(meta, dict) else None
    if version is None:
        return False
    if not isinstance(version, str):
        raise ProtocolError(INVALID_PARAMS, "The version of the protocol is a text.")
    if version not in STATELESS_VERSIONS:
        data = {"supported": [*STATELESS_VERSIONS, *HANDSHAKE_VERSIONS], "requested": version}
        raise ProtocolError(_UNSUPPORTED_VERSION, f"This server does not speak version {version}.", data)
    return True
