"""The stack on this machine, without containers: what `lake up`, `down`, `status` and `logs` call."""

from __future__ import annotations

import errno
import json
import shutil
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from lakehouse.config.load import dump_settings
from lakehouse.config.settings import Settings
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import NotSupportedError, PortTakenError, StackError
from lakehouse.lake.spark import DownloadReporter, StatusReporter, silent
from lakehouse.process.daemons import DaemonStartError, module_command, start_daemon
from lakehouse.process.files import locked
from lakehouse.process.sockets import bind_tcp, connect_unix
from lakehouse.stack.fetch import fetch
from lakehouse.stack.model import (
    LOCK,
    SOCKET,
    STATE,
    Service,
    StackContext,
    protocol_version,
    run_folder,
    stack_context,
)
from lakehouse.stack.process import run_in_foreground, service_failed, terminate_leftovers
from lakehouse.stack.services import ALL, NAMES, find_service, in_order, services
from lakehouse.storage.local import LocalHome

_SUPERVISOR_TIMEOUT_S = 60.0
_POLL_S = 0.1


@dataclass(frozen=True)
class ServiceStatus:
    """The status of a service, as the supervisor reports it."""

    service: str
    state: str
    url: str | None
    pid: int | None
    memory_mb: int | None
    restarts: int = 0
    reason: str = ""
    """Why it failed or is being restarted."""
    log: str = ""


def startable(settings: Settings, names: Iterable[str]) -> list[Service]:
    """The named services and their dependencies, in the order of their start."""
    requested, external = list(names), settings.stack.external_services()
    if ALL in requested:
        requested = [
            service.name
            for service in services()
            if service.process and service.in_all and service.name not in external
        ]
    chosen = in_order(requested, external, settings.profile)
    for service in chosen:
        if service.process is None:
            raise NotSupportedError(
                f"{service.name} runs in a container only.", f"docker compose --profile {service.name} up (see deploy/)"
            )
    return chosen


def up(
    settings: Settings,
    names: Iterable[str],
    *,
    status_reporter: StatusReporter = silent,
    download: DownloadReporter = silent,
    progress: Callable[[str], object] = lambda text: None,
) -> list[ServiceStatus]:
    """Start services and their dependencies, and wait until they answer. Those that already run are left alone."""
    names = [*names, *_stop_other_version(settings)]
    chosen = startable(settings, names)
    LocalHome(settings.home, settings.shared).ready().check_room()
    install(settings, names, download=download, progress=progress)
    context, chosen_names = stack_context(settings), [service.name for service in chosen]
    for service in chosen:
        assert service.process is not None
        service.process(context)  # raises what is wrong with it, such as a missing Java, here and not in a log
    with locked(context.run / "up.lock"):  # two at once would take each other's ports
        if _request(settings, {"do": "status"}) is None:
            terminate_leftovers(context.run / STATE)
        _check_ports(context, chosen)
        _ensure_supervisor(settings)
        start = {"do": "start", "settings": dump_settings(settings), "services": chosen_names}
        _reported(_request(settings, start))
    reports = _wait_until_running(settings, chosen_names, status_reporter, progress)
    _provision(context, status_reporter, progress)
    return reports


def _provision(context: StackContext, status_reporter: StatusReporter, progress: Callable[[str], object]) -> None:
    """Let every server that runs add what it lacks: one that was started now may be what another waited for."""
    for report in status(context.settings):
        if report.state == "running":
            with status_reporter(f"Preparing {report.service}"):
                find_service(report.service).provision(context, progress)


def install(
    settings: Settings,
    names: Iterable[str],
    *,
    only: bool = False,
    download: DownloadReporter = silent,
    progress: Callable[[str], object] = lambda text: None,
) -> None:
    """Download and build the missing programs of services; `only`: not those of their dependencies."""
    names = list(names)
    chosen = [service for service in startable(settings, names) if not only or service.name in names]
    context = stack_context(settings)
    for service in chosen:
        service.build(context, progress)  # first, because a failed build may need other artifacts
    fetch(settings, [artifact for service in chosen for artifact in service.artifacts(context)], download)


def serve(settings: Settings, name: str, *, download: DownloadReporter = silent) -> int:
    """Run one service in the foreground until it ends, and return its exit code. Its dependencies must run already."""
    (chosen,) = [service for service in startable(settings, [name]) if service.name == name]
    context = stack_context(settings)
    fetch(settings, chosen.artifacts(context), download)
    chosen.prepare(context)
    assert chosen.process is not None
    return run_in_foreground(chosen.name, chosen.process(context), context)


def down(settings: Settings, names: Iterable[str] = ()) -> list[str]:
    """Stop services and their dependents (default: all); returns the names of those that were stopped."""
    requested = [find_service(name).name for name in names if name != ALL]
    before = [report.service for report in status(settings)]
    if before:
        response = _request(settings, {"do": "stop", "services": requested})
        left = [report["service"] for report in (response or {}).get("services", [])]
        if not left:
            _wait_for_supervisor_end(settings)
        return [name for name in before if name not in left]
    return []


