"""`lake up`, `down`, `status`, `logs`: the background Spark of this lake and the servers of the stack."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lakehouse.cli.app import Context, command
from lakehouse.cli.show import byte_progress, note, show_rows, waiting

if TYPE_CHECKING:
    from lakehouse.config.settings import Settings

_SPARK = "spark"
_COLUMNS = ["service", "state", "url", "pid", "memory_mb"]


def complete_service(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of services, for the shell's completion."""
    from lakehouse.stack.registry import ALL, NAMES

    return [name for name in (_SPARK, *NAMES, ALL) if name.startswith(incomplete)]


services_argument = click.argument("services", nargs=-1, metavar="[SERVICE]...", shell_complete=complete_service)


@command("lake up\nlake up all\nlake up trino nessie")
@services_argument
def up(context: Context, services: tuple[str, ...]) -> None:
    """Start servers and what they need, and wait until they answer. Those that run already are left alone.

    Without a SERVICE: what the profile needs. On the embedded profile that is the background Spark, so that the first
    statement need not wait for it. `all` are all servers that run without Docker.
    """
    from lakehouse.config.profiles import SERVICES

    settings = context.settings()
    wanted = services or SERVICES.get(settings.profile, (_SPARK,))
    if servers := [name for name in wanted if name != _SPARK]:
        from lakehouse.stack import native

        native.up(settings, servers, waiting=waiting, fetching=byte_progress, tell=note)
    if _SPARK in wanted:
        context.lake.sql("select 1", engine="spark")
    status.callback()  # type: ignore[misc]


@command("lake down\nlake down trino\nlake down --wipe")
@services_argument
@click.option("--wipe", is_flag=True, help="Delete what the servers keep, too. Asks first.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def down(context: Context, services: tuple[str, ...], wipe: bool, yes: bool) -> None:
    """Stop servers, and before them those that need them; without a SERVICE everything, the background Spark too.

    Data stays, and the next `lake up` finds it. With --wipe the servers' data is deleted; the tables of an embedded lake
    are not among it.
    """
    from lakehouse.stack import native

    settings = context.settings()
    servers = [name for name in services if name != _SPARK]
    if wipe and not yes:
        _ask_first(settings, servers)
    stopped = []
    with waiting("Stopping"):
        if not services or _SPARK in services:
            from lakehouse.lake.assemble import spark_daemon

            stopped += [_SPARK] if spark_daemon(settings).shut_down() else []
        if not services or servers:
            stopped += native.down(settings, servers)
            gone = native.wipe(settings, servers) if wipe else []
    note(f"Stopped {', '.join(stopped)}." if stopped else "Nothing was running.")
    for folder in gone if wipe else ():
        note(f"Deleted {folder}")


def _ask_first(settings: Settings, servers: list[str]) -> None:
    from lakehouse.stack.context import stack_context

    what = ", ".join(servers) or "all servers"
    click.confirm(
        f"Delete what {what} keep in {stack_context(settings).data}? This cannot be undone.", abort=True, err=True
    )


@command("lake status\nlake status -o json")
def status(context: Context) -> None:
    """Show what runs for this lake: state, address, process and memory."""
    from lakehouse.lake.assemble import spark_daemon
    from lakehouse.stack import native
    from lakehouse.storage.local import LocalHome

    settings = context.settings()
    health = spark_daemon(settings).health()
    url = f"unix:{LocalHome(settings.home).run / 'spark.sock'}"
    rows: list[tuple[object, ...]] = [(_SPARK, "stopped", None, None, None)]
    if health is not None:
        rows = [(_SPARK, "running", url, health["pid"], _memory_mb(health["pid"]))]
    found = native.status(settings)
    rows += [(each.service, each.state, each.url, each.pid, each.memory_mb) for each in found]
    show_rows(_COLUMNS, rows, context.output)
    for each in found:
        if each.why:
            note(f"{each.service} is {each.state}: {each.why} (lake logs {each.service})")


def _memory_mb(pid: int) -> int | None:
    from lakehouse.stack.process import memory_mb

    return memory_mb(pid)


@command("lake logs trino\nlake logs -f nessie postgres")
@services_argument
@click.option("-n", "--lines", default=50, show_default=True, help="How many lines of each.")
@click.option("-f", "--follow", is_flag=True, help="Go on showing what comes.")
def logs(context: Context, services: tuple[str, ...], lines: int, follow: bool) -> None:
    """Show the last lines of the servers' logs: of all that have one, unless some are named."""
    from lakehouse.stack import native

    files = native.log_files(context.settings(), services)
    if not files:
        note("There are no logs: none of these was ever started.")
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
    places = {name: file.stat().st_size for name, file in files.items()}
    while True:
        for name, file in files.items():
            size = file.stat().st_size
            if size < places[name]:  # a new log
                places[name] = 0
            if size > places[name]:
                with file.open("rb") as content:
                    content.seek(places[name])
                    text = content.read(size - places[name]).decode(errors="replace")
                prefix = f"{name} | " if len(files) > 1 else ""
                sys.stdout.write("".join(prefix + line + "\n" for line in text.splitlines()))
                sys.stdout.flush()
                places[name] = size
        time.sleep(0.2)
