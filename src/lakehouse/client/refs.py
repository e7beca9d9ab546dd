"""Branches, tags and log of a service, with the methods of `Lake.refs`."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse.client.calls import remote, request_for, send
from lakehouse.client.decode import decode
from lakehouse.client.transport import Transport
from lakehouse.core.dataclass import dataclass
from lakehouse.core.names import MAIN
from lakehouse.core.refs import Published, Ref
from lakehouse.operations import BY_NAME
from lakehouse.runs.model import RunRecord
from lakehouse.versioning.branches import Branches
from lakehouse.versioning.diff import TableChange
from lakehouse.versioning.log import Log


def _published(commit: str) -> Published:
    return Published(True, commit)


@dataclass(frozen=True)
class RemoteBranches:
    """The branches and tags of a service."""

    _service: Transport
    _branch: str = MAIN

    def list(self) -> Sequence[tuple[Ref, RunRecord | None]]:
        """Every branch except main, with the run that created it, if one did."""
        shown = send(self, BY_NAME["branches"], request_for(BY_NAME["branches"], {}))
        runs: dict[str, RunRecord] = {}
        if any(branch["pipeline"] for branch in shown):
            runs = {run.branch: run for run in send(self, BY_NAME["runs"], request_for(BY_NAME["runs"], {}))}
        return [(decode(Ref, branch), runs.get(branch["name"])) for branch in shown]

    def diff(self, name: str) -> Sequence[TableChange]:
        """The changes that a merge would publish: columns and rows added, removed and changed, by table."""
        changes = self._service.json(request_for(BY_NAME["diff_branch"], {"name": name}))["changes"]
        return [decode(TableChange, change) for change in changes]

    create = remote(Branches.create)
    drop = remote(Branches.drop, lambda answer: None)
    diff_rows = remote(Branches.diff_rows)
    merge = remote(Branches.merge, _published)
    tags = remote(Branches.tags)
    create_tag = remote(Branches.create_tag)
    drop_tag = remote(Branches.drop_tag, lambda answer: None)


@dataclass(frozen=True)
class RemoteLog:
    """The history of a branch."""

    _service: Transport
    _branch: str = MAIN

    lines = remote(Log.lines)
    cherry_pick = remote(Log.cherry_pick, _published)
    revert = remote(Log.revert, _published)
    preview_revert = remote(Log.preview_revert)


@dataclass(frozen=True)
class RemoteRefs:
    """The branches, tags and log of a service."""

    branches: RemoteBranches
    log: RemoteLog
