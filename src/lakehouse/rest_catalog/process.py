"""The catalog as a process of its own: `python -m lakehouse.rest_catalog`, told everything through its input.

What it is told may hold passwords and tokens, so none of it is an argument. Once it listens, it writes one line of
JSON with its address on its output.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.core.errors import BadSettingError, EngineUnreachableError
from lakehouse.process.daemons import run_main
from lakehouse.process.sockets import bind_tcp
from lakehouse.rest_catalog.guard import LOOPBACK

PORT = 8181
_START_TIMEOUT_S = 60.0
_FINISH_S = 10
_BACKLOG = 2048


@dataclass(frozen=True)
class RestOptions:
    """What the process must know."""

    catalog: str = field(repr=False)
    """The path of a SQLite file or a postgresql:// address, which may hold a password."""
    warehouse: str
    """Where new tables go, as a URI."""
    files: dict[str, str] = field(default_factory=dict, repr=False)
    """PyIceberg's FileIO properties (`s3.endpoint`, `s3.access-key-id`, …)."""
    tokens: tuple[str, ...] = field(default=(), repr=False)
    """A request must bear one of these; none: programs on this machine may ask without."""
    vend: bool = True
    """Whether the storage's keys are told to clients that ask for them."""
    host: str = "127.0.0.1"
    port: int = PORT
    author: str = ""
    """Who is written down for drops."""

    def to_text(self) -> str:
        """All of it as JSON, for the process's input."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> RestOptions:
        """The options that `to_text` wrote."""
        told = json.loads(text)
        return cls(**{**told, "tokens": tuple(told.get("tokens", ()))})


def serve(options: RestOptions) -> None:
    """Serve until the process is told to end (SIGTERM, SIGINT)."""
    import uvicorn

    from lakehouse.rest_catalog.app import create_app

    if options.host not in LOOPBACK and not any(options.tokens):
        raise BadSettingError(
            f"The catalog would listen on {options.host} and let everybody in.", "Set a token, or listen on 127.0.0.1."
        )
    where = options.catalog if "://" in options.catalog else Path(options.catalog)
    catalog = SqlCatalog(open_database(where), options.warehouse, io=options.files, author=options.author)
    app = create_app(catalog, options.files, options.tokens, options.vend)
    listener = _listen(options)
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=_FINISH_S)
    _say(address(options.host, listener.getsockname()[1]))
    uvicorn.Server(config).run(sockets=[listener])


def address(host: str, port: int) -> str:
    """What clients are given as the catalog's URI."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def start(options: RestOptions, log: Path) -> tuple[subprocess.Popen[str], str]:
    """A process that serves, and its address; it ends with a SIGTERM. What goes wrong in it stands in the log."""
    with log.open("a") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "lakehouse.rest_catalog"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    assert process.stdin and process.stdout
    too_late = threading.Timer(_START_TIMEOUT_S, process.kill)
    too_late.start()
    try:
        with process.stdin as handover:
            handover.write(options.to_text())
        line = process.stdout.readline()
    finally:
        too_late.cancel()
    if not line:
        process.wait()
        process.stdout.close()
        raise EngineUnreachableError("The REST catalog did not start.", f"Its log says why: {log}")
    return process, str(json.loads(line)["url"])


def main() -> None:
    """Serve with the options that standard input holds."""
    sys.exit(run_main(lambda: serve(RestOptions.from_text(sys.stdin.read()))))


def _listen(options: RestOptions) -> socket.socket:
    try:
        listener = bind_tcp(options.host, options.port)
    except OSError as exc:
        raise BadSettingError(
            f"The catalog cannot listen on {options.host}:{options.port}: {exc.strerror}.", "Choose another port."
        ) from exc
    listener.listen(_BACKLOG)  # before the address is printed, so that an early client waits
    return listener


def _say(url: str) -> None:
    sys.stdout.write(json.dumps({"url": url}) + "\n")
    sys.stdout.flush()
