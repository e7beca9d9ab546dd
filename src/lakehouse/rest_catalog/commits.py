"""Commits: requirements checked, updates applied, a metadata file written, the pointer moved, all tables at once.

A commit is made from what a client has seen. If the pointer moved meanwhile and the requirements still hold (two
appends to different branches of a table, a property beside an append), it is applied again here, without the client.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyiceberg.table import CommitTableRequest
from pyiceberg.table.update import AssertCreate

from lakehouse.rest_catalog import changes, names, requirements
from lakehouse.rest_catalog.answers import Answer, Call, Note, no_note
from lakehouse.rest_catalog.backing import COMMIT_TRIES, Backing, parsed
from lakehouse.rest_catalog.files import new_location
from lakehouse.rest_catalog.pointers import TABLE, Swap, missing
from lakehouse.rest_catalog.problems import AlreadyThere, CommitFailed, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakehouse.core.names import TableName


@dataclass(frozen=True)
class Commit:
    """A client's wish for one table."""

    name: TableName
    request: CommitTableRequest
    sent: Sequence[Mapping[str, Any]]
    """The updates as they came, with fields that PyIceberg's models leave out."""

    @property
    def creates(self) -> bool:
        """Whether the table must not be there yet."""
        return any(isinstance(each, AssertCreate) for each in self.request.requirements)


def read_commit(name: TableName, body: Mapping[str, Any]) -> Commit:
    """The wish that a request's body states for a table."""
    known = {"namespace": names.levels_of(name.namespace), "name": name.table}
    updates = body.get("updates") or []
    if not isinstance(updates, list) or not all(isinstance(each, dict) for each in updates):
        raise Problem("The updates must be a list of objects.")
    facts = {"updates": [_numbered(each) for each in updates], "requirements": body.get("requirements") or []}
    request = parsed(CommitTableRequest, {**facts, "identifier": known})
    return Commit(name, request, updates)


def _numbered(update: dict[str, Any]) -> dict[str, Any]:
    """A partition field may come without a number, which PyIceberg's models do not allow."""
    spec = update.get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get("fields"), list):
        return update
    unnumbered = {"field-id": changes.UNNUMBERED}
    fields = [{**unnumbered, **field} if isinstance(field, dict) else field for field in spec["fields"]]
    return {**update, "spec": {**spec, "fields": fields}}


class Committer:
    """Makes commits, each as a whole or not at all."""

    def __init__(self, backing: Backing) -> None:
        self._backing = backing

    def table(self, call: Call) -> Answer:
        """Change one table, or make it where its creation was staged."""
        commit = read_commit(call.table, call.body)
        done = self._commit(call.branch, [commit], lambda ends: call.keep(Answer(metadata=ends[0])))
        return Answer(metadata=done[0])

    def transaction(self, call: Call) -> Answer:
        """Change several tables in one transaction of the database."""
        listed = call.body.get("table-changes")
        if not isinstance(listed, list) or not listed:
            raise Problem("The request lacks 'table-changes'.")
        commits = [read_commit(_identified(each), each) for each in listed]
        if len({commit.name for commit in commits}) < len(commits):
            raise Problem("A table may be named once in a transaction: its updates belong together.")
        answer = Answer(204)
        self._commit(call.branch, commits, lambda _: call.keep(answer))
        return answer

    def _commit(self, branch: str, commits: Sequence[Commit], note: Callable[[list[str]], Note]) -> list[str]:
        """Where the metadata of each table is afterwards."""
        for _ in range(COMMIT_TRIES):
            written: list[str] = []
            try:
                swaps = [self._staged(branch, commit, written) for commit in commits]
                # A table that was only asked about must still be what it was when the others move.
                moving = swaps if len(swaps) > 1 else [swap for swap in swaps if swap.start != swap.end]
                done = self._backing.pointers.swap(branch, moving, note([swap.end for swap in swaps]))
            except Problem:
                # The transaction was undone: nobody points there. Of any other error nobody knows.
                self._forget(written)
                raise
            if done:
                return [swap.end for swap in swaps]
            self._forget(written)
        raise CommitFailed(f"Others changed {names.shown(commits[0].name)} {COMMIT_TRIES} times in the meantime.")

    def _staged(self, branch: str, commit: Commit, written: list[str]) -> Swap:
        backing = self._backing
        start = backing.pointers.find(branch, commit.name)
        if commit.creates:
            if start is not None:
                raise AlreadyThere(f"Requirement failed: table already exists: {names.shown(commit.name)}")
            backing.pointers.check_free(branch, commit.name, TABLE)
        elif start is None:
            raise missing(commit.name, TABLE)
        base = backing.files.table(start) if start else None
        requirements.check(commit.request.requirements, base)
        result = changes.changed(base, commit.request.updates, start or "")
        if start and result is base:
            return Swap(commit.name, start, start)
        before = json.loads(backing.files.raw(start)) if start else {}
        end = new_location(result.location, result.properties, start or "")
        backing.files.write(end, changes.as_json(result, before, commit.sent))
        written.append(end)
        return Swap(commit.name, start, end)

    def _forget(self, written: Sequence[str]) -> None:
        for location in written:
            self._backing.files.remove(location)


def put_new(backing: Backing, call: Call, swap: Swap, content: bytes, note: Note = no_note) -> None:
    """Write the first metadata file of a table or view and point at it."""
    backing.files.write(swap.end, content)
    try:
        backing.pointers.swap(call.branch, [swap], note)
    except Problem:
        backing.files.remove(swap.end)
        raise


def _identified(change: object) -> TableName:
    identifier = change.get("identifier") if isinstance(change, dict) else None
    return identified(identifier)


def identified(identifier: object) -> TableName:
    """The table or view that a body names."""
    if not isinstance(identifier, dict) or not isinstance(identifier.get("namespace"), list):
        raise Problem("A table is named by its namespace and its name.")
    levels = [str(level) for level in identifier["namespace"]]
    return names.table_name(names.namespace_key(levels), identifier.get("name"))
