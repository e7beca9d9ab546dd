"""All services of the stack, and the order in which they start."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from lakehouse.core.errors import NoSuchServiceError
from lakehouse.core.names import nearest
from lakehouse.stack.model import Service

#: The name of a service and of its file in services/, those first that others need.
NAMES = ("storage", "postgres", "nessie", "rest", "hive", "connect", "trino", "dagster", "superset")
ALL = "all"


def service(name: str) -> Service:
    """The description of a service."""
    if name not in NAMES:
        raise NoSuchServiceError(name, (*NAMES, ALL), nearest(name, NAMES))
    found: Service = import_module(f"lakehouse.stack.services.{name}").SERVICE
    return found


def services() -> list[Service]:
    """All of them."""
    return [service(name) for name in NAMES]


def in_order(names: Iterable[str], elsewhere: Iterable[str] = ()) -> list[Service]:
    """These services and what they need, each after what it needs; but what is needed and runs elsewhere."""
    elsewhere, wanted = set(elsewhere), set[str]()
    waiting = [service(name) for name in names]
    while waiting:
        each = waiting.pop()
        if each.name not in wanted:
            wanted.add(each.name)
            waiting += [service(name) for name in each.needs if name not in elsewhere]
    return [service(name) for name in NAMES if name in wanted]
