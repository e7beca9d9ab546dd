"""`lake up`, `down`, `status`, `logs`: the background Spark of a lake and the servers of the stack."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lakehouse.cli.app import Context, command
from lakehouse.cli.show import note, show_download, show_rows, show_status

if TYPE_CHECKING:
    from lakehouse.config.settings import Settings

_SPARK = "spark"
_COLUMNS = ["service", "state", "url", "pid", "memory_mb"]


def complete_service(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return names of services for shell completion."""
    from lakehouse.stack.services import ALL, NAMES

    return [name for name in (_SPARK, *NAMES, ALL) if name.startswith(incomplete)]


services_argument = click.argument("services", nargs=-1, metavar="[SERVICE]...", shell_complete=complete_service)


@command("lake up\nlake up all\nlake up trino nessie")
@services_argument
def up(context: Context, services: tuple[str, ...]) -> None:
    """Start services and their dependencies, and wait until they answer. Running services are not restarted.

    Without a SERVICE: the services of the profile. For the embedded profile that is the background Spark; the first
    statement then does not wait for its start. `all` means every server that runs without Docker, except superset.
    """
    from lakehouse.config.profiles import profile_of

    settings = context.settings()
    requested = services or profile_of(settings).services or (_SPARK,)
    if servers := [name for name in requested if name != _SPARK]:
        from lakehouse.stack import native

        native.up(settings, servers, status_reporter=show_status, download=show_download, progress=note)
    if _SPARK in requested:
        context.local_lake.sql("select 1", engine="spark")
    status.callback()  # type: ignore[misc]


@command("lake down\nlake down trino\nlake down --wipe")
@services_argument
@click.option("--wipe", is_flag=True, help="Also delete the data of the servers, after a confirmation.")
@click.option("--yes", is_flag=True, help="Skip the confirmation of --wipe.")
def down(context: Context, services: tuple[str, ...], wipe: bool, yes: bool) -> None:
    """Stop services and those that depend on them. Without a SERVICE: all of them, and the background Spark.

    Their data stays for the next `lake up`. --wipe deletes the data of the servers, but not the tables of an embedded
    lake.
    """
    from lakehouse.stack import native

    settings = context.settings()
    servers = [name for name in services if name != _SPARK]
    if wipe and not yes:
        _confirm_wipe(settings, servers)
    stopped = []
    with show_status("Stopping"):
        if not services or _SPARK in services:
            from lakehouse.lake.spark import spark_daemon

            stopped += [_SPARK] if spark_daemon(settings).shut_down() else []
        if not services or servers:
            stopped += native.down(settings, servers)
            deleted = native.wipe(settings, servers) if wipe else []
    note(f"Stopped {', '.join(stopped)}." if stopped else "Nothing was running.")
    for folder in deleted if wipe else ():
        note(f"Deleted {folder}")


def _confirm_wipe(settings: Settings, servers: list[str]) -> None:
    from lakehouse.stack.model import stack_context

    named = ", ".join(servers) or "all servers"
    click.confirm(
        f"Delete the data of {named} in {stack_context(settings).data}? This cannot be undone.", abort=True, err=True
    )


@command("lake status\nlake status -o json")
def status(context: Context) -> None:
    """Show the services of this lake with state, address, process and memory."""
    from lakehouse.lake.spark import spark_daemon
    from lakehouse.stack import native
    from lakehouse.storage.local import LocalHome

    settings = context.settings()
    health = spark_daemon(settings).health()
    url = f"unix:{LocalHome(settings.home).run / 'spark.sock'}"
    rows: list[tuple[object, ...]] = [(_SPARK, "stopped", None, None, None)]
    if health is not None:
        state = "running" if health["answers"] else "not answering"
        rows = [(_SPARK, state, url, health["pid"], _memory_mb(health["pid"]))]
    statuses = native.status(settings)
    rows += [(status.service, status.state, status.url, status.pid, status.memory_mb) for status in statuses]
    show_rows(_COLUMNS, rows, context.output)
    if any(status.service == "storage" for status in statuses):
        from lakehouse.stack.model import stack_context
        from lakehouse.stack.services.storage import description

        note(f"storage is {description(stack_context(settings))}")
    for status in statuses:
        if status.reason:
            note(f"{status.service} is {status.state}: {status.reason} (lake logs {status.service})")


def _memory_mb(pid: int) -> int | None:
    from lakehouse.process.pids import memory_mb

    return memory_mb(pid)


@command("lake logs spark\nlake logs trino\nlake logs -f nessie postgres")
@services_argument
@click.option("-n", "--lines", default=50, metavar="N", help="Number of lines per service (default: 50).")
@click.option("-f", "--follow", is_flag=True, help="Continue with new lines until Ctrl-C.")
def logs(context: Context, services: tuple[str, ...], lines: int, follow: bool) -> None:
    """Show the last lines of the logs of services. Without a SERVICE: of all that have a log."""
    from lakehouse.stack import native
    from lakehouse.storage.local import LocalHome

    settings = context.settings()
    servers = [name for name in services if name != _SPARK]
    files = native.log_files(settings, servers) if servers or not services else {}
    spark_log = LocalHome(settings.home).logs / "spark.log"
    if spark_log.exists() and (not services or _SPARK in services):
        files = {_SPARK: spark_log, **files}
    if not files:
        note("There are no logs: none of these services was ever started.")
    for name, file in files.items():
        _show_end(name if len(files) > 1 else "", file, lines)
    if follow and files:
        _follow(files)


def _show_end(name: str, file: Path, lines: int) -> None:
    if name:
        note(f"==> {name} ({file})")
    with file.open("rb") as content:
        content.seek(max(0, file.stat().st_size - 400 * lines))
        last = content.read().decode(errors="replace").splitlines()[-lines:] if lines else []
    sys.stdout.write("".join(line + "\n" for line in last))
    sys.stdout.flush()


def _follow(files: dict[str, Path]) -> None:
    positions = {name: file.stat().st_size for name, file in files.items()}
    while True:
        for name, file in files.items():
            size = file.stat().st_size
            if size < positions[name]:  # the log was replaced
                positions[name] = 0
            if size > positions[name]:
                with file.open("rb") as content:
                    content.seek(positions[name])
                    text = content.read(size - positions[name]).decode(errors="replace")
                prefix = f"{name} | " if len(files) > 1 else ""
                sys.stdout.write("".join(prefix + line + "\n" for line in text.splitlines()))
                sys.stdout.flush()
                positions[name] = size
        time.sleep(0.2)
