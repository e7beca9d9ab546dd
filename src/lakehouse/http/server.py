"""The server process: checks where it may listen, opens the lake, prints the first key, serves until SIGTERM."""

from __future__ import annotations

import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

from lakehouse.config.settings import Settings
from lakehouse.core.errors import BadSettingError, NotInstalledError
from lakehouse.process.files import try_locked, write_private
from lakehouse.process.sockets import accepts_connections, bind_tcp, is_loopback

_BACKLOG = 2048
_SHUTDOWN_S = 5
#: How long a service that has begun to start may take until it answers.
_START_S, _POLL_S = 30.0, 0.1
#: The largest header, in bytes.
MAX_HEADER = 64 << 10
#: The file, among the run files, with the address of the service of the lake.
URL_FILE = "serve.url"

Say = Callable[[str], None]


def serve(settings: Settings, say: Say, shows_key: bool = True) -> None:
    """Serve until SIGTERM or SIGINT.

    Args:
        say: called with each line for the person who started the service.
        shows_key: create the first key and show it; False where what is said goes to a log.
    """
    try:
        import uvicorn

        from lakehouse.http.app import create_app, create_service
    except ImportError as exc:
        raise NotInstalledError(str(exc.name), "serve") from exc
    from lakehouse.lake.assemble import assemble

    check_exposure(settings)
    listener = _listen(settings)
    with assemble(settings) as lake, closing(create_service(lake, settings)) as service:
        secure = bool(settings.serve.tls_cert_file)
        url = address(settings, listener)
        write_private(lake.folder / "run" / URL_FILE, url)
        say(f"The service listens on {url}; the console is at /ui (lake ui), its API at /docs.")
        if not settings.auth:
            say("LAKE_AUTH=off: every program on this machine has the owner's rights.")
        elif not shows_key:
            say("Create a key: lake keys create --scope admin")
        elif first := service.keys.create_first():
            say(f"The first admin key, shown only now: {first}")
        config = uvicorn.Config(
            create_app(service),
            http="h11",
            ws="none",
            h11_max_incomplete_event_size=MAX_HEADER,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_SHUTDOWN_S,
            ssl_certfile=settings.serve.tls_cert_file if secure else None,
            ssl_keyfile=settings.serve.tls_key_file or None,
        )
        # Uvicorn raises the signal again when it has ended, which must not skip the end of this block.
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
        uvicorn.Server(config).run(sockets=[listener])


def running_url(folder: Path) -> str:
    """The URL of the service of a lake, by its folder, once it answers; empty if none runs."""
    lock, file = folder / "service.lock", folder / "run" / URL_FILE
    deadline = time.monotonic() + _START_S
    while lock.exists() and time.monotonic() < deadline:
        with try_locked(lock) as is_free:
            if is_free:
                return ""
        url = file.read_text().strip() if file.exists() else ""
        if url and accepts_connections(urlsplit(url).hostname or "", urlsplit(url).port or 0):
            return url
        time.sleep(_POLL_S)
    return ""


def check_exposure(settings: Settings) -> None:
    """Refuse to listen beyond loopback without TLS or a proxy that does it, or without keys."""
    serve = settings.serve
    for name, file in (("serve.tls_cert_file", serve.tls_cert_file), ("serve.tls_key_file", serve.tls_key_file)):
        if file and not Path(file).is_file():
            raise BadSettingError(f"{name}: there is no file {file}.", "Give the path of a PEM file.")
    if is_loopback(serve.host):
        return
    if not settings.auth:
        raise BadSettingError(
            f"LAKE_AUTH=off is possible on loopback only, and serve.host is {serve.host}.", "Leave the keys on."
        )
    if not serve.tls_cert_file and not serve.behind_proxy:
        raise BadSettingError(
            f"serve.host = {serve.host} is reachable from other machines, and keys would cross the network in clear text.",
            "Set serve.tls_cert_file and serve.tls_key_file, or serve.behind_proxy = true if a proxy in front does TLS.",
        )


def address(settings: Settings, listener: socket.socket) -> str:
    """The service's URL for clients."""
    host, port = settings.serve.host, listener.getsockname()[1]
    kind = "https" if settings.serve.tls_cert_file else "http"
    return f"{kind}://[{host}]:{port}" if ":" in host else f"{kind}://{host}:{port}"


def _listen(settings: Settings) -> socket.socket:
    host, port = settings.serve.host, settings.serve.port
    try:
        listener = bind_tcp(host, port)
    except OSError as exc:
        raise BadSettingError(
            f"The service cannot listen on {host}:{port}: {exc.strerror or exc}.",
            "Choose another port: lake serve --port 8601",
        ) from exc
    listener.listen(_BACKLOG)
    return listener
