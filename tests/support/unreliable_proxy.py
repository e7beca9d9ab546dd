"""A proxy on loopback that loses requests and answers: what a network does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass
class Unreliable:
    """Passes connections on to a server, and breaks some of them."""

    target: tuple[str, int]
    lose_answers: int = 0
    """So many of the next answers are not passed on; the server has done the work."""
    refuse: int = 0
    """So many of the next connections end before a byte is passed on."""
    cut_after: int = 0
    """Bytes of an answer after which the connection ends; 0: never."""
    requests: list[bytes] = field(default_factory=list)
    """The first bytes of each request."""

    def handle(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            if self.refuse:
                self.refuse -= 1
                return
            with socket.create_connection(self.target, 10) as server:
                server.settimeout(None)
                threading.Thread(target=self._forward, args=(client, server), daemon=True).start()
                self._answer(server, client)
                # A socket that another thread reads stays open when it is closed.
                for connection in (client, server):
                    connection.shutdown(socket.SHUT_RDWR)

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                if data[:5] in (b"GET /", b"POST ", b"DELET"):
                    self.requests.append(data)
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        passed = 0
        while data := server.recv(65536):
            if self.lose_answers:
                self.lose_answers -= 1
                return
            client.sendall(data)
            passed += len(data)
            if self.cut_after and passed > self.cut_after:
                return


@contextmanager
def unreliable(url: str) -> Iterator[tuple[str, Unreliable]]:
    """A proxy in front of a server until the block ends; gives its address."""
    parts = urlsplit(url)
    proxy = Unreliable((str(parts.hostname), int(parts.port or 80)))
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=proxy.handle, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", proxy
        listener.shutdown(socket.SHUT_RDWR)
