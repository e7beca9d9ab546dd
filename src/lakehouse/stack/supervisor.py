"""The stack's own process: starts servers in order, waits until they answer, starts them again when they die.

One per lake, detached from the terminal, told what to do over a Unix socket that only its owner opens: one JSON line
in, one out. It ends when nothing is left to watch. The servers end with it, even if it is killed; should one be left
over all the same, the next supervisor finds it in the state file and ends it first.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from lakehouse.config.serialize import parse_settings
from lakehouse.process.unix_http import short_path
from lakehouse.stack.context import ALREADY_WATCHED, SOCKET, STATE, protocol_version, run_folder, stack_context
from lakehouse.stack.monitor import ServiceMonitor
from lakehouse.stack.process import end_left_over
from lakehouse.stack.registry import in_order, service


class Supervisor:
    """Watches the services of one lake."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._monitors: dict[str, ServiceMonitor] = {}
        self._changing = threading.RLock()
        self.done = threading.Event()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what a line asks for."""
        match request.get("do"):
            case "start":
                self.start(request["settings"], request["services"])
            case "stop":
                self.stop(request["services"] or list(self._monitors))
        return {
            "pid": os.getpid(),
            "version": protocol_version(),
            "services": [monitor.told() for monitor in self._monitors.values()],
        }

    def start(self, settings: str, names: Iterable[str]) -> None:
        """See to it that services run as these settings say; those that do already are left alone."""
        context = stack_context(parse_settings(settings))
        with self._changing:
            for each in in_order(names, context.settings.stack.elsewhere()):
                known = self._monitors.get(each.name)
                if known is not None and known.runs_as(context):
                    continue
                if known is not None:
                    known.stop()
                needed = [self._monitors[name] for name in each.needs if name in self._monitors]
                self._monitors[each.name] = ServiceMonitor(each, context, needed, self.write_state)
                self._monitors[each.name].begin()

    def stop(self, names: Iterable[str]) -> None:
        """Stop services, and before them those that need them."""
        with self._changing:
            stopping = {name for name in names if name in self._monitors}
            for name in reversed(self._monitors):
                if stopping & set(service(name).needs):
                    stopping.add(name)
            for name in [name for name in reversed(self._monitors) if name in stopping]:
                self._monitors.pop(name).stop()
            self.write_state()
            if not self._monitors:
                self.done.set()

    def stop_all(self) -> None:
        self.stop(list(self._monitors))

    def write_state(self) -> None:
        """What runs, for the supervisor after us should we be killed."""
        endpoints = [monitor.told() for monitor in list(self._monitors.values())]
        new = self._folder / f"{STATE}.{threading.get_ident()}"
        new.write_text(json.dumps(endpoints))
        new.replace(self._folder / STATE)


def main() -> None:
    folder = run_folder(Path(json.loads(sys.stdin.read())["home"]))
    with (folder / "watching.lock").open("w") as lock:
        _be_the_only_one(lock)
        supervisor = Supervisor(folder)
        end_left_over(folder / STATE)
        signal.signal(signal.SIGTERM, lambda *_: supervisor.done.set())
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        path = folder / SOCKET
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            with short_path(path) as name:
                listener.bind(name)
            path.chmod(0o600)
            listener.listen(16)
            threading.Thread(target=_listen, args=(listener, supervisor), daemon=True).start()
            supervisor.done.wait()
            path.unlink(missing_ok=True)  # nobody new; whoever is being answered still is
            supervisor.stop_all()


def _be_the_only_one(lock: IO[str]) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(ALREADY_WATCHED)


def _listen(listener: socket.socket, supervisor: Supervisor) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_speak, args=(connection, supervisor)).start()


def _speak(connection: socket.socket, supervisor: Supervisor) -> None:
    with connection, connection.makefile("rwb") as stream:
        try:
            answer = supervisor.answer(json.loads(stream.readline()))
        except Exception as exc:  # noqa: BLE001 - whoever asked is told; a bug in one request must not end the servers
            answer = {"error": f"{type(exc).__name__}: {exc}"}
        with suppress(OSError):
            stream.write(json.dumps(answer).encode() + b"\n")
            stream.flush()


if __name__ == "__main__":
    main()
