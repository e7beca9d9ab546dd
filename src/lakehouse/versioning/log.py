"""The log of a lake: what was published through us, and what others committed directly, put together; and undone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from lakehouse.core.catalog import Catalog
from lakehouse.core.errors import BranchConflictError, NoSuchCommitError, TableError
from lakehouse.core.format import TableFormat
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.refs import RUN_PREFIX, Change, Commit, LogEntry, Published
from lakehouse.core.tables import Snapshot
from lakehouse.versioning.publish import Publisher

#: How far back a commit is looked for by its run.
_FAR_BACK = 10_000


@dataclass(frozen=True)
class LogLine:
    """A change that everybody saw: who, what, when, why, and the tables it touched."""

    commit: str
    """The number that `lake revert` takes; nothing for what an engine committed directly."""
    at: datetime
    what: str
    author: str
    run: str
    pipeline: str
    source: str
    message: str
    tables: tuple[str, ...]


@dataclass(frozen=True)
class Log:
    """What happened to the tables of a branch."""

    catalog: Catalog
    iceberg: TableFormat
    publisher: Publisher
    author: str = ""

    def lines(self, table: TableName | None = None, limit: int = 20, branch: str = MAIN) -> list[LogLine]:
        """The newest changes first: all, or those of one table."""
        here, iceberg = self.catalog.on(branch), self.iceberg.on(branch)
        entries = list(here.log(table, limit))
        if branch != MAIN:  # what it began with was published on main
            entries += self.catalog.log(table, limit)
        lines = [_line(entry) for entry in entries]
        oldest = min((line.at for line in lines), default=None) if len(entries) >= limit else None
        lines += self._direct(iceberg, [table] if table else list(iceberg.tables()), self._told_of(entries), oldest)
        return sorted(lines, key=lambda line: line.at, reverse=True)[:limit]

    def revert(self, commit: str, message: str = "") -> Published:
        """Undo a publish, named by its number or its run, in all its tables at once; refused if one has moved since."""
        entry = self._entry(commit)
        changes = [Change(each.table, each.after, each.before) for each in entry.tables]
        told = message or f"revert of {entry.id}: {entry.commit.message}"
        done = self.publisher.revert(entry.id, changes, Commit("revert", self.author, told))
        if not done:
            moved = ", ".join(map(str, done.conflicts))
            raise BranchConflictError(
                f"{moved} changed after commit {entry.id}, which would be lost.",
                f"Nothing was reverted. Revert what came later first: lake log {done.conflicts[0]}",
            )
        return done

    def _entry(self, named: str) -> LogEntry:
        entries = self.catalog.log(limit=_FAR_BACK)
        by_number = next((each for each in entries if each.id == named), None)
        found = by_number or self.catalog.published_by(named.removeprefix(RUN_PREFIX))
        if found is None:
            raise NoSuchCommitError(f"The log has no commit and no published run {named!r}.", "All of them: lake log")
        return found

    # ---- what did not pass through us -------------------------------------------------------------------------------

    def _direct(
        self, iceberg: TableFormat, tables: Sequence[TableName], known: set[str], oldest: datetime | None
    ) -> list[LogLine]:
        """Snapshots that no entry of the log brought: somebody's own statements."""
        found = []
        for table in tables:
            for snapshot in _history(iceberg, table):
                if snapshot.id not in known and (oldest is None or snapshot.at >= oldest):
                    found.append(_of_snapshot(table, snapshot))
        return found

    def _told_of(self, entries: Iterable[LogEntry]) -> set[str]:
        """The snapshots that entries brought, which are not told of twice."""
        found: set[str] = set()
        for entry in entries:
            for change in entry.tables:
                found |= self._snapshots(change.table, change.after) - self._snapshots(change.table, change.before)
        return found

    def _snapshots(self, table: TableName, pointer: str | None) -> set[str]:
        if pointer is None:
            return set()
        return {snapshot.id for snapshot in _history(self.iceberg.at_pointers({table: pointer}), table)}


def _history(iceberg: TableFormat, table: TableName) -> Sequence[Snapshot]:
    try:
        return iceberg.history(table)
    except TableError:  # its metadata is gone or broken, which `lake tables` tells of
        return ()


def _line(entry: LogEntry) -> LogLine:
    commit = entry.commit
    return LogLine(
        commit=entry.id,
        at=datetime.fromisoformat(entry.at).astimezone(UTC),
        what=commit.kind,
        author=commit.author,
        run=commit.run,
        pipeline=commit.pipeline,
        source=commit.source,
        message=commit.message,
        tables=tuple(str(change.table) for change in entry.tables),
    )


def _of_snapshot(table: TableName, snapshot: Snapshot) -> LogLine:
    notes = snapshot.notes
    return LogLine(
        commit="",
        at=snapshot.at,
        what=snapshot.operation,
        author=notes.get("author", ""),
        run=notes.get("run", ""),
        pipeline=notes.get("pipeline", ""),
        source=snapshot.source,
        message=notes.get("message", f"snapshot {snapshot.id}"),
        tables=(str(table),),
    )
