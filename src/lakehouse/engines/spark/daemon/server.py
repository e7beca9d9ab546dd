"""The daemon's server: answers statements on a Unix socket until it has been idle for long enough."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.core.dataclass import dataclass
from lakehouse.core.engine import Query
from lakehouse.core.result import Result
from lakehouse.engines.spark.daemon.client import SOCKET
from lakehouse.engines.spark.session import MAX_HEAP_SHARE, LocalSession
from lakehouse.process.daemons import module_command, sole_daemon
from lakehouse.process.sockets import listen_unix

if TYPE_CHECKING:
    import uvicorn

    from lakehouse.engines.spark.daemon.app import Activity

#: Seconds without work after which the class archive is built, if it is missing.
_QUIET_S = 60.0
#: Seconds after the last request when memory is measured.
_SETTLED_S = 5.0
_FINISH_S = 10


@dataclass(frozen=True)
class DaemonOptions:
    """Where the daemon listens and when it stops."""

    home: Path
    """The lake's folder; the daemon stops when it disappears."""
    run_folder: Path
    cache: Path
    idle_minutes: float
    fingerprint: str
    """Identifies the settings and the code that the daemon runs with."""


def serve(answer: Callable[[Query], Result], session: LocalSession, options: DaemonOptions) -> None:
    """Serve until idle; exits with ALREADY_RUNNING if another daemon serves this lake.

    Args:
        answer: runs a parsed statement on Spark.
    """
    with sole_daemon(options.run_folder / "serving.lock"):
        # The JVM starts while the web framework is imported.
        threading.Thread(target=_start, args=(session,)).start()
        _serve(answer, session, options)


def _start(session: LocalSession) -> None:
    try:
        _ = session.spark
    except Exception as exc:  # noqa: BLE001 - the next request raises it; here it only goes to the log
        sys.stderr.write(f"Spark did not start: {exc}\n")


def _serve(answer: Callable[[Query], Result], session: LocalSession, options: DaemonOptions) -> None:
    import uvicorn

    from lakehouse.engines.spark.daemon.app import Activity, create_app

    activity = Activity()
    config = uvicorn.Config(
        create_app(answer, session, options.fingerprint, activity),
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=_FINISH_S,
    )
    server = uvicorn.Server(config)
    path = options.run_folder / SOCKET
    listener = listen_unix(path)
    watch = threading.Thread(target=_watch, args=(server, activity, options, session), daemon=True)
    watch.start()
    try:
        server.run(sockets=[listener])
    finally:
        path.unlink(missing_ok=True)
        session.stop()
        # Threads that wait for Spark must not keep the process alive; its JVM ends with it.
        os._exit(0)


def _watch(server: uvicorn.Server, activity: Activity, options: DaemonOptions, session: LocalSession) -> None:
    """Stop after the idle time; use a quiet minute to build the class archive for the next start."""
    from lakehouse.engines.spark.daemon.app import exit_if_spark_has_ended

    may_archive, measured = True, activity.last
    while True:
        time.sleep(0.5)
        exit_if_spark_has_ended(session)
        idle = activity.idle_seconds
        if idle > options.idle_minutes * 60 or not options.home.is_dir():
            server.should_exit = True
            return
        if idle > _SETTLED_S and activity.last > measured:
            measured = activity.last
            if (share := session.heap_share()) > MAX_HEAP_SHARE:
                sys.stderr.write(
                    f"{share:.0%} of the heap stays in use, so this process ends: the next command starts a new one.\n"
                )
                server.should_exit = True
                return
        if may_archive and idle > _QUIET_S:
            may_archive = False
            subprocess.Popen(
                ["nice", *module_command("lakehouse", "setup")],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # it finishes even if the daemon is stopped meanwhile
                env={**os.environ, "LAKE_CACHE": str(options.cache)},
            )
