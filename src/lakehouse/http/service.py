"""The parts of a running service, and the context of one request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends
from starlette.requests import Request

from lakehouse.config.settings import Settings
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import ForbiddenError, MissingKeyError, NotInstalledError, UnauthorizedError
from lakehouse.core.idempotency import IdempotencyStore
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.refs import Ref
from lakehouse.http.audit import AuditLog
from lakehouse.http.authentication import Authenticator
from lakehouse.http.catalog import CatalogMount
from lakehouse.http.database import ServiceDatabase
from lakehouse.http.jobs.runner import JobRunner
from lakehouse.http.keys import KeyStore
from lakehouse.http.limits import Limits
from lakehouse.http.metrics import Metrics
from lakehouse.http.principal import Principal
from lakehouse.http.queries import QueryService
from lakehouse.http.sessions import Sessions, SignInLinks
from lakehouse.http.statements import StatementStore
from lakehouse.lake import Lake
from lakehouse.versioning.branches import Refs

if TYPE_CHECKING:
    from lakehouse.mcp.over_http import McpEndpoint


@dataclass(frozen=True)
class Service:
    """What the routes share."""

    lake: Lake
    settings: Settings
    keys: KeyStore
    authenticator: Authenticator
    queries: QueryService
    statements: StatementStore
    jobs: JobRunner
    idempotency: IdempotencyStore
    limits: Limits
    audit: AuditLog
    metrics: Metrics
    catalog: CatalogMount | None
    database: ServiceDatabase
    sessions: Sessions
    links: SignInLinks

    @cached_property
    def mcp(self) -> McpEndpoint:
        """The lake as tools of AI agents; they call this service with the key of their caller."""
        try:
            from lakehouse.mcp.over_http import McpEndpoint
        except ImportError as exc:
            raise NotInstalledError(str(exc.name), "mcp") from exc
        return McpEndpoint(self.settings.serve.tls_cert_file)

    def count_guess(self, error: UnauthorizedError, address: str) -> None:
        """Count a wrong key against the address that sent it; raises TooManyRequestsError. A request without a key guesses none."""
        is_guess = not isinstance(error, MissingKeyError)
        if is_guess and not self.settings.serve.behind_proxy:  # there, every client has the address of the proxy
            self.limits.failed(address)

    def close(self) -> None:
        """Stop what runs."""
        self.jobs.close()
        self.statements.close()
        self.queries.close()
        self.audit.close()
        self.database.close()


@dataclass(frozen=True)
class Call:
    """One request: its caller, and its facts for the audit log."""

    service: Service
    principal: Principal
    request_id: str
    facts: dict[str, Any] = field(default_factory=dict)
    stable_id: str = ""
    """The same for every request with one Idempotency-Key; empty without one."""

    def lake(self, branch: str = "") -> Lake:
        """The lake on a branch that the caller may use; raises NoSuchBranchError."""
        branch = branch.lower()
        self.principal.check_branch(branch)
        self.note(branch=branch or MAIN)
        lake = self.service.lake
        return lake.branch(branch) if branch and branch != MAIN else lake

    def table(self, name: str) -> str:
        """The full name of a table that the caller may see."""
        parsed = TableName.parse(name)
        self.principal.check_tables([parsed])
        self.note(tables=[str(parsed)])
        return str(parsed)

    def check_when(self, when: str) -> None:
        """Raise ForbiddenError if a WHEN is a tag of a branch that the caller may not use."""
        if self.principal.branches and (tag := self._tag(when)) and not self.principal.uses(tag.created_from):
            raise ForbiddenError(
                f"The tag {tag.name} is not of a branch of the key {self.principal.id}.",
                f"Its branches: {', '.join(self.principal.branches)}.",
            )

    def _tag(self, when: str) -> Ref | None:
        return next((tag for tag in self.refs.branches.tags() if tag.name == when.strip().lower()), None)

    def sees(self, table: str) -> bool:
        """Whether the caller may see a table."""
        # Most callers see everything, and there may be thousands of tables to ask for.
        return not self.principal.namespaces or self.principal.sees(TableName.parse(table))

    @property
    def refs(self) -> Refs:
        """Branches, tags and log."""
        return self.service.lake.refs

    def note(self, **facts: Any) -> None:
        """Add facts to the entry of the audit log."""
        self.facts.update(facts)


def call_of(request: Request) -> Call:
    """The context of a request, which the middleware has authenticated."""
    state: Mapping[str, Any] = request.scope["state"]
    call: Call = state["call"]
    return call


#: The parameter of every endpoint.
CallContext = Annotated[Call, Depends(call_of)]
