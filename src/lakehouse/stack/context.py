"""The stack of the lake that the settings describe: where its data, its rendered files and its logs lie."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from lakehouse.config.endpoints import endpoints_from
from lakehouse.config.load import all_settings
from lakehouse.config.secrets import secrets_of
from lakehouse.config.settings import Settings
from lakehouse.stack.model import StackContext
from lakehouse.storage.local import LocalHome

#: What a supervisor has in its folder: where it is spoken to, and what it watches.
SOCKET, STATE = "supervisor.sock", "state.json"
#: How a supervisor ends when another one already watches the stack.
ALREADY_WATCHED = 75


def stack_context(settings: Settings) -> StackContext:
    """Everything that the services' descriptions look at. Makes the folders that are missing."""
    secrets = secrets_of(settings)
    home = LocalHome(settings.home).ready()
    data = Path(settings.stack.data).expanduser() if settings.stack.data else home.folder / "stack"
    run, logs = run_folder(home.folder), home.logs / "stack"
    for folder in (data, run, logs):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
    return StackContext(settings, secrets, endpoints_from(settings, secrets), data.absolute(), run, logs, home.folder)


def run_folder(home: Path) -> Path:
    """Where the supervisor of a lake's stack has its socket and its state."""
    return home / "run" / "stack"


@cache
def protocol_version() -> str:
    """Whether two processes of ours speak of the same settings and the same services."""
    from lakehouse.core.version import __version__

    spoken = [__version__, *(name for name, _, _ in all_settings())]
    return hashlib.sha256("\n".join(spoken).encode()).hexdigest()[:12]
