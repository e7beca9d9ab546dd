"""Who sends a request, and what they may do: the scope, namespaces and branches of a key or token."""

from __future__ import annotations

from collections.abc import Iterable

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import ForbiddenError
from lakehouse.core.names import MAIN, TableName
from lakehouse.operations import ADMIN, PUBLIC, READ, WRITE

SCOPES = ("reader", "writer", "admin", "agent")
#: What each scope grants. An agent also writes, but never to main.
_GRANTS = {
    "reader": {PUBLIC, READ},
    "writer": {PUBLIC, READ, WRITE},
    "agent": {PUBLIC, READ, WRITE},
    "admin": {PUBLIC, READ, WRITE, ADMIN},
    "": {PUBLIC},
}
#: The scope with the fewest rights that grants what a route needs.
_LEAST_SCOPE = {READ: "reader", WRITE: "writer", ADMIN: "admin"}


@dataclass(frozen=True)
class Principal:
    """The caller of a request."""

    id: str
    """The prefix of a key, or the subject of a token."""
    scope: str
    """reader, writer, admin, agent; empty for a caller without a key."""
    name: str = ""
    namespaces: tuple[str, ...] = ()
    """The namespaces that it may use (default: all)."""
    branches: tuple[str, ...] = ()
    """The branches that it may use (default: all)."""
    is_process_user: bool = False
    """Nobody was authenticated: the caller acts as the user who started the service."""

    @property
    def author(self) -> str:
        """The author of commits: the name of the key or token, else its id; empty for the user of the process."""
        return "" if self.is_process_user else self.name or self.id

    @property
    def is_limited(self) -> bool:
        """Whether there are namespaces or branches that this caller may not use."""
        return bool(self.namespaces or self.branches)

    @property
    def is_owner(self) -> bool:
        """Whether this caller may do everything."""
        return self.scope == "admin" and not self.is_limited

    def may(self, need: str) -> bool:
        """Whether the scope grants what a route needs."""
        return need in _GRANTS[self.scope]

    def sees(self, table: TableName) -> bool:
        """Whether the table is in a namespace of this caller."""
        return self.sees_namespace(table.namespace)

    def sees_namespace(self, namespace: str) -> bool:
        """Whether the namespace is one of this caller's."""
        return not self.namespaces or namespace in self.namespaces

    def uses(self, branch: str) -> bool:
        """Whether this caller may use a branch."""
        return not self.branches or (branch or MAIN) in self.branches

    def check(self, need: str) -> None:
        """Raise ForbiddenError unless the scope grants what a route needs."""
        if not self.may(need):
            raise ForbiddenError(
                f"The key {self.id or '(none)'} has the scope {self.scope or 'none'}, and this needs {need}.",
                f"Use a key of another scope: lake keys create --scope {_LEAST_SCOPE[need]}",
            )

    def check_branch(self, branch: str) -> None:
        """Raise ForbiddenError if the branch is not one of this caller's."""
        if not self.uses(branch):
            raise ForbiddenError(
                f"The key {self.id} is not for the branch {branch or MAIN}.",
                f"Its branches: {', '.join(self.branches)}.",
            )

    def check_tables(self, tables: Iterable[TableName]) -> None:
        """Raise ForbiddenError if a table is in another namespace."""
        for table in tables:
            self.check_namespace(table.namespace)

    def check_namespace(self, namespace: str) -> None:
        """Raise ForbiddenError if the namespace is not one of this caller's."""
        if not self.sees_namespace(namespace):
            raise ForbiddenError(
                f"The key {self.id} is not for the namespace {namespace}.",
                f"Its namespaces: {', '.join(self.namespaces)}.",
            )

    def may_change(self, branch: str) -> bool:
        """Whether this caller may change tables of the branch."""
        return self.may(WRITE) and self.uses(branch) and not self._is_agent_on_main(branch)

    def _is_agent_on_main(self, branch: str) -> bool:
        return self.scope == "agent" and (branch or MAIN) == MAIN

    def check_change(self, branch: str) -> None:
        """Raise ForbiddenError unless this caller may change tables of the branch."""
        self.check(WRITE)
        self.check_branch(branch)
        if self._is_agent_on_main(branch):
            raise ForbiddenError(
                "An agent does not write to main.", "Create a branch, write there, and let a person merge it."
            )

    def check_everywhere(self, what: str) -> None:
        """Raise ForbiddenError for a caller who is limited to namespaces or branches."""
        if self.is_limited:
            raise ForbiddenError(
                f"{what} concerns all namespaces and branches, and the key {self.id} is limited to some.",
                "Use a key without limits.",
            )


#: The caller of public routes.
NOBODY = Principal("", "")
#: The caller where keys are switched off, on loopback.
OWNER = Principal("owner", "admin", "keys are off", is_process_user=True)
