"""The context of a lake's stack: its settings, secrets and endpoints, and the folders of its servers."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from lakehouse.config.endpoints import endpoints_of
from lakehouse.config.load import all_settings
from lakehouse.config.secrets import secrets_of
from lakehouse.config.settings import Settings
from lakehouse.stack.model import StackContext
from lakehouse.storage.local import LocalHome

#: Files of a supervisor in its run folder: its socket, the servers that it monitors, the lock that it holds.
SOCKET, STATE, LOCK = "supervisor.sock", "state.json", "supervisor.lock"


def stack_context(settings: Settings) -> StackContext:
    """The context for these settings; creates missing folders and passwords."""
    secrets = secrets_of(settings)
    home = LocalHome(settings.home, settings.shared).ready()
    data = Path(settings.stack.data).expanduser() if settings.stack.data else home.folder / "stack"
    run, logs = run_folder(home.folder), home.logs / "stack"
    for folder in (data, run, logs):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
    return StackContext(settings, secrets, endpoints_of(settings, secrets), data.absolute(), run, logs, home.folder)


def run_folder(home: Path) -> Path:
    """Where the supervisor of a lake's stack has its socket and its state."""
    return home / "run" / "stack"


@cache
def protocol_version() -> str:
    """Differs between two versions of the lakehouse whose settings or requests are not compatible."""
    from lakehouse.core import __version__

    names = [__version__, *(name for name, _, _ in all_settings())]
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:12]
