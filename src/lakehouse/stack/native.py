"""Starting, stopping and asking the stack on this machine: what `lake up`, `down`, `status` and `logs` call."""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakehouse.config.serialize import dump_settings
from lakehouse.config.settings import Settings
from lakehouse.core.errors import NotSupportedError, PortTakenError, StackError
from lakehouse.process.locks import locked
from lakehouse.process.unix_http import short_path
from lakehouse.stack.context import ALREADY_WATCHED, SOCKET, STATE, protocol_version, run_folder, stack_context
from lakehouse.stack.fetch import Fetching, fetch
from lakehouse.stack.model import Service, StackContext
from lakehouse.stack.process import end_left_over, failed, run_in_foreground
from lakehouse.stack.registry import ALL, NAMES, in_order, service, services
from lakehouse.storage.local import LocalHome

Waiting = Callable[[str], AbstractContextManager[object]]
_SUPERVISOR_TIMEOUT_S = 60.0
_LOOK_EVERY_S = 0.1


@dataclass(frozen=True)
class ServiceStatus:
    """A service that the supervisor watches."""

    service: str
    state: str
    url: str | None
    pid: int | None
    memory_mb: int | None
    restarts: int = 0
    why: str = ""
    log: str = ""


def _in_silence(text: str) -> AbstractContextManager[None]:
    return nullcontext()


def startable(settings: Settings, names: Iterable[str]) -> list[Service]:
    """The services that these names stand for and what they need, in the order of their start."""
    asked_for, elsewhere = list(names), settings.stack.elsewhere()
    if ALL in asked_for:
        asked_for = [each.name for each in services() if each.process is not None and each.name not in elsewhere]
    chosen = in_order(asked_for, elsewhere)
    for each in chosen:
        if each.process is None:
            raise NotSupportedError(
                f"{each.name} is started in a container only.", f"docker compose --profile {each.name} up (see deploy/)"
            )
    return chosen


def up(
    settings: Settings,
    names: Iterable[str],
    *,
    waiting: Waiting = _in_silence,
    fetching: Fetching = _in_silence,
    tell: Callable[[str], object] = lambda text: None,
) -> list[ServiceStatus]:
    """Start services and what they need, and wait until they answer. Those that run already are left as they are."""
    names = [*names, *_end_another_version(settings)]
    chosen = startable(settings, names)
    LocalHome(settings.home).ready().check_room()
    provide(settings, names, fetching=fetching, tell=tell)
    context, wanted = stack_context(settings), [each.name for each in chosen]
    for each in chosen:
        assert each.process is not None
        each.process(context)  # what is wrong with it, such as a missing Java, is told here and not in a log
    with locked(
        context.run / "up.lock"
    ):  # two at once would each find the ports taken that the other's servers listen on
        if _ask(settings, {"do": "status"}) is None:
            end_left_over(context.run / STATE)
        _check_ports(context, chosen)
        _ensure_supervisor(settings)
        _told(_ask(settings, {"do": "start", "settings": dump_settings(settings), "services": wanted}))
    return _await(settings, wanted, waiting, tell)


def provide(
    settings: Settings,
    names: Iterable[str],
    *,
    only: bool = False,
    fetching: Fetching = _in_silence,
    tell: Callable[[str], object] = lambda text: None,
) -> None:
    """Fetch and build whatever services run on that is not there yet; `only`: not what they need."""
    names = list(names)
    chosen = [each for each in startable(settings, names) if not only or each.name in names]
    context = stack_context(settings)
    fetch(settings, [artifact for each in chosen for artifact in each.artifacts(context)], fetching)
    for each in chosen:
        each.provide(context, tell)


def serve(settings: Settings, name: str, *, fetching: Fetching = _in_silence) -> int:
    """Run one service in the foreground until it ends; gives its exit code. What it needs must run already."""
    (chosen,) = [each for each in startable(settings, [name]) if each.name == name]
    context = stack_context(settings)
    fetch(settings, chosen.artifacts(context), fetching)
    chosen.prepare(context)
    assert chosen.process is not None
    return run_in_foreground(chosen.name, chosen.process(context), context)


def down(settings: Settings, names: Iterable[str] = ()) -> list[str]:
    """Stop services and those that need them; all, if none is named. Says which were stopped."""
    asked_for = [service(name).name for name in names if name != ALL]
    before = [each.service for each in status(settings)]
    if before:
        answer = _ask(settings, {"do": "stop", "services": asked_for})
        left = [each["service"] for each in (answer or {}).get("services", [])]
        if not left:
            _wait_for_the_end(settings)
        return [name for name in before if name not in left]
    return []


def wipe(settings: Settings, names: Iterable[str] = ()) -> list[Path]:
    """Stop services and delete their data; says which folders are gone."""
    names = [service(name).name for name in names if name != ALL]
    down(settings, names)
    context = stack_context(settings)
    gone = [context.folder(name) for name in names or NAMES if context.folder(name).is_dir()]
    for folder in gone:
        shutil.rmtree(folder)
    return gone


