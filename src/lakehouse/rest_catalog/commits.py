"""Handlers of commits: check requirements, apply updates, write metadata files, replace all pointers at once.

If another client has changed a table meanwhile and the requirements still hold (two appends to different branches of a
table, a property beside an append), the server applies the commit again, without the client.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyiceberg.table import CommitTableRequest
from pyiceberg.table.update import AssertCreate

from lakehouse.catalogs.sql.rows import TABLE
from lakehouse.core.dataclass import dataclass
from lakehouse.rest_catalog import names, requirements, table_policy, table_updates
from lakehouse.rest_catalog.backend import COMMIT_ATTEMPTS, CatalogBackend, parse_model
from lakehouse.rest_catalog.errors import AlreadyExistsError, CommitFailedError, RestError
from lakehouse.rest_catalog.messages import CatalogRequest, CatalogResponse, TransactionHook
from lakehouse.rest_catalog.metadata_files import new_location
from lakehouse.rest_catalog.own_files import OwnFiles
from lakehouse.rest_catalog.pointers import Swap, missing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakehouse.core.names import TableName


@dataclass(frozen=True)
class Commit:
    """A commit to one table."""

    name: TableName
    request: CommitTableRequest
    sent: Sequence[Mapping[str, Any]]
    """The updates as the client sent them, with fields that PyIceberg's models do not have."""

    @property
    def creates(self) -> bool:
        """Whether the commit creates the table."""
        return any(isinstance(requirement, AssertCreate) for requirement in self.request.requirements)


def parse_commit(name: TableName, body: Mapping[str, Any]) -> Commit:
    """Parse the commit to a table from a request's body."""
    identifier = {"namespace": names.levels_of(name.namespace), "name": name.table}
    updates = body.get("updates") or []
    if not isinstance(updates, list) or not all(isinstance(update, dict) for update in updates):
        raise RestError("The updates must be a list of objects.")
    fields = {
        "updates": [_with_field_ids(update) for update in updates],
        "requirements": body.get("requirements") or [],
    }
    request = parse_model(CommitTableRequest, {**fields, "identifier": identifier})
    return Commit(name, request, updates)


def _with_field_ids(update: dict[str, Any]) -> dict[str, Any]:
    """Add ids to partition fields without one, which PyIceberg's models do not allow."""
    spec = update.get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get("fields"), list):
        return update
    unassigned = {"field-id": table_updates.UNASSIGNED}
    fields = [{**unassigned, **field} if isinstance(field, dict) else field for field in spec["fields"]]
    return {**update, "spec": {**spec, "fields": fields}}


class CommitHandlers:
    """Handles commits, each applied as a whole or not at all."""

    def __init__(self, backend: CatalogBackend) -> None:
        self._backend = backend

    def table(self, request: CatalogRequest) -> CatalogResponse:
        """Commit to one table, or create a staged one."""
        commit = parse_commit(request.table, request.body)
        done = self._commit(request, [commit], lambda ends: request.store(CatalogResponse(metadata=ends[0])))
        return CatalogResponse(metadata=done[0])

    def transaction(self, request: CatalogRequest) -> CatalogResponse:
        """Commit to several tables in one transaction of the database."""
        listed = request.body.get("table-changes")
        if not isinstance(listed, list) or not listed:
            raise RestError("The request lacks 'table-changes'.")
        commits = [parse_commit(request.identifier(_identifier(change)), change) for change in listed]
        if len({commit.name for commit in commits}) < len(commits):
            raise RestError("A transaction may name a table only once.")
        response = CatalogResponse(204)
        self._commit(request, commits, lambda _: request.store(response))
        return response

    def _commit(
        self, request: CatalogRequest, commits: Sequence[Commit], hook: Callable[[list[str]], TransactionHook]
    ) -> list[str]:
        """Apply commits and return the new pointer of each table."""
        for _ in range(COMMIT_ATTEMPTS):
            written: list[str] = []
            try:
                swaps = [self._stage(request, commit, written) for commit in commits]
                # In a transaction, a table without changes must not have changed either.
                changed = swaps if len(swaps) > 1 else [swap for swap in swaps if swap.start != swap.end]
                done = self._backend.pointers.swap(request.branch, changed, hook([swap.end for swap in swaps]))
            except RestError:
                # The transaction was rolled back, so the files are unused. After any other error that is not certain.
                self._remove(written)
                raise
            if done:
                return [swap.end for swap in swaps]
            self._remove(written)
        raise CommitFailedError(
            f"Other clients changed {names.format_name(commits[0].name)} {COMMIT_ATTEMPTS} times meanwhile."
        )

    def _stage(self, request: CatalogRequest, commit: Commit, written: list[str]) -> Swap:
        backend, branch = self._backend, request.branch
        start = backend.pointers.find(branch, commit.name)
        if commit.creates:
            if start is not None:
                raise AlreadyExistsError(f"Requirement failed: table already exists: {names.format_name(commit.name)}")
            backend.pointers.check_free(branch, commit.name, TABLE)
        elif start is None:
            raise missing(commit.name, TABLE)
        base = backend.files.table(start) if start else None
        requirements.check(commit.request.requirements, base)
        result = table_updates.apply_updates(base, commit.request.updates, start or "")
        if start and result is base:
            return Swap(commit.name, start, start)
        if base is None:
            properties = table_policy.with_safe_defaults(result.properties)
            result = result.model_copy(update={"properties": properties})
        own = OwnFiles(backend, request, commit.name)
        table_policy.check_table(backend, own, result, base)
        own.check_commit(base, result, commit.sent)
        before = json.loads(backend.files.raw(start)) if start else {}
        end = new_location(result.location, result.properties, start or "")
        backend.files.write(end, table_updates.serialize(result, before, commit.sent))
        written.append(end)
        return Swap(commit.name, start, end)

    def _remove(self, written: Sequence[str]) -> None:
        for location in written:
            self._backend.files.remove(location)


def put_new(
    backend: CatalogBackend, request: CatalogRequest, swap: Swap, content: bytes, response: CatalogResponse
) -> None:
    """Write the first metadata file of a table or view and set its pointer."""
    backend.files.write(swap.end, content)
    try:
        backend.pointers.swap(request.branch, [swap], request.store(response))
    except RestError:
        backend.files.remove(swap.end)
        raise


def _identifier(change: object) -> object:
    return change.get("identifier") if isinstance(change, dict) else None
