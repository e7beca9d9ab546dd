"""The server process, `python -m lakehouse.rest_catalog`, which reads its options from standard input.

The options may hold passwords and tokens, so they are not arguments. Once the server listens, it writes one line of JSON
with its address to standard output.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from dataclasses import asdict, field
from pathlib import Path

from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BadSettingError, EngineUnreachableError
from lakehouse.process.daemons import module_command, run_main
from lakehouse.process.sockets import bind_tcp

PORT = 8181
_START_TIMEOUT_S = 60.0
_SHUTDOWN_S = 10
_BACKLOG = 2048


@dataclass(frozen=True)
class RestOptions:
    """The options of the server."""

    catalog: str = field(repr=False)
    """The path of a SQLite file or a postgresql:// address, which may hold a password."""
    warehouse: str
    """The URI below which new tables are created."""
    files: dict[str, str] = field(default_factory=dict, repr=False)
    """PyIceberg's FileIO properties (`s3.endpoint`, `s3.access-key-id`, …)."""
    tokens: tuple[str, ...] = field(default=(), repr=False)
    """Bearer tokens of which every request needs one; the server does not start without one."""
    read_tokens: tuple[str, ...] = field(default=(), repr=False)
    """Bearer tokens whose holders only read."""
    vend: bool = True
    """Whether clients that request them get keys of the storage."""
    protected: tuple[str, ...] = ()
    """Branches that clients may read but not change."""
    allow_file_deletion: bool = False
    """Whether clients may set `gc.enabled` and `write.metadata.delete-after-commit.enabled`, with which engines delete files
    that other branches may need. For a catalog without branches, and for tests that expect it."""
    host: str = "127.0.0.1"
    port: int = PORT
    author: str = ""
    """The author of drops in the log."""

    def to_json(self) -> str:
        """Return the options as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> RestOptions:
        """Parse what `to_json` returned."""
        data = json.loads(text)
        return cls(**{**data, **{name: tuple(data.get(name, ())) for name in ("tokens", "read_tokens", "protected")}})


def serve(options: RestOptions) -> None:
    """Serve until SIGTERM or SIGINT."""
    import uvicorn

    from lakehouse.rest_catalog.access import Owner, Reader
    from lakehouse.rest_catalog.app import create_app

    if not any(options.tokens):
        raise BadSettingError("The REST catalog has no token.", "Set at least one: every request needs one.")
    where = options.catalog if "://" in options.catalog else Path(options.catalog)
    catalog = SqlCatalog(open_database(where), options.warehouse, io=options.files, author=options.author)
    tokens = {**dict.fromkeys(options.read_tokens, Reader()), **dict.fromkeys(options.tokens, Owner())}
    app = create_app(catalog, options.files, tokens, options.vend, options.protected, options.allow_file_deletion)
    listener = _listen(options)
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=_SHUTDOWN_S)
    _announce(address(options.host, listener.getsockname()[1]))
    uvicorn.Server(config).run(sockets=[listener])


def address(host: str, port: int) -> str:
    """Return the catalog's URI for clients."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def start(options: RestOptions, log: Path) -> tuple[subprocess.Popen[str], str]:
    """Start a server process and return it with its address. It writes errors to the log and ends on SIGTERM."""
    with log.open("a") as errors:
        process = subprocess.Popen(
            module_command("lakehouse.rest_catalog"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    assert process.stdin and process.stdout
    timeout = threading.Timer(_START_TIMEOUT_S, process.kill)
    timeout.start()
    try:
        with process.stdin as stdin:
            stdin.write(options.to_json())
        line = process.stdout.readline()
    finally:
        timeout.cancel()
    if not line:
        process.wait()
        process.stdout.close()
        raise EngineUnreachableError("The REST catalog did not start.", f"See its log: {log}")
    return process, str(json.loads(line)["url"])


def main() -> None:
    """Serve with the options that standard input holds."""
    sys.exit(run_main(lambda: serve(RestOptions.from_json(sys.stdin.read()))))


def _listen(options: RestOptions) -> socket.socket:
    try:
        listener = bind_tcp(options.host, options.port)
    except OSError as exc:
        raise BadSettingError(
            f"The catalog cannot listen on {options.host}:{options.port}: {exc.strerror}.", "Choose another port."
        ) from exc
    listener.listen(_BACKLOG)  # before the address is printed, so that an early client waits
    return listener


def _announce(url: str) -> None:
    sys.stdout.write(json.dumps({"url": url}) + "\n")
    sys.stdout.flush()
