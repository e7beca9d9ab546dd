"""Sockets at paths of any length that only their owner opens, and HTTP over them."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lakehouse.process.sockets import bind_tcp, connect_unix, is_loopback, listen_unix
from lakehouse.process.unix_http import ConnectionBroken, Unreachable, request

Serve = Callable[[bytes], Path]


@pytest.fixture
def answering(tmp_path: Path) -> Iterator[Serve]:
    """Starts a server on a Unix socket that gives one answer and hangs up."""
    listeners: list[socket.socket] = []

    def serve(answer: bytes) -> Path:
        path = tmp_path / "lake.sock"
        listener = listen_unix(path)
        listeners.append(listener)

        def work() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

        threading.Thread(target=work, daemon=True).start()
        return path

    yield serve
    for listener in listeners:
        listener.close()


def response(body: bytes, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {size}\r\n\r\n".encode() + body


@pytest.mark.parametrize("depth", [1, 30])
def test_a_socket_works_at_a_path_of_any_length_and_is_its_owners_alone(tmp_path: Path, depth: int) -> None:
    folder = tmp_path.joinpath(*["a long name"] * depth)
    folder.mkdir(parents=True)
    with listen_unix(folder / "lake.sock") as listener:
        assert (folder / "lake.sock").stat().st_mode & 0o777 == 0o600
        with connect_unix(folder / "lake.sock", 5) as client:
            accepted, _ = listener.accept()
            with accepted:
                client.sendall(b"hello")
                assert accepted.recv(10) == b"hello"


def test_a_second_listener_replaces_a_socket_that_was_left_behind(tmp_path: Path) -> None:
    listen_unix(tmp_path / "lake.sock").close()
    with pytest.raises(OSError), connect_unix(tmp_path / "lake.sock"):
        pass
    with listen_unix(tmp_path / "lake.sock"), connect_unix(tmp_path / "lake.sock"):
        pass


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("lake", False),
    ],
)
def test_loopback_addresses_are_recognized(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_a_taken_port_is_an_error() -> None:
    with bind_tcp("127.0.0.1", 0) as bound:
        bound.listen()
        with pytest.raises(OSError):
            bind_tcp("127.0.0.1", bound.getsockname()[1])


def test_a_response_is_complete(answering: Serve) -> None:
    path = answering(response(json.dumps({"a": 1}).encode()))
    assert request(path, "GET", "/x", None, 5) == (200, "text/plain", b'{"a": 1}')


def test_a_response_that_breaks_off_is_an_error(answering: Serve) -> None:
    with pytest.raises(ConnectionBroken):
        request(answering(response(b"half", length=8)), "GET", "/x", None, 5)


def test_a_socket_without_a_server_is_unreachable(tmp_path: Path) -> None:
    with pytest.raises(Unreachable):
        request(tmp_path / "none.sock", "GET", "/x", None, 5)
