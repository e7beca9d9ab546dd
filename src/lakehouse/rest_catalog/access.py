"""Who sends a request to the catalog, and what they may use."""

from __future__ import annotations

from typing import Protocol

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import ForbiddenError
from lakehouse.core.names import CATALOG, MAIN

#: The key of an ASGI scope under which an application that mounts the catalog states who sends the request.
CALLER = "lakehouse.caller"


class Caller(Protocol):
    """Who sends a request."""

    @property
    def id(self) -> str:
        """Distinguishes callers; empty if there is only one."""

    @property
    def is_limited(self) -> bool:
        """Whether there are namespaces or branches that it may not use."""

    @property
    def is_owner(self) -> bool:
        """Whether it may do everything."""

    def uses(self, branch: str) -> bool:
        """Whether it may use a branch."""

    def sees_namespace(self, namespace: str) -> bool:
        """Whether it may use a namespace."""

    def may_change(self, branch: str) -> bool:
        """Whether it may change tables of a branch."""

    def check_branch(self, branch: str) -> None:
        """Refuse a branch that it may not use."""

    def check_change(self, branch: str) -> None:
        """Refuse changes of a branch that it may not change."""

    def check_namespace(self, namespace: str) -> None:
        """Refuse a namespace that it may not use."""


@dataclass(frozen=True)
class Owner:
    """The holder of the catalog's token, who may do everything."""

    id: str = ""
    is_limited: bool = False
    is_owner: bool = True

    def uses(self, branch: str) -> bool:
        return bool(branch)

    def sees_namespace(self, namespace: str) -> bool:
        return bool(namespace)

    def may_change(self, branch: str) -> bool:
        return bool(branch)

    def check_branch(self, branch: str) -> None:
        """Refuse nothing."""

    def check_change(self, branch: str) -> None:
        """Refuse nothing."""

    def check_namespace(self, namespace: str) -> None:
        """Refuse nothing."""


@dataclass(frozen=True)
class Reader(Owner):
    """The holder of the token for reading, who may read every table."""

    id: str = "reader"
    is_owner: bool = False

    def may_change(self, branch: str) -> bool:
        return False

    def check_change(self, branch: str) -> None:
        """Refuse every change."""
        raise ForbiddenError("This token of the REST catalog only reads.", "Use the token of its owner to write.")


def branch_name(branch: str) -> str:
    """Return the name of a branch from its name in the catalog's rows."""
    return MAIN if branch == CATALOG else branch
