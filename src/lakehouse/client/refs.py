"""Branches, tags and log of a service, with the methods of `Lake.refs`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from lakehouse.client.decode import decode, decode_all
from lakehouse.client.transport import Transport
from lakehouse.client.values import result_of
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.refs import Published, Ref
from lakehouse.core.result import Result
from lakehouse.core.tables import Column
from lakehouse.runs.model import RunRecord
from lakehouse.versioning.diff import TableChange
from lakehouse.versioning.log import LogLine


@dataclass(frozen=True)
class RemoteBranches:
    """The branches and tags of a service."""

    service: Transport

    def list(self) -> Sequence[tuple[Ref, RunRecord | None]]:
        """Every branch except main, with the run that created it, if one did."""
        found = self.service.pages("/branches", "branches")
        runs: dict[str, RunRecord] = {}
        if any(each["pipeline"] for each in found):
            runs = {run.branch: run for run in decode_all(RunRecord, self.service.pages("/runs", "runs"))}
        return [(decode(Ref, each), runs.get(each["name"])) for each in found]

    def create(self, name: str, from_ref: str = MAIN, message: str = "") -> str:
        """Create a branch of all tables from main, another branch or a tag, without copying data; returns its name."""
        return str(self.service.post("/branches", {"name": name, "from": from_ref, "message": message})["name"])

    def drop(self, name: str) -> None:
        """Drop a branch with its unpublished changes."""
        self.service.delete(f"/branches/{quote(name, safe='')}")

    def diff(self, name: str) -> Sequence[TableChange]:
        """The changes that a merge would publish: columns and rows added, removed and changed, by table."""
        return decode_all(TableChange, self.service.get(f"/branches/{quote(name, safe='')}/diff")["changes"])

    def diff_rows(self, name: str, table: TableName, limit: int = 100) -> Result:
        """The rows of a table that merging a branch would change."""
        found = self.service.get(f"/branches/{quote(name, safe='')}/diff", table=str(table), limit=limit)
        return result_of(decode_all(Column, found["columns"]), found["rows"], "duckdb")

    def merge(self, name: str, message: str = "") -> Published:
        """Publish a branch to main: all its tables at once, or none if main changed any of them."""
        done = self.service.post(f"/branches/{quote(name, safe='')}/merge", {"message": message})
        return Published(True, done["commit"])

    def tags(self) -> Sequence[Ref]:
        """Every tag."""
        return decode_all(Ref, self.service.pages("/tags", "tags"))

    def create_tag(self, name: str, from_ref: str = MAIN, message: str = "") -> str:
        """Tag the current state of all tables, under a name that WHEN accepts."""
        return str(self.service.post("/tags", {"name": name, "from": from_ref, "message": message})["name"])

    def drop_tag(self, name: str) -> None:
        """Drop a tag."""
        self.service.delete(f"/tags/{quote(name, safe='')}")


@dataclass(frozen=True)
class RemoteLog:
    """The history of a branch."""

    service: Transport

    def lines(self, table: TableName | None = None, limit: int = 20, branch: str = MAIN) -> list[LogLine]:
        """The changes of all tables or of one, newest first."""
        named = "" if branch == MAIN else branch
        found = self.service.get("/log", table=str(table) if table else "", limit=limit, branch=named)
        return decode_all(LogLine, found["commits"])

    def revert(self, commit: str, message: str = "") -> Published:
        """Undo a publish, named by its number or its run, in all its tables at once; refused if one has changed since."""
        done = self.service.post(f"/log/{quote(commit, safe='')}/revert", {"message": message})
        return Published(True, done["commit"])


@dataclass(frozen=True)
class RemoteRefs:
    """The branches, tags and log of a service."""

    branches: RemoteBranches
    log: RemoteLog
