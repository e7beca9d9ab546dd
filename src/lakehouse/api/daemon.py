"""The warm Spark's process: reads its settings from its input, serves the application on the lake's socket."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING

from lakehouse.assemble import assemble_rooms
from lakehouse.config.handover import from_text
from lakehouse.config.settings import Settings
from lakehouse.engines.spark.session import LocalSession
from lakehouse.engines.spark.unix_http import short_path
from lakehouse.engines.spark.warm import ALREADY_SERVED, SOCKET, fingerprint
from lakehouse.lake import Lake
from lakehouse.storage.local import LocalHome

if TYPE_CHECKING:
    import uvicorn

    from lakehouse.api.app import Activity

#: Seconds without work after which the class archive is made, if it is missing.
_QUIET_S = 60.0
_FINISH_S = 10


def main() -> None:
    handover = sys.stdin.read()
    settings = from_text(handover)
    home = LocalHome(settings.home)
    with (home.run / "serving.lock").open("w") as lock:
        _be_the_only_one(lock)
        rooms = assemble_rooms(settings)
        # The JVM starts while the web framework is imported.
        starting = threading.Thread(target=_start, args=(rooms.session,))
        starting.start()
        _serve(Lake(rooms), rooms.session, settings, home, fingerprint(handover))


def _be_the_only_one(lock: IO[str]) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(ALREADY_SERVED)


def _start(session: LocalSession) -> None:
    try:
        _ = session.spark
    except Exception as exc:  # noqa: BLE001 - whoever asks for the session next gets it told; here is only the log
        sys.stderr.write(f"Spark did not start: {exc}\n")


def _serve(lake: Lake, session: LocalSession, settings: Settings, home: LocalHome, mark: str) -> None:
    import uvicorn

    from lakehouse.api.app import Activity, create_app

    activity = Activity()
    config = uvicorn.Config(
        create_app(lake, session, mark, activity),
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=_FINISH_S,
    )
    server = uvicorn.Server(config)
    path = home.run / SOCKET
    listener = _listen(path)
    watch = threading.Thread(target=_watch, args=(server, activity, settings, session), daemon=True)
    watch.start()
    try:
        server.run(sockets=[listener])
    finally:
        path.unlink(missing_ok=True)
        session.stop()
        # Threads that wait for Spark must not keep the process; its JVM ends with it.
        os._exit(0)


def _listen(path: Path) -> socket.socket:
    """Only the owner may open the socket, from the moment it exists."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        with short_path(path) as name:
            listener.bind(name)
    finally:
        os.umask(before)
    listener.listen(128)
    return listener


def _watch(server: uvicorn.Server, activity: Activity, settings: Settings, session: LocalSession) -> None:
    """Stop when nobody has asked for anything for long; use a quiet minute to make the next start faster."""
    may_archive = True
    while True:
        time.sleep(0.5)
        if session.has_died():
            # Whoever waits for an answer learns it from the broken connection; the next command starts anew.
            sys.stderr.write("Spark's JVM has ended, and so does this process.\n")
            os._exit(1)
        idle = activity.idle_seconds
        if idle > settings.spark.idle_minutes * 60 or not settings.home.is_dir():
            server.should_exit = True
            return
        if may_archive and idle > _QUIET_S:
            may_archive = False
            subprocess.Popen(
                ["nice", sys.executable, "-m", "lakehouse", "setup"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "LAKE_CACHE": str(settings.cache)},
            )


if __name__ == "__main__":
    main()
