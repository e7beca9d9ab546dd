"""The stack for Docker: compose.yaml and the files that it mounts, rendered from the services' descriptions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from lakehouse.config.endpoints import DATABASES
from lakehouse.config.secrets import made_up
from lakehouse.config.settings import Settings
from lakehouse.config.stack import StackSettings
from lakehouse.core.errors import HomeError
from lakehouse.stack.model import ContainerSpec, Service
from lakehouse.stack.mounted import mounted_files
from lakehouse.stack.process import write_private
from lakehouse.stack.registry import services
from lakehouse.stack.yaml import as_yaml

_HEAD = """\
# Written by `lake stack render` from the descriptions in src/lakehouse/stack/services; changes here will be lost.
# Everything that may differ stands in .env, which `lake stack render` makes with passwords of its own.
#   docker compose --profile all up --wait         or a part: --profile trino, nessie, hive, rest, connect, …
"""
ALL = "all"
#: What .env must have; nobody starts with a password that stands in a repository.
SECRETS = {
    "S3_ACCESS_KEY": "access_key",
    "S3_SECRET_KEY": "secret_key",
    "POSTGRES_PASSWORD": "postgres_password",
    **{f"{name.upper()}_PASSWORD": f"{name}_password" for name in DATABASES},
    "REST_TOKEN": "rest_token",
    "SUPERSET_SECRET_KEY": "superset_secret_key",
    "SUPERSET_ADMIN_PASSWORD": "superset_admin_password",
}
_DEFAULTS = {"BUCKET": "bucket", "S3_REGION": "region"}
_REFERENCE = re.compile(r"\$\{(\w+)\}")
ENV, EXAMPLE, COMPOSE = ".env", ".env.example", "compose.yaml"


def write(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Write all files; tells each, and whether it was kept as it was. A .env that is there is never touched."""
    try:
        for name, text in rendered().items():
            file = folder / name
            kept = file.is_file() and file.read_text() == text
            if not kept:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            yield file, kept
        env = folder / ENV
        if not (kept := env.is_file()):
            write_private(env, _env({name: made_up(own) for name, own in SECRETS.items()}))
            folder.chmod(0o755)
        yield env, kept
    except OSError as exc:
        raise HomeError(f"{folder} cannot be written: {exc.strerror}.", "Choose another folder: --into DIR") from exc


def stale(folder: Path) -> list[str]:
    """The names of files that are missing or are not what would be written."""
    files = {name: folder / name for name in rendered()}
    return [name for name, text in rendered().items() if not files[name].is_file() or files[name].read_text() != text]


def rendered() -> dict[str, str]:
    """All files by their names in the folder, but .env."""
    return {
        COMPOSE: _HEAD + as_yaml(document()),
        EXAMPLE: _env(dict.fromkeys(SECRETS, "")),
        ".gitignore": ".env\n",
        **mounted_files(),
    }


def document() -> dict[str, Any]:
    """compose.yaml as plain values."""
    containers = dict(_containers())
    profiles = _profiles(containers)
    entries = {name: _entry(owner, each, profiles[name]) for name, (owner, each) in containers.items()}
    volumes = sorted({name for _, each in containers.values() for name in each.volumes if not name.startswith(".")})
    return {
        "name": "lakehouse",
        "services": entries,
        "volumes": {name: {} for name in volumes},
        "networks": {"default": {"driver": "bridge"}},
    }


def _containers() -> Iterator[tuple[str, tuple[Service, ContainerSpec]]]:
    for service in services():
        if service.container is not None:
            yield service.name, (service, service.container())
        for name, job in service.jobs.items():
            yield name, (service, job())


def _profiles(containers: Mapping[str, tuple[Service, ContainerSpec]]) -> dict[str, list[str]]:
    """A container is in its own profile and in those of all that need it, so that a part starts whole."""
    found: dict[str, set[str]] = {name: {ALL} for name in containers}
    for name, (owner, _) in containers.items():
        for each in _with_needs(name, containers):
            found[each].add(owner.name)
    return {name: sorted(profiles) for name, profiles in found.items()}


def _with_needs(name: str, containers: Mapping[str, tuple[Service, ContainerSpec]]) -> set[str]:
    seen, waiting = set[str](), [name]
    while waiting:
        each = waiting.pop()
        if each not in seen:
            seen.add(each)
            waiting += containers[each][1].needs
    return seen


def _entry(owner: Service, container: ContainerSpec, profiles: list[str]) -> dict[str, Any]:
    entry = {
        "profiles": profiles,
        **_image(container),
        "entrypoint": list(container.entrypoint),
        "command": list(container.command),
        "user": container.user,
        "environment": {key: _filled(value) for key, value in container.environment.items()},
        "ports": [] if container.once else list(_ports(owner)),
        "volumes": [_volume(source, target) for source, target in container.volumes.items()],
        "depends_on": {other: {"condition": condition} for other, condition in container.needs.items()},
        "healthcheck": _health(container) if container.health else {},
        "mem_limit": container.memory,
        "restart": "no" if container.once else "unless-stopped",
        "security_opt": ["no-new-privileges:true"],
        "cap_drop": [] if container.root else ["ALL"],
        "init": True,
    }
    return {key: value for key, value in entry.items() if value}


def _health(container: ContainerSpec) -> dict[str, Any]:
    return {
        "test": list(container.health),
        "interval": "5s",
        "timeout": "5s",
        "retries": 12,
        "start_period": f"{container.start_period_s}s",
    }


def _image(container: ContainerSpec) -> dict[str, Any]:
    if container.build_folder:
        return {"image": container.image, "build": {"context": container.build_folder}}
    if container.build:
        return {"image": "lakehouse:local", "build": {"context": "..", "dockerfile": "deploy/Dockerfile"}}
    return {"image": container.image}


def _ports(owner: Service) -> Iterator[str]:
    defaults = StackSettings()
    for port in owner.ports:
        variable = port.setting.upper()
        # On loopback unless .env says otherwise.
        yield f"${{BIND:-{defaults.host}}}:${{{variable}:-{getattr(defaults, port.setting)}}}:{port.inside}"


def _volume(source: str, target: str) -> str:
    return f"{source}:{target}:ro" if source.startswith(".") else f"{source}:{target}"


def _filled(value: str) -> str:
    """A secret must be in .env; what has a default need not be."""

    def one(found: re.Match[str]) -> str:
        name = found[1]
        if name in _DEFAULTS:
            return f"${{{name}:-{getattr(StackSettings(), _DEFAULTS[name])}}}"
        return f"${{{name}:?run lake stack render}}"

    return _REFERENCE.sub(one, value)


def _env(secrets: Mapping[str, str]) -> str:
    lines = [
        "# Passwords and keys of the containers. `lake stack render` makes this file, once; keep it out of repositories.",
        *(f"{name}={value}" for name, value in secrets.items()),
        "",
        "# What may differ; these are the defaults.",
        *(f"# {name}={getattr(StackSettings(), own)}" for name, own in _DEFAULTS.items()),
        "# The address on which the containers' ports are open. Beyond this machine, put a proxy with logins before them.",
        f"# BIND={StackSettings().host}",
        *(f"# {port.setting.upper()}={port.number(Settings())}" for port in _open_ports(services())),
    ]
    return "\n".join(lines) + "\n"


def _open_ports(known: Iterable[Service]) -> Iterator[Any]:
    names = {each.name for each in fields(StackSettings)}
    return (port for service in known for port in service.ports if service.container and port.setting in names)
