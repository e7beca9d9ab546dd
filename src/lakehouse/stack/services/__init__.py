"""The services of the stack, one module each (version, origin, start, health check), and the order in which they start."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from lakehouse.core.errors import NoSuchServiceError
from lakehouse.core.names import nearest
from lakehouse.stack.model import Service

#: The names of the services and of their modules here, dependencies first.
NAMES = ("storage", "postgres", "nessie", "rest", "hive", "connect", "trino", "serve", "dagster", "superset")
ALL = "all"


def find_service(name: str) -> Service:
    """The description of a service."""
    if name not in NAMES:
        raise NoSuchServiceError(name, (*NAMES, ALL), nearest(name, NAMES))
    described: Service = import_module(f"lakehouse.stack.services.{name}").SERVICE
    return described


def services() -> list[Service]:
    """The descriptions of all services."""
    return [find_service(name) for name in NAMES]


def in_order(names: Iterable[str], external: Iterable[str] = (), profile: str = "") -> list[Service]:
    """These services and their dependencies, dependencies first; dependencies that run elsewhere are left out."""
    external, chosen = set(external), set[str]()
    pending = [find_service(name) for name in names]
    while pending:
        needed = pending.pop()
        if needed.name not in chosen:
            chosen.add(needed.name)
            pending += [find_service(name) for name in needed.needs_in(profile) if name not in external]
    return [find_service(name) for name in NAMES if name in chosen]
