"""A process that has imported what commands need, and forks one child for each command.

A child starts with the imports done. What a command changes, it changes in its own memory: the next child begins as the first one did.
The process that forks may have neither threads nor connections, which a child would miss or share. For Linux.
"""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.process.sockets import connect_unix

_PR_SET_PDEATHSIG = 1
_LENGTH_BYTES = 8
_STREAMS = 3
_REQUEST_TIMEOUT_S = 10.0
_ACCEPT_TIMEOUT_S = 60.0
_POLL_S = 1.0
_STARTED, _REFUSED = b"started\n", b"refused\n"


class CommandLostError(Exception):
    """The process that ran a command ended before the command did."""


@dataclass(frozen=True)
class ForkedCommand:
    """What a child takes over from the process that asks for it, beside its standard streams."""

    arguments: list[str]
    environment: dict[str, str]
    folder: str
    path: list[str]
    """From where Python imports."""
    umask: int

    @classmethod
    def of_this_process(cls, arguments: Sequence[str]) -> ForkedCommand:
        umask = os.umask(0)
        os.umask(umask)
        return cls(list(arguments), dict(os.environ), os.getcwd(), list(sys.path), umask)

    def enter(self) -> None:
        """Give this process the surroundings of the one that asked."""
        os.environ.clear()
        os.environ.update(self.environment)
        time.tzset()
        os.chdir(self.folder)
        os.umask(self.umask)
        sys.path[:] = self.path
        sys.argv[1:] = self.arguments


def run_forked(path: Path, command: ForkedCommand) -> int | None:
    """Run a command in a child of the process that listens on a socket; return its exit code, or None if nobody takes it.

    The child uses the standard streams of this process, and gets its Ctrl-C. It ends if this process does.

    Raises:
        CommandLostError: the child or its parent was killed.
    """
    with ExitStack() as stack:
        try:
            connection = stack.enter_context(connect_unix(path, _ACCEPT_TIMEOUT_S))
        except OSError:
            return None
        if not _is_accepted(connection, json.dumps(asdict(command)).encode()):
            return None
        try:
            return _exit_code(connection)
        except (OSError, ValueError) as exc:
            raise CommandLostError from exc


def _is_accepted(connection: socket.socket, body: bytes) -> bool:
    try:
        connection.settimeout(_ACCEPT_TIMEOUT_S)
        socket.send_fds(connection, [len(body).to_bytes(_LENGTH_BYTES, "big")], list(range(_STREAMS)))
        connection.sendall(body)
        return connection.recv(len(_STARTED)) == _STARTED
    except OSError:
        return False


def _exit_code(connection: socket.socket) -> int:
    connection.settimeout(None)
    while True:
        try:
            code = int(connection.recv(64))
        except KeyboardInterrupt:
            connection.sendall(b"i")
            continue
        if code < 0:
            raise ValueError(f"signal {-code}")
        return code


class ForkServer:
    """Forks children for the commands that arrive at a socket."""

    def __init__(
        self, listener: socket.socket, accepts: Callable[[ForkedCommand], bool], may_stay: Callable[[float], bool]
    ) -> None:
        """
        Args:
            accepts: whether a command may run with what is imported; after one that may not, this process ends.
            may_stay: called with the seconds since the last command; when it returns False, this process ends.
        """
        self._listener, self._accepts, self._may_stay = listener, accepts, may_stay
        self._selector = selectors.DefaultSelector()
        self._children: dict[socket.socket, int] = {}
        self._last = time.monotonic()
        self._ends = False
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)

    def serve(self) -> ForkedCommand | None:
        """Return the command in the child that was forked for it, which runs it; None in this process, when it should end."""
        if len(os.listdir("/proc/self/task")) > 1:
            raise RuntimeError("A process with threads cannot be forked safely.")
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._wake_write)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        while self._children or not self._ends:
            ready = [key.fileobj for key, _ in self._selector.select(_POLL_S)]
            if self._wake_read in ready:
                os.read(self._wake_read, 4096)
            for connection in [connection for connection in self._children if connection in ready]:
                self._forward(connection)
            self._reap()
            if self._listener in ready and (command := self._accept()) is not None:
                return command
            if not self._children and not self._may_stay(time.monotonic() - self._last):
                return None
        return None

    def _accept(self) -> ForkedCommand | None:
        connection, _ = self._listener.accept()
        self._last = time.monotonic()
        streams: list[int] = []
        try:
            connection.settimeout(_REQUEST_TIMEOUT_S)
            command, streams = _receive(connection)
            if self._ends or not self._accepts(command):
                self._ends = True
                connection.sendall(_REFUSED)
                connection.close()
                return None
            return self._fork(connection, command, streams)
        except (OSError, ValueError, TypeError):
            connection.close()  # whoever asked has gone
            return None
        finally:
            for stream in streams:
                os.close(stream)

    def _fork(self, connection: socket.socket, command: ForkedCommand, streams: Sequence[int]) -> ForkedCommand | None:
        connection.sendall(_STARTED)  # before the fork: nobody else runs the command from now on
        parent, child = os.getpid(), os.fork()
        if child == 0:
            connection.close()
            self._leave(parent)
            _use_streams(streams, bool(command.environment.get("PYTHONUNBUFFERED")))
            return command
        self._children[connection] = child
        self._selector.register(connection, selectors.EVENT_READ)
        return None

    def _leave(self, parent: int) -> None:
        """In a child: close what belongs to its parent, end when it does, and receive signals as other programs do."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._selector.close()
        for file in (self._listener, *self._children):
            file.close()
        os.close(self._wake_read)
        os.close(self._wake_write)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    def _forward(self, connection: socket.socket) -> None:
        """Interrupt the child, or end it if the process that asked for it has gone."""
        try:
            is_interrupt = bool(connection.recv(64))
        except OSError:
            is_interrupt = False
        os.kill(self._children[connection], signal.SIGINT if is_interrupt else signal.SIGTERM)
        if not is_interrupt:
            self._selector.unregister(connection)

    def _reap(self) -> None:
        for connection, child in list(self._children.items()):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended == 0:
                continue
            del self._children[connection]
            self._last = time.monotonic()
            with suppress(KeyError):
                self._selector.unregister(connection)
            with connection, suppress(OSError):
                connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())


def _receive(connection: socket.socket) -> tuple[ForkedCommand, list[int]]:
    header, streams, _, _ = socket.recv_fds(connection, _LENGTH_BYTES, _STREAMS)
    try:
        missing = int.from_bytes(header, "big")
        pieces: list[bytes] = []
        while missing:
            pieces.append(connection.recv(min(missing, 1 << 16)))
            if not pieces[-1]:
                raise ConnectionResetError
            missing -= len(pieces[-1])
        if len(streams) != _STREAMS:
            raise ConnectionResetError
        return ForkedCommand(**json.loads(b"".join(pieces))), streams
    except BaseException:
        for stream in streams:
            os.close(stream)
        raise


def _use_streams(streams: Sequence[int], unbuffered: bool) -> None:
    """Make these the standard streams; Python's own are new, because they know whether they write to a terminal."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    options: dict[str, Any] = {"encoding": sys.stdout.encoding, "closefd": False}
    sys.stdin = sys.__stdin__ = open(0, **options)  # type: ignore[misc]  # noqa: SIM115 - open as long as the process
    sys.stdout = sys.__stdout__ = open(1, "w", buffering=1 if unbuffered or os.isatty(1) else -1, **options)  # type: ignore[misc]  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", buffering=1, errors="backslashreplace", **options)  # type: ignore[misc]  # noqa: SIM115