def wipe(settings: Settings, names: Iterable[str] = ()) -> list[Path]:
    """Stop services (default: all) and delete their data; returns the deleted folders."""
    names = [find_service(name).name for name in names if name != ALL]
    down(settings, names)
    context = stack_context(settings)
    deleted = [context.folder(name) for name in names or NAMES if context.folder(name).is_dir()]
    for folder in deleted:
        shutil.rmtree(folder)
    return deleted


def status(settings: Settings) -> list[ServiceStatus]:
    """The services that the supervisor monitors; empty if no supervisor runs."""
    response = _request(settings, {"do": "status"})
    known = ServiceStatus.__dataclass_fields__
    reports = _reported(response) if response else []
    return [ServiceStatus(**{name: value for name, value in report.items() if name in known}) for report in reports]


def log_files(settings: Settings, names: Iterable[str] = ()) -> dict[str, Path]:
    """The logs of the named services (default: all) that have one."""
    context = stack_context(settings)
    chosen = [find_service(name).name for name in names] or [*NAMES, "supervisor"]
    return {name: context.log(name) for name in chosen if context.log(name).is_file()}


def _check_ports(context: StackContext, chosen: list[Service]) -> None:
    """Name a port that is taken before anything is started."""
    running = {report.service for report in status(context.settings)}
    host = context.settings.stack.host
    for service in chosen:
        for port in service.ports if service.name not in running else ():
            number = port.number(context.settings)
            try:
                bind_tcp(host, number).close()
            except OSError as exc:
                if isinstance(exc, socket.gaierror) or exc.errno == errno.EADDRNOTAVAIL:
                    raise StackError(
                        f"stack.host = {host!r} is no address of this machine.", "Leave LAKE_STACK__HOST unset."
                    ) from exc
                raise PortTakenError(
                    f"{service.name} cannot listen on {host}:{number}: another program does.",
                    f"Stop that program, or choose another port: LAKE_{port.dotted.replace('.', '__').upper()}=… "
                    f"({port.dotted} in lake.toml).",
                ) from exc


def _stop_other_version(settings: Settings) -> list[str]:
    """Stop the services that another version of the lakehouse started; returns their names."""
    response = _request(settings, {"do": "status"})
    if response is None or response.get("version") == protocol_version():
        return []
    return down(settings)


def _ensure_supervisor(settings: Settings) -> None:
    def answers() -> bool:
        return _request(settings, {"do": "status"}) is not None

    if answers():
        return
    command = module_command("lakehouse.stack.supervisor")
    log = LocalHome(settings.home).logs / "stack" / "supervisor.log"
    try:
        start_daemon(command, json.dumps({"home": str(settings.home)}), log, answers, _SUPERVISOR_TIMEOUT_S, Path("/"))
    except DaemonStartError as exc:
        raise service_failed("supervisor", str(exc), log) from exc


def _wait_until_running(
    settings: Settings, names: list[str], status_reporter: StatusReporter, progress: Callable[[str], object]
) -> list[ServiceStatus]:
    """Wait until all run; raises the error of the first that failed."""
    began, announced, shown = time.monotonic(), set[str](), ""
    with ExitStack() as spinner:
        for text, reports in _poll(settings, names):
            started = [report for report in reports if report.state == "running" and report.service not in announced]
            if text != shown:  # one spinner per text; progress lines are printed between them
                spinner.close()
            for report in started:
                announced.add(report.service)
                progress(f"{report.service:<9} {report.url or ''}  ({time.monotonic() - began:.1f} s)")
            if not text:
                return reports
            if text != shown:
                spinner.enter_context(status_reporter(text))
                shown = text
            time.sleep(_POLL_S)
    raise service_failed("supervisor", "the process has ended.")


def _poll(settings: Settings, names: list[str]) -> Iterator[tuple[str, list[ServiceStatus]]]:
    """Poll the status; yields it with a text that lists what is not running yet."""
    while reports := status(settings):
        chosen = [report for report in reports if report.service in names]
        for report in chosen:
            if report.state == "failed":
                raise service_failed(report.service, report.reason, report.log)
        missing = [report.service for report in chosen if report.state != "running"]
        yield ("Starting " + ", ".join(missing) if missing else ""), chosen


def _wait_for_supervisor_end(settings: Settings) -> None:
    """Wait until the supervisor, which ends when no service is left, has released its lock."""
    lock = run_folder(settings.home) / LOCK
    if lock.is_file():
        with locked(lock):
            return


def _request(settings: Settings, request: dict[str, Any]) -> dict[str, Any] | None:
    """Send one JSON line to the supervisor and read one back; None if no supervisor runs."""
    try:
        with connect_unix(run_folder(settings.home) / SOCKET) as connection, connection.makefile("rwb") as stream:
            stream.write(json.dumps(request).encode() + b"\n")
            stream.flush()
            line = stream.readline()
    except OSError:
        return None
    return dict(json.loads(line)) if line else None


def _reported(response: dict[str, Any] | None) -> list[dict[str, Any]]:
    if response is None:
        raise service_failed("supervisor", "the process does not answer.")
    if "error" in response:
        raise StackError(f"The supervisor failed: {response['error']}", "lake logs supervisor; lake down stops it")
    return list(response["services"])
