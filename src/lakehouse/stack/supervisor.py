"""The supervisor process: starts the servers of one lake in order, waits until they answer, restarts those that die.

It is detached from the terminal and listens on a Unix socket that only its owner can open: one JSON line in, one out.
It ends when no service is left. The servers end with it, even if it is killed; a server that survives nevertheless is
in the state file, and the next supervisor ends it first.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from lakehouse.config.load import parse_settings
from lakehouse.process.daemons import sole_daemon
from lakehouse.process.files import write_whole
from lakehouse.process.sockets import listen_unix
from lakehouse.stack.model import LOCK, SOCKET, STATE, protocol_version, run_folder, stack_context
from lakehouse.stack.monitor import ServiceMonitor
from lakehouse.stack.process import terminate_leftovers
from lakehouse.stack.services import find_service, in_order


class Supervisor:
    """The monitors of all services of one lake."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._monitors: dict[str, ServiceMonitor] = {}
        self._lock = threading.RLock()
        self.done = threading.Event()

    def handle(self, request: dict[str, Any]) -> dict[str, Any]:
        """Carry out a request: start or stop services, or only report their status."""
        match request.get("do"):
            case "start":
                self.start(request["settings"], request["services"])
            case "stop":
                self.stop(request["services"] or list(self._monitors))
        return {
            "pid": os.getpid(),
            "version": protocol_version(),
            "services": [monitor.status() for monitor in self._monitors.values()],
        }

    def start(self, settings: str, names: Iterable[str]) -> None:
        """Start services with these settings; those that already run with them are left alone."""
        parsed = parse_settings(settings)
        context = stack_context(parsed)
        with self._lock:
            for service in in_order(names, parsed.stack.external_services(), parsed.profile):
                known = self._monitors.get(service.name)
                if known is not None and known.matches(context):
                    continue
                if known is not None:
                    known.stop()
                dependencies = [self._monitors[name] for name in service.needs if name in self._monitors]
                self._monitors[service.name] = ServiceMonitor(service, context, dependencies, self.write_state)
                self._monitors[service.name].begin()

    def stop(self, names: Iterable[str]) -> None:
        """Stop services, and before them their dependents."""
        with self._lock:
            stopping = {name for name in names if name in self._monitors}
            for name in reversed(self._monitors):
                if stopping & set(find_service(name).needs):
                    stopping.add(name)
            for name in [name for name in reversed(self._monitors) if name in stopping]:
                self._monitors.pop(name).stop()
            self.write_state()
            if not self._monitors:
                self.done.set()

    def stop_all(self) -> None:
        """Stop every service."""
        self.stop(list(self._monitors))

    def write_state(self) -> None:
        """Record what runs, for the next supervisor if this one is killed."""
        records = [monitor.status() for monitor in list(self._monitors.values())]
        write_whole(self._folder / STATE, json.dumps(records))


def main() -> None:
    """Supervise until no service is left or SIGTERM arrives."""
    folder = run_folder(Path(json.loads(sys.stdin.read())["home"]))
    with sole_daemon(folder / LOCK):
        supervisor = Supervisor(folder)
        terminate_leftovers(folder / STATE)
        signal.signal(signal.SIGTERM, lambda *_: supervisor.done.set())
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with listen_unix(folder / SOCKET) as listener:
            threading.Thread(target=_accept, args=(listener, supervisor), daemon=True).start()
            supervisor.done.wait()
            (folder / SOCKET).unlink(missing_ok=True)  # no new requests; open ones are still answered
            supervisor.stop_all()


def _accept(listener: socket.socket, supervisor: Supervisor) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_respond, args=(connection, supervisor)).start()


def _respond(connection: socket.socket, supervisor: Supervisor) -> None:
    with connection, connection.makefile("rwb") as stream:
        try:
            response = supervisor.handle(json.loads(stream.readline()))
        except Exception as exc:  # noqa: BLE001 - the client gets it; a bug in one request must not end the servers
            response = {"error": f"{type(exc).__name__}: {exc}"}
        with suppress(OSError):
            stream.write(json.dumps(response).encode() + b"\n")
            stream.flush()


if __name__ == "__main__":
    main()
