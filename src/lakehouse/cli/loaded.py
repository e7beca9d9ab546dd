"""A dbt that stays loaded beside the warm Spark: importing it takes longer than building some small models.

`python -m lakehouse.cli.loaded RUN_FOLDER IDLE_MINUTES` imports dbt and forks a child for each `lake dbt`, until the warm Spark
stops, nothing was run for the idle time, or a file that it has imported is another one.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from lakehouse.config.settings import Settings
from lakehouse.core.errors import DbtError
from lakehouse.engines.spark.daemon.client import SOCKET as SPARK_SOCKET
from lakehouse.engines.spark.settings import WARM
from lakehouse.process.daemons import module_command, open_log, sole_daemon
from lakehouse.process.forks import CommandLostError, ForkedCommand, ForkServer, run_forked
from lakehouse.process.sockets import connect_unix, listen_unix
from lakehouse.storage.local import LocalHome

SOCKET = "dbt.sock"
LOG = "dbt_loaded.log"
_CONNECT_TIMEOUT_S = 5.0


def run_loaded(settings: Settings) -> int | None:
    """Run the command of this process where dbt is loaded; return its exit code, or None if there is no such process."""
    socket = LocalHome(settings.home).run / SOCKET
    if not socket.exists():
        return None
    sys.stdout.flush()
    try:
        return run_forked(socket, ForkedCommand.of_this_process(sys.argv[1:]))
    except CommandLostError as exc:
        raise DbtError("The process that ran dbt was ended.", "Run it again. What was published: lake runs") from exc


def keep_loaded(settings: Settings) -> None:
    """Start the process for the commands that follow, if the lake has a warm Spark; nothing waits for it."""
    home = LocalHome(settings.home)
    has_warm_spark = settings.spark.master == WARM and _is_served(home.run / SPARK_SOCKET)
    if sys.platform != "linux" or not has_warm_spark or "dbt.cli.main" not in sys.modules:
        return
    command = module_command(__name__, str(home.run), str(settings.spark.idle_minutes))
    with open_log(home.logs / LOG) as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # a process with threads cannot be forked safely
        )
    process.returncode = 0  # it outlives this process on purpose; Python need not warn that it still runs


def main() -> None:
    """Serve; in a child, run the command."""
    run_folder, idle_s = Path(sys.argv[1]), 60 * float(sys.argv[2])
    with sole_daemon(run_folder / "dbt.lock"):
        command = _serve(run_folder, idle_s)
    if command is None:
        return
    from lakehouse.cli import main as run_lake

    command.enter()
    run_lake(is_forked=True)


def _serve(run_folder: Path, idle_s: float) -> ForkedCommand | None:
    path = list(sys.path)
    _load()
    imported = _imported_files()
    socket = run_folder / SOCKET

    def accepts(command: ForkedCommand) -> bool:
        # Before it there may be the folder of the script, or the working folder.
        return command.path[-len(path) :] == path and _imported_files(imported) == imported

    def may_stay(idle: float) -> bool:
        return idle < idle_s and _is_served(run_folder / SPARK_SOCKET)

    parent = os.getpid()
    listener = listen_unix(socket)
    try:
        return ForkServer(listener, accepts, may_stay).serve()
    finally:
        if os.getpid() == parent:
            socket.unlink(missing_ok=True)


def _is_served(socket: Path) -> bool:
    """Whether somebody listens: a process that was killed leaves its socket behind."""
    try:
        with connect_unix(socket, _CONNECT_TIMEOUT_S):
            return True
    except TimeoutError:
        return True  # too busy to answer
    except OSError:
        return False


def _load() -> None:
    """Import what `lake dbt` uses, and have dbt make once what it makes once per process."""
    import pyspark.java_gateway
    import pyspark.sql  # noqa: F401 - for the children

    import lakehouse.lake.assemble  # noqa: F401 - for the children
    from lakehouse.cli.app import lake
    from lakehouse.orchestrate.dbt import warm_up

    lake.get_command(click.Context(lake), "dbt")
    warm_up()
    gc.collect()
    gc.freeze()  # else a collection in a child copies the pages of all objects


def _imported_files(files: Mapping[str, int] | None = None) -> dict[str, int]:
    """The files of the imported modules, or these files, with the time of their last change; 0 for one that is gone."""
    names = files or {str(getattr(module, "__file__", "") or "") for module in list(sys.modules.values())}
    return {name: os.stat(name).st_mtime_ns if os.path.exists(name) else 0 for name in names if name}


if __name__ == "__main__":
    main()
