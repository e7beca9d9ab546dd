"""The processes of services: start one with its files written, run one to its end, find out whether it changed."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from lakehouse.core.errors import ServiceFailedError
from lakehouse.process.daemons import failure_line, log_size, open_log
from lakehouse.process.files import write_private
from lakehouse.process.guarded import guarded
from lakehouse.process.pids import terminate
from lakehouse.stack.model import ProcessSpec, StackContext

#: The variables that a server inherits; settings of the lakehouse and unrelated secrets are not passed on.
_INHERITED = (
    *("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER", "SSL_CERT_FILE", "SSL_CERT_DIR", "PYTHONPATH"),
    "JDK_JAVA_OPTIONS",  # Java's own variable for options of every `java`
)


def service_failed(service: str, reason: str, log: Path | str = "") -> ServiceFailedError:
    """The error of a service that does not run."""
    full_log = f" (the whole log: {log})" if log else ""
    return ServiceFailedError(f"{service} does not run: {reason}", f"lake logs {service}{full_log}")


def fingerprint(spec: ProcessSpec) -> str:
    """Changes when anything changes that the process was started with."""
    parts = [spec.argv, sorted(spec.environment.items()), spec.input, spec.prepared_with]
    parts += [sorted((str(path), text) for path, text in spec.files.items())]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def start(name: str, spec: ProcessSpec, context: StackContext) -> subprocess.Popen[bytes]:
    """Start a server and append its output to its log.

    The calling thread must live as long as the server: the system ends the server with the thread.
    """
    with open_log(context.log(name)) as output:
        return _start(name, spec, context, output)


def run_in_foreground(name: str, spec: ProcessSpec, context: StackContext) -> int:
    """Run a server with its output on ours, pass on signals to end, and return its exit code."""
    process = _start(name, spec, context, None)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: process.send_signal(spec.stop_signal))
    return process.wait()


def _start(name: str, spec: ProcessSpec, context: StackContext, output: IO[bytes] | None) -> subprocess.Popen[bytes]:
    for path, text in spec.files.items():
        write_private(path, text)
    folder = spec.folder or context.folder(name)
    folder.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        guarded(spec.argv, spec.stop_signal, spec.not_root),
        stdin=subprocess.PIPE if spec.input else subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        cwd=folder,
        env=environment(spec.environment),
        start_new_session=True,
    )
    if spec.input:
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin:
            process.stdin.write(spec.input.encode())
    return process


def environment(own: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a server: a few inherited variables, UTC, and its own."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {**inherited, "TZ": "UTC", **(own or {})}


def run_once(name: str, spec: ProcessSpec, context: StackContext, timeout: float = 300.0) -> None:
    """Run a program that ends, such as one that creates a schema."""
    log = context.log(name)
    offset = log_size(log)
    process = start(name, spec, context)
    try:
        code = process.wait(timeout)
    except subprocess.TimeoutExpired as exc:
        process.kill()
        process.wait()
        raise service_failed(name, f"{spec.argv[0]} took longer than {timeout:.0f} s", log) from exc
    if code != 0:
        raise service_failed(name, failure_line(log, offset), log)


def run_tool(service: str, task: str, command: list[str], **options: Any) -> str:
    """Run a program for a service and return its stderr; the last line of that explains why the task failed."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise service_failed(service, f"{task} failed: {reason}")
    return str(done.stderr)


def terminate_leftovers(state: Path) -> None:
    """End the servers that a killed supervisor recorded and that did not end with it."""
    try:
        records = json.loads(state.read_text())
    except (OSError, ValueError):
        return
    for record in records:
        if record["pid"]:
            terminate(record["pid"], record["start_time"], record["stop_signal"])
