"""Branches, tags and the log: list, create, compare, merge, drop, revert."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import BaseModel, Field

from lakehouse.core.errors import BadRequestError, ForbiddenError
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.refs import InternalBranch, Ref
from lakehouse.http.answers import page, plain
from lakehouse.http.registry import Branch, Limit, PageSize, PageToken, Routes
from lakehouse.http.service import Call, CallContext

routes = Routes("branches")
Name = Annotated[str, Path(description="Name of the branch or tag.", max_length=128)]
_NAME = Field(description="Letters, digits and _.", min_length=1, max_length=128)


class RefBody(BaseModel):
    """A new branch or tag."""

    name: str = _NAME
    from_ref: str = Field(MAIN, alias="from", description="Branch or tag to start from.", max_length=128)
    message: str = Field("", max_length=1000)
    table: str = Field("", max_length=300, description="A table that starts as it was at another moment.")
    at: str = Field("", max_length=200, description="That moment: a snapshot id, a tag, an ISO time, or words.")

    model_config = {"extra": "forbid", "json_schema_extra": {"example": {"name": "exp", "from": "main"}}}


class MessageBody(BaseModel):
    """The message of a commit."""

    message: str = Field("", max_length=1000)

    model_config = {"extra": "forbid", "json_schema_extra": {"example": {"message": "remove test leads"}}}


@routes.operation()
def branches(call: CallContext, page_size: PageSize = 0, page_token: PageToken = "") -> dict[str, Any]:
    """List the branches beside main, each with the run that created it."""
    listed = [
        {**plain(ref), "pipeline": run.pipeline if run else "", "run_state": run.state if run else ""}
        for ref, run in call.refs.branches.list()
        if call.principal.uses(ref.name) and _sees_run_of(call, ref)
    ]
    return page("branches", listed, page_size, page_token)


@routes.operation(status_code=201)
def create_branch(call: CallContext, body: RefBody) -> dict[str, Any]:
    """Create a branch of all tables, one of them as it was at another moment if the body says so. No data is copied."""
    _check_start(call, body)
    return {"name": call.refs.branches.create(body.name, body.from_ref, body.message, body.table, body.at)}


@routes.operation()
def diff_branch(call: CallContext, name: Name, table: str = "", limit: Limit = 100) -> dict[str, Any]:
    """The tables that a merge would change; with `table`, its changed rows."""
    call.lake(name)
    if table:
        rows: dict[str, Any] = plain(call.refs.branches.diff_rows(name, TableName.parse(call.table(table)), limit))
        return rows
    changes = [change for change in call.refs.branches.diff(name) if call.sees(change.table)]
    return {"changes": plain(changes)}


@routes.operation()
def merge(call: CallContext, name: Name, body: MessageBody) -> dict[str, Any]:
    """Publish a branch to main: all of its tables at once, or none."""
    call.principal.check_change(MAIN)
    call.lake(name)
    refs = call.refs
    call.principal.check_tables(change.table for change in refs.branches.changes(name))
    return {"commit": refs.branches.merge(name, body.message).entry}


@routes.operation()
def drop_branch(call: CallContext, name: Name) -> dict[str, Any]:
    """Drop a branch with its unpublished changes."""
    call.principal.check_change(name.lower())
    refs = call.refs
    if call.principal.namespaces:
        call.principal.check_tables(change.table for change in refs.branches.changes(name))
    made_by = {ref.name: ref.author for ref, _ in refs.branches.list()}
    if call.principal.scope == "agent" and made_by.get(name.lower(), refs.branches.author) != refs.branches.author:
        raise ForbiddenError("An agent drops only the branches that it created.", "Ask a person to drop it.")
    refs.branches.drop(name)
    return {"name": name.lower(), "dropped": True}


@routes.operation()
def tags(call: CallContext, page_size: PageSize = 0, page_token: PageToken = "") -> dict[str, Any]:
    """List the tags."""
    tags = call.refs.branches.tags()
    usable = [tag for tag in tags if call.principal.uses(tag.created_from) and _sees_run_of(call, tag)]
    return page("tags", usable, page_size, page_token)


@routes.operation(status_code=201)
def create_tag(call: CallContext, body: RefBody) -> dict[str, Any]:
    """Tag the state of all tables, one of them as it was at another moment if the body says so."""
    _check_start(call, body)
    return {"name": call.refs.branches.create_tag(body.name, body.from_ref, body.message, body.table, body.at)}


@routes.operation()
def drop_tag(call: CallContext, name: Name) -> dict[str, Any]:
    """Drop a tag. The tables do not change. Keys with limits drop the tags that they created, and so do agents."""
    made_by = {tag.name: tag.author for tag in call.refs.branches.tags()}
    if call.principal.is_process_user or made_by.get(name.lower()) != call.principal.author:
        call.principal.check_change(MAIN)
        call.principal.check_everywhere("A tag")
    call.refs.branches.drop_tag(name)
    return {"name": name.lower(), "dropped": True}


@routes.operation()
def log(
    call: CallContext,
    table: str = "",
    branch: Branch = "",
    limit: Annotated[int, Query(ge=1, le=1000, description="Maximum number of commits.")] = 20,
    snapshot: Annotated[str, Query(description="Only the commit of this snapshot of the table.", max_length=64)] = "",
) -> dict[str, Any]:
    """The commits of all tables or of one, newest first."""
    name = TableName.parse(call.table(table)) if table else None
    lake = call.lake(branch)
    if name is not None:
        lake.table(str(name))
    lines = call.refs.log.lines(name, limit, branch.lower() or MAIN, snapshot)
    return {"commits": plain([line for line in lines if all(call.sees(name) for name in line.tables)])}


def recent_commits(call: Call, branch: str, limit: int, tables: Sequence[str]) -> Any:
    """The newest commits that a page shows; those of other engines only to these tables, because each is read for them."""
    names = [TableName.parse(name) for name in tables]
    lines = call.refs.log.recent(names, limit, branch.lower() or MAIN)
    return plain([line for line in lines if all(call.sees(name) for name in line.tables)])


@routes.operation()
def cherry_pick(call: CallContext, commit: Name, body: MessageBody) -> dict[str, Any]:
    """Publish what one commit changed, on any branch, to main; refused if main has changed the same rows."""
    call.principal.check_change(MAIN)
    call.principal.check_everywhere("A cherry-pick")
    return {"picked": commit, "commit": call.refs.log.cherry_pick(commit, body.message).entry}


@routes.operation()
def preview_revert(call: CallContext, commit: Name) -> dict[str, Any]:
    """What a revert would change, table by table; a table that has changed since is a conflict, and the revert is refused."""
    call.principal.check_branch(MAIN)
    call.principal.check_everywhere("A revert")
    return {"reverts": commit, "changes": plain(call.refs.log.preview_revert(commit))}


@routes.operation()
def revert(call: CallContext, commit: Name, body: MessageBody) -> dict[str, Any]:
    """Undo a commit in all of its tables at once; refused if one has changed since."""
    call.principal.check_change(MAIN)
    call.principal.check_everywhere("A revert")
    return {"reverted": commit, "commit": call.refs.log.revert(commit, body.message).entry}


def _sees_run_of(call: Call, ref: Ref) -> bool:
    """Whether the caller may know the run that made a branch or tag, if one did: it names its pipeline."""
    is_of_others = InternalBranch.parse(ref.name) is not None and ref.author != call.principal.author
    return not (call.principal.namespaces and is_of_others)


def _check_start(call: Call, body: RefBody) -> None:
    """Check that the caller may use both branches, and that a branch or tag to start from exists or is reported so."""
    call.principal.check_branch(body.name.lower())
    call.check_when(body.from_ref)
    if body.from_ref.lower() not in {ref.name for ref in call.refs.branches.tags()}:
        call.lake(body.from_ref)
    if bool(body.table) != bool(body.at):
        raise BadRequestError("`table` and `at` belong together.", "Give both, or none of them.")
    if body.table:
        call.table(body.table)
        call.check_when(body.at)
