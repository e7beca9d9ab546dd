"""Ports for servers that a test starts."""

from __future__ import annotations

import random
import socket

#: None of those that the system gives to outgoing connections: lanes open thousands while a server takes seconds to start.
_CHOICES = range(20_000, 32_000)
#: Hypothesis seeds the usual generator, and two lanes with one seed would choose the same ports.
_RANDOM = random.SystemRandom()


def free_port() -> int:
    """A port on loopback that nobody uses."""
    return free_ports(1)[0]


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Different ports that nobody uses."""
    free: list[int] = []
    for port in _RANDOM.sample(_CHOICES, len(_CHOICES)):
        if len(free) == count:
            return free
        with socket.socket() as probe:
            try:
                probe.bind((host, port))
            except OSError:
                continue
            free.append(port)
    raise RuntimeError("all ports are taken")
