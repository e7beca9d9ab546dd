"""A server on loopback that speaks the protocols of OpenAI (chat completions) and Anthropic (messages), for real clients.

What it answers is scripted: proposals become calls of the tool that the client offers, as a model would make them.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-test-0123456789"
OPENAI, ANTHROPIC = "/v1/chat/completions", "/v1/messages"


@dataclass(frozen=True)
class Says:
    """The model calls the tool with these arguments; a text is sent as it is, even if it is no JSON."""

    arguments: dict[str, Any] | str


@dataclass(frozen=True)
class Chats:
    """The model writes text instead of calling the tool."""

    text: str


@dataclass(frozen=True)
class Fails:
    """The server answers with an error status."""

    status: int


@dataclass(frozen=True)
class Sends:
    """The server answers with status 200 and this body, whatever the protocol says."""

    body: str


class Hangs:
    """The server accepts the request and never answers."""


class NeverEnds:
    """The server begins an answer and goes on writing."""


Reply = Says | Chats | Fails | Sends | Hangs | NeverEnds


@dataclass
class ModelServer:
    """What clients sent, and what they get, in order; the last reply is repeated."""

    url: str = ""
    replies: Sequence[Reply] = ()
    requests: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def script(self, *replies: Reply) -> None:
        """Set the replies to the next requests, and forget earlier ones."""
        self.replies = replies
        self.requests.clear()
        self.paths.clear()

    def next_reply(self) -> Reply:
        return self.replies[min(len(self.requests), len(self.replies)) - 1]

    def prompt(self, number: int = 0) -> dict[str, Any]:
        """The JSON object that the user message of a request holds."""
        for message in self.requests[number]["messages"]:
            content = message["content"]
            if message["role"] == "user":
                text = content if isinstance(content, str) else content[0]["text"]
                return dict(json.loads(text))
        raise AssertionError("the request has no user message")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    state: ModelServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has given up is expected."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if problem := _problem(self.path, body, self.headers.get):
            self._send(*problem)
            return
        state = self.server.state
        state.requests.append(body)
        state.paths.append(self.path)
        match state.next_reply():
            case Fails(status):
                self._send(status, _error(self.path, f"status {status} of {KEY}"))
            case Sends(text):
                self._send(200, text)
            case Hangs():
                state.ended.wait(30)
            case NeverEnds():
                self._never_end()
            case reply:
                answer = _openai if self.path == OPENAI else _anthropic
                self._send(200, json.dumps(answer(reply, body)))

    def _send(self, status: int, text: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if status == 429:
            self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(content)

    def _never_end(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        piece = b'{"id": "' + b"word " * 20_000
        with suppress(OSError):
            while not self.server.state.ended.is_set():
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the output of tests clean."""


@contextmanager
def model_server() -> Iterator[ModelServer]:
    """A server for one test or more."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        state = server.state = ModelServer(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield state
        finally:
            state.ended.set()
            server.shutdown()
            thread.join()


def _problem(path: str, body: dict[str, Any], header: Callable[[str], str | None]) -> tuple[int, str] | None:
    """What the real server would refuse: another path, a wrong key, a request without what its protocol requires."""
    if path not in (OPENAI, ANTHROPIC):
        return 404, _error(path, "no such path")
    given = (path == ANTHROPIC and header("x-api-key")) or (header("Authorization") or "").removeprefix("Bearer ")
    if given != KEY:
        return 401, _error(path, f"Incorrect API key provided: {given}")
    required = {"model", "messages", "tools"} | ({"max_tokens"} if path == ANTHROPIC else set())
    if missing := required - set(body):
        return 400, _error(path, f"missing: {sorted(missing)}")
    if path == ANTHROPIC and not header("anthropic-version"):
        return 400, _error(path, "anthropic-version: header is required")
    return None


def _error(path: str, text: str) -> str:
    details = {"type": "invalid_request_error", "message": text}
    return json.dumps(
        {"type": "error", "error": details} if path == ANTHROPIC else {"error": {**details, "code": None}}
    )


def _openai(reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if isinstance(reply, Says):
        arguments = reply.arguments if isinstance(reply.arguments, str) else json.dumps(reply.arguments)
        function = {"name": body["tools"][0]["function"]["name"], "arguments": arguments}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    elif isinstance(reply, Chats):
        message["content"] = reply.text
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_768_651_200,
        "model": body["model"],
        "choices": [
            {"index": 0, "message": message, "finish_reason": "tool_calls" if isinstance(reply, Says) else "stop"}
        ],
        "usage": {"prompt_tokens": 900, "completion_tokens": 60, "total_tokens": 960},
    }


def _anthropic(reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
    if isinstance(reply, Says):
        # The Messages API has arguments as JSON, so broken ones cannot occur.
        given = reply.arguments if isinstance(reply.arguments, dict) else {"reading": reply.arguments}
        content = [{"type": "tool_use", "id": "toolu_1", "name": body["tools"][0]["name"], "input": given}]
    else:
        content = [{"type": "text", "text": reply.text if isinstance(reply, Chats) else ""}]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": "tool_use" if isinstance(reply, Says) else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 900, "output_tokens": 60},
    }