def status(settings: Settings) -> list[ServiceStatus]:
    """What the supervisor watches; nothing if there is none."""
    answer = _ask(settings, {"do": "status"})
    known = ServiceStatus.__dataclass_fields__
    found = _told(answer) if answer else []
    return [ServiceStatus(**{name: value for name, value in each.items() if name in known}) for each in found]


def log_files(settings: Settings, names: Iterable[str] = ()) -> dict[str, Path]:
    """Where the logs of services are: of those named, else of all that have one."""
    context = stack_context(settings)
    wanted = [service(name).name for name in names] or [*NAMES, "supervisor"]
    return {name: context.log(name) for name in wanted if context.log(name).is_file()}


def _check_ports(context: StackContext, chosen: list[Service]) -> None:
    """Say who cannot listen, before anything is started."""
    own = {each.service for each in status(context.settings)}
    host = context.settings.stack.host
    for each in chosen:
        for port in each.ports if each.name not in own else ():
            number = port.number(context.settings)
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind((host, number))
                except OSError as exc:
                    if isinstance(exc, socket.gaierror) or exc.errno == errno.EADDRNOTAVAIL:
                        raise StackError(
                            f"stack.host = {host!r} is no address of this machine.", "Leave LAKE_STACK__HOST unset."
                        ) from exc
                    raise PortTakenError(
                        f"{each.name} cannot listen on {host}:{number}: another program does.",
                        f"Stop that program, or choose another port: LAKE_STACK__{port.setting.upper()}=… "
                        f"(stack.{port.setting} in lake.toml).",
                    ) from exc


def _end_another_version(settings: Settings) -> list[str]:
    """Stop what a lakehouse of another version started, whose settings are not ours; says what ran."""
    answer = _ask(settings, {"do": "status"})
    if answer is None or answer.get("version") == protocol_version():
        return []
    return down(settings)


def _ensure_supervisor(settings: Settings) -> None:
    if _ask(settings, {"do": "status"}) is not None:
        return
    log = LocalHome(settings.home).logs / "stack" / "supervisor.log"
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "lakehouse.stack.supervisor"],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
            start_new_session=True,  # it outlives the terminal, and a Ctrl-C there is not meant for it
            cwd="/",
            env={**os.environ, "TZ": "UTC"},
        )
    assert process.stdin is not None
    with process.stdin:
        process.stdin.write(json.dumps({"home": str(settings.home)}).encode())
    deadline = time.monotonic() + _SUPERVISOR_TIMEOUT_S
    while _ask(settings, {"do": "status"}) is None:
        if process.poll() not in (None, ALREADY_WATCHED) or time.monotonic() > deadline:
            raise failed("supervisor", "the stack's own process did not start.", log)
        time.sleep(_LOOK_EVERY_S / 5)
    process.returncode = 0  # it is meant to outlive us, so Python need not warn that it still runs


def _await(
    settings: Settings, wanted: list[str], waiting: Waiting, tell: Callable[[str], object]
) -> list[ServiceStatus]:
    """Wait until all run; the first that failed is an error."""
    began, reported, shown = time.monotonic(), set[str](), ""
    with ExitStack() as spinner:
        for text, found in _watch(settings, wanted):
            new = [each for each in found if each.state == "running" and each.service not in reported]
            if text != shown:  # a spinner for each thing that is waited for; what is told comes between them
                spinner.close()
            for each in new:
                reported.add(each.service)
                tell(f"{each.service:<9} {each.url or ''}  ({time.monotonic() - began:.1f} s)")
            if not text:
                return found
            if text != shown:
                spinner.enter_context(waiting(text))
                shown = text
            time.sleep(_LOOK_EVERY_S)
    raise failed("supervisor", "the stack's own process has ended.")


def _watch(settings: Settings, wanted: list[str]) -> Iterator[tuple[str, list[ServiceStatus]]]:
    """What is still being waited for, again and again; nothing in the end."""
    while found := status(settings):
        mine = [each for each in found if each.service in wanted]
        for each in mine:
            if each.state == "failed":
                raise failed(each.service, each.why, each.log)
        missing = [each.service for each in mine if each.state != "running"]
        yield ("Starting " + ", ".join(missing) if missing else ""), mine


def _wait_for_the_end(settings: Settings) -> None:
    """The supervisor ends when nothing is left; a next one may start once it is gone."""
    lock = run_folder(settings.home) / "watching.lock"
    if lock.is_file():
        with locked(lock):
            return


def _ask(settings: Settings, request: dict[str, Any]) -> dict[str, Any] | None:
    """One line to the supervisor, one back; None if there is nobody."""
    path = run_folder(settings.home) / SOCKET
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            with short_path(path) as name:
                connection.connect(name)
            with connection.makefile("rwb") as stream:
                stream.write(json.dumps(request).encode() + b"\n")
                stream.flush()
                line = stream.readline()
        except OSError:
            return None
    return dict(json.loads(line)) if line else None


def _told(answer: dict[str, Any] | None) -> list[dict[str, Any]]:
    if answer is None:
        raise failed("supervisor", "the stack's own process does not answer.")
    if "error" in answer:
        raise StackError(
            f"The stack's own process failed: {answer['error']}",
            "lake logs supervisor; lake down stops it",
        )
    return list(answer["services"])
