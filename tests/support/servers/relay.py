"""A relay in front of a server, which can lose a request or its answer and then be deaf for a while."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_CHUNK = 1 << 16
_TIMEOUT_S = 60


@dataclass
class Relay:
    """Passes everything on, until a client has said some words, each in a request of its own on one connection."""

    port: int
    target: int
    words: tuple[bytes, ...] = ()
    passed_on: bool = True
    """Whether the server still gets the request whose answer is lost."""
    deaf: int = 0
    """So many connections are refused after a loss."""
    lost: int = 0
    said: list[bytes] = field(default_factory=list)
    """Everything that clients said, as it came."""

    def lose(self, *words: bytes, passed_on: bool = True, deaf: int = 0) -> None:
        """Lose the request that will have the last of these words in it (nothing is in every one), or only its answer."""
        self.words, self.passed_on, self.deaf = words, passed_on, deaf

    def serve(self, listening: socket.socket) -> None:
        """Take connections until the socket is closed."""
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                if self.lost and self.deaf:
                    self.deaf -= 1
                    client.close()
                else:
                    threading.Thread(target=self._between, args=(client,), daemon=True).start()

    def _between(self, client: socket.socket) -> None:
        said_so_far, losing = 0, False
        with suppress(OSError), client, socket.create_connection(("127.0.0.1", self.target), _TIMEOUT_S) as server:
            while True:
                ready, _, _ = select.select([client, server], [], [])
                heard = ready[0].recv(_CHUNK)
                if not heard or (losing and server in ready):
                    return
                if ready[0] is server:
                    client.sendall(heard)
                    continue
                self.said.append(heard)
                if self.words and self.words[said_so_far] in heard:
                    said_so_far += 1
                if self.words and said_so_far == len(self.words):
                    self.lost, self.words, losing = self.lost + 1, (), True
                    if not self.passed_on:
                        return
                server.sendall(heard)


@contextmanager
def relay(target: int) -> Iterator[Relay]:
    """A relay on loopback in front of a port there, for as long as the block runs."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        relay = Relay(listening.getsockname()[1], target)
        threading.Thread(target=relay.serve, args=(listening,), daemon=True).start()
        yield relay
        listening.shutdown(socket.SHUT_RDWR)  # which ends the accept
