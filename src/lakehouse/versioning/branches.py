"""Create, compare, merge and drop branches and tags."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Protocol

from lakehouse.core.catalog import Catalog
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import (
    BadNameError,
    BranchProtectedError,
    NoSuchBranchError,
    NoSuchTableError,
    RunBlockedError,
    RunConflictError,
)
from lakehouse.core.files import LOCAL, Files
from lakehouse.core.format import TableFormat
from lakehouse.core.names import MAIN, TableName, check_part, nearest
from lakehouse.core.refs import Change, Commit, InternalBranch, Published, Ref, acting_author
from lakehouse.core.result import Result
from lakehouse.engines.duckdb import DuckDB
from lakehouse.process.pids import current_process
from lakehouse.tables.fork import set_current
from lakehouse.versioning.combine import Combiner
from lakehouse.versioning.diff import TableChange, changed_rows, count_rows
from lakehouse.versioning.log import Log
from lakehouse.versioning.publish import Publisher


class BranchRun(Protocol):
    """The run that created a branch: the part of its record that decides whether the branch may be merged or dropped."""

    @property
    def id(self) -> str: ...
    @property
    def pipeline(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def author(self) -> str: ...
    @property
    def message(self) -> str: ...


class BranchRuns(Protocol):
    """The records of the runs that created branches; `runs` is above this package and implements it."""

    def of_branch(self, branch: str) -> BranchRun | None:
        """The run that created a branch; None if a user created it."""

    def set_state(self, run: str, state: str, commit: str = "") -> None:
        """Record that the branch of a run was published or dropped."""


@dataclass(frozen=True)
class Branches:
    """The branches and tags of a lake. A run's branch is merged and dropped together with its record.

    >>> branches = lake.refs.branches
    >>> branches.create("trial")
    'trial'
    >>> with lake.branch("trial") as trial:
    ...     report = trial.ingest_rows([{"id": 4, "name": "Di", "score": 20}], into="crm.leads", key=["id"])
    >>> [(change.table, change.rows_added) for change in branches.diff("trial")]
    [('crm.leads', 1)]
    >>> branches.merge("trial", message="one more").done
    True
    >>> branches.create_tag("v1")
    'v1'
    """

    catalog: Catalog
    publisher: Publisher
    iceberg: TableFormat
    duckdb: DuckDB
    runs: BranchRuns
    combiner: Combiner
    author: str = ""
    files: Files = LOCAL

    def list(self) -> Sequence[tuple[Ref, BranchRun | None]]:
        """Every branch except main, with the run that created it, if one did."""
        return [(ref, self.runs.of_branch(ref.name)) for ref in self.catalog.branch_refs()]

    def create(self, name: str, from_ref: str = MAIN, message: str = "", table: str = "", at: str = "") -> str:
        """Create a branch of all tables from main, another branch or a tag, without copying data; returns its name.

        Args:
            table: this table starts as it was at another moment, rows and columns; the others are as in `from_ref`.
            at: the moment: a WHEN of the table.
        """
        branch = _user_name(name, "branch")
        self.catalog.create_branch(branch, from_ref.lower(), self._commit("branch", message))
        if table:
            self._set_back(branch, TableName.parse(table), at)
        return branch

    def _set_back(self, branch: str, table: TableName, at: str) -> None:
        """Make a table on a new branch what it was at a WHEN; without one, the branch is dropped again."""
        try:
            iceberg, catalog = self.iceberg.on(branch), self.catalog.on(branch)
            if not iceberg.has(table):
                raise NoSuchTableError(str(table))  # a Hudi table has no branches
            before, snapshot = catalog.pointer(table), iceberg.resolve(table, at, datetime.now(UTC))
            set_current(catalog, table, snapshot, self.files)
            catalog.record_statement(table, before, self._commit("rollback", f"{table} to snapshot {snapshot}"))
        except BaseException:
            self.catalog.drop_branch(branch)
            raise

    def drop(self, name: str) -> None:
        """Drop a branch with its unpublished changes; the record of its run stays."""
        run = self.runs.of_branch(name.lower())
        if run is not None and run.state == "running":
            raise RunBlockedError(f"Run {run.id} is still running.", "Stop it first.")
        if not self.catalog.drop_branch(name.lower()):
            known = [ref.name for ref in self.catalog.branch_refs()]
            near = ", ".join(nearest(name, known) or known[:10]) or "none beside main"
            raise NoSuchBranchError(f"There is no branch {name}.", f"There are: {near}.")
        if run is not None and run.state == "kept":
            self.runs.set_state(run.id, "dropped")

    def changes(self, name: str) -> Sequence[Change]:
        """The tables that a branch changed since it was created."""
        return self.catalog.changes(name.lower())

    def diff(self, name: str) -> Sequence[TableChange]:
        """The changes that a merge would publish: columns and rows added, removed and changed, by table."""
        changes, both = self.catalog.changes(name.lower()), set(self.catalog.conflicts(name.lower()))
        conflicts = self.combiner.obstacles([change for change in changes if change.table in both])
        return count_rows(self.iceberg, self.duckdb, changes, list(conflicts))

    def diff_rows(self, name: str, table: TableName, limit: int = 100) -> Result:
        """The rows of a table that merging a branch would change; none if the branch has not changed it."""
        changes = {change.table: change for change in self.catalog.changes(name.lower())}
        if table not in changes:
            pointer = self.catalog.on(name.lower()).pointer(table)
            if pointer is None:
                known = [str(changed) for changed in changes]
                raise NoSuchTableError(str(table), nearest(str(table), known) or known, 1)
            changes[table] = Change(table, pointer, pointer)
        return changed_rows(self.iceberg, self.duckdb, changes[table], limit)[1]

    def merge(self, name: str, message: str = "") -> Published:
        """Publish a branch to main: all its tables at once, or none.

        Where main has changed a table of the branch as well, the rows of both are combined if the table's key proves that they
        changed different rows; otherwise BranchConflictError names some of the keys.
        """
        name = name.lower()
        run = self.runs.of_branch(name)
        if run is not None:
            return self._merge_run(name, run, message)
        if MAIN in self.publisher.protected:
            raise BranchProtectedError(
                f"main is protected (branches.protected): only runs publish to it, and {name} is not the branch of a run.",
                "Make the change with a pipeline: lake run NAME. Show the branch: lake branch diff " + name,
            )
        commit = self._commit("merge", message or f"merge of {name}")
        if not self.catalog.conflicts(name) and (done := self.publisher.publish(name, commit)):
            return done
        done = self.combiner.publish(self.catalog.changes(name), name, commit)
        self.catalog.drop_branch(name)
        return done

    def _merge_run(self, branch: str, run: BranchRun, message: str) -> Published:
        if run.state != "kept":
            raise RunBlockedError(
                f"Run {run.id} is {run.state}: only a run that succeeded and was kept can be published.",
                f"Inspect it with: lake runs show {run.id}",
            )
        author = acting_author() or run.author or self.author
        done = self.publisher.publish(
            branch, Commit("merge", author, message or run.message, run.id, run.pipeline), tag=branch
        )
        if not done:
            raise RunConflictError(
                f"Tables of run {run.id} have changed on main since: {', '.join(map(str, done.conflicts))}.",
                "Run the pipeline again on their current state.",
            )
        self.runs.set_state(run.id, "published", done.entry)
        return done

    # ---- tags ---------------------------------------------------------------------------------------------------

    def tags(self) -> Sequence[Ref]:
        """Every tag."""
        return self.catalog.tags()

    def create_tag(self, name: str, from_ref: str = MAIN, message: str = "", table: str = "", at: str = "") -> str:
        """Tag the current state of all tables, under a name that WHEN accepts; `table` and `at` are those of `create`."""
        tag, source = _user_name(name, "tag"), from_ref.lower()
        if not table:
            self.catalog.create_tag(tag, source, self._commit("tag", message))
            return tag
        branch = InternalBranch.new("maintain").name
        self.catalog.create_branch(branch, source, current_process().sign(self._commit("branch", "")))
        try:
            self._set_back(branch, TableName.parse(table), at)
            self.catalog.create_tag(tag, branch, self._commit("tag", message or f"{table} as of {at}"))
        finally:
            self.catalog.drop_branch(branch)
        return tag

    def drop_tag(self, name: str) -> None:
        """Drop a tag."""
        if not self.catalog.drop_tag(name.lower()):
            known = [ref.name for ref in self.catalog.tags()]
            near = ", ".join(nearest(name, known) or known[:10]) or "none"
            raise NoSuchBranchError(f"There is no tag {name}.", f"There are: {near}.")

    def _commit(self, kind: str, message: str) -> Commit:
        return Commit(kind, self.author, message)


def _user_name(name: str, kind: str) -> str:
    folded = check_part(name, kind)
    if internal := InternalBranch.parse(folded):
        raise BadNameError(
            f"{name!r} starts with {internal.kind}_, which is reserved for branches of the lake itself.",
            "Choose another name.",
        )
    return folded


@dataclass(frozen=True)
class Refs:
    """The branches, tags and log of a lake."""

    branches: Branches
    log: Log
    publisher: Publisher
    author: str = ""
    """Commit author (default: OS user)."""
