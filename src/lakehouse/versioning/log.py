"""The log of a lake: publishes and the direct commits of other engines; and revert."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from lakehouse.core.catalog import Catalog
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BranchConflictError, BranchProtectedError, NoSuchCommitError, TableError
from lakehouse.core.files import LOCAL, Files
from lakehouse.core.format import TableFormat
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.refs import Change, Commit, LogEntry, Published, run_branch
from lakehouse.core.tables import Snapshot
from lakehouse.versioning.combine import Combiner
from lakehouse.versioning.diff import TableChange, describe_changes
from lakehouse.versioning.publish import Publisher

#: The number of entries that are searched for a commit.
_SEARCHED_ENTRIES = 10_000
#: The number of entries near the time of a snapshot that are searched for it.
_NEAREST_ENTRIES = 20


@dataclass(frozen=True)
class LogLine:
    """A change on main or a branch: author, time, message and tables."""

    commit: str
    """The number that `lake revert` takes; empty for a commit of another engine."""
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
    """The history of a branch.

    >>> report = lake.ingest_rows([{"id": 4, "name": "Di", "score": 20}], into="crm.leads", key=["id"])
    >>> line = lake.refs.log.lines(limit=1)[0]
    >>> line.what, line.tables
    ('ingest', ('crm.leads',))
    >>> lake.refs.log.revert(line.commit).done
    True
    >>> lake.sql("select count(*) from crm.leads").rows()
    [(3,)]
    """

    catalog: Catalog
    iceberg: TableFormat
    publisher: Publisher
    combiner: Combiner
    author: str = ""
    files: Files = LOCAL

    def lines(
        self, table: TableName | None = None, limit: int = 20, branch: str = MAIN, snapshot: str = ""
    ) -> list[LogLine]:
        """The changes of all tables or of one, newest first.

        Args:
            snapshot: only the commit that published this snapshot of the table.
        """
        if table is not None and snapshot:
            line = self.commit_of(table, snapshot, branch)
            return [line] if line else []
        return self._lines(table, limit, branch, None)

    def recent(self, tables: Sequence[TableName], limit: int = 20, branch: str = MAIN) -> list[LogLine]:
        """The changes of all tables, newest first; those of other engines only to these tables, because each is read for them.

        >>> [line.what for line in lake.refs.log.recent([TableName.parse("crm.leads")], limit=1)]
        ['ingest']
        """
        return self._lines(None, limit, branch, tables)

    def _lines(
        self, table: TableName | None, limit: int, branch: str, tables: Sequence[TableName] | None
    ) -> list[LogLine]:
        branch_catalog, iceberg = self.catalog.on(branch), self.iceberg.on(branch)
        entries = list(branch_catalog.log(table, limit))
        if branch != MAIN:  # the branch starts from what was published on main
            entries += self.catalog.log(table, limit)
        lines = [_line(entry) for entry in entries]
        oldest = min((line.at for line in lines), default=None) if len(entries) >= limit else None
        searched = [table] if table else list(iceberg.tables() if tables is None else tables)
        # One read of the catalog for all of them.
        lines += self._direct(iceberg.pin(searched), searched, self._logged_snapshots(entries), oldest)
        return sorted(lines, key=lambda line: line.at, reverse=True)[:limit]

    def revert(self, commit: str, message: str = "") -> Published:
        """Undo a publish, named by its number or its run, in all its tables at once; refused if one has changed since."""
        entry = self._entry(commit)
        changes = [Change(change.table, change.after, change.before) for change in entry.tables]
        self._check_there(entry)
        text = message or f"revert of {entry.id}: {entry.commit.message}"
        done = self.publisher.revert(entry.id, changes, Commit("revert", self.author, text, entry.commit.run))
        if not done:
            changed = ", ".join(map(str, done.conflicts))
            raise BranchConflictError(
                f"{changed} changed after commit {entry.id}, which would be lost.",
                f"Nothing was reverted. Revert what came later first: lake log {done.conflicts[0]}",
            )
        return done

    def preview_revert(self, commit: str) -> list[TableChange]:
        """What a revert would change, table by table; one that has changed since is a conflict, and the revert refused.

        >>> report = lake.ingest_rows([{"id": 4, "name": "Di", "score": 20}], into="crm.leads", key=["id"])
        >>> change = lake.refs.log.preview_revert(lake.refs.log.lines(limit=1)[0].commit)[0]
        >>> change.table, change.rows_before, change.rows_after
        ('crm.leads', 4, 3)
        """
        entry = self._entry(commit)
        self._check_there(entry)
        now = self.catalog.pointers([change.table for change in entry.tables])
        described = describe_changes(self.iceberg, [change.reversed() for change in entry.tables])
        return [
            replace(preview, conflict=now.get(change.table) != change.after)
            for change, preview in zip(entry.tables, described, strict=True)
        ]

    def commit_of(self, table: TableName, snapshot: str, branch: str = MAIN) -> LogLine | None:
        """The entry of the log that published a snapshot of a table; None if another engine committed it.

        >>> report = lake.ingest_rows([{"id": 4, "name": "Di", "score": 20}], into="crm.leads", key=["id"])
        >>> line = lake.refs.log.commit_of(TableName.parse("crm.leads"), lake.history("crm.leads")[-1].id)
        >>> line.what
        'ingest'
        """
        iceberg = self.iceberg.on(branch)
        at = next((known.at for known in _history(iceberg, table) if known.id == snapshot), None)
        if at is None:
            return None
        moment = at
        entries = self.catalog.on(branch).log(table, _SEARCHED_ENTRIES)
        # A publish follows its snapshot closely, so that few metadata files are read however long the log is.
        nearest = sorted(entries, key=lambda entry: abs((_moment(entry.at) - moment).total_seconds()))
        for entry in nearest[:_NEAREST_ENTRIES]:
            for change in entry.tables:
                if change.table == table and snapshot in self._logged_snapshots([replace(entry, tables=(change,))]):
                    return _line(entry)
        return None

    def cherry_pick(self, commit: str, message: str = "") -> Published:
        """Publish what one commit changed, on any branch, to main: all its tables at once, or none.

        Where main has another state of a table than the commit started from, rows are combined by key as in a merge.
        """
        if MAIN in self.publisher.protected:
            raise BranchProtectedError(
                "main is protected (branches.protected): only runs publish to it.",
                "Make the change with a pipeline: lake run NAME.",
            )
        entry = self._entry_of_any_branch(commit)
        self._check_there(entry)
        text = message or f"cherry-pick of {entry.id}: {entry.commit.message}"
        picked = Commit("cherry-pick", self.author, text, source=entry.commit.source)
        return self.combiner.publish(entry.tables, f"commit {entry.id}", picked)

    def _entry_of_any_branch(self, name: str) -> LogEntry:
        for branch in self.catalog.branches():
            for entry in self.catalog.on(branch).log(limit=_SEARCHED_ENTRIES):
                if entry.id == name:
                    return entry
        return self._entry(name)

    def _check_there(self, entry: LogEntry) -> None:
        """Raise if maintenance has removed what the tables were before a commit."""
        for change in entry.tables:
            if change.before is None:
                continue
            try:
                self.files.read(change.before)  # not through a cache, which still has it
            except OSError as exc:
                raise NoSuchCommitError(
                    f"What {change.table} was before commit {entry.id} is no longer there.",
                    "Maintenance keeps it for maintenance.keep_days.",
                ) from exc

    def _entry(self, name: str) -> LogEntry:
        entries = self.catalog.log(limit=_SEARCHED_ENTRIES)
        by_number = next((entry for entry in entries if entry.id == name), None)
        entry = by_number or self.catalog.published_by(name.removeprefix(run_branch("")))
        if entry is None:
            raise NoSuchCommitError(f"The log has no commit and no published run {name!r}.", "All of them: lake log")
        return entry

    # ---- commits of other engines -----------------------------------------------------------------------------------

    def _direct(
        self, iceberg: TableFormat, tables: Sequence[TableName], known: set[str], oldest: datetime | None
    ) -> list[LogLine]:
        """The snapshots that no entry of the log published."""
        lines = []
        for table in tables:
            for snapshot in _history(iceberg, table):
                if snapshot.id not in known and (oldest is None or snapshot.at >= oldest):
                    lines.append(_of_snapshot(table, snapshot))
        return lines

    def _logged_snapshots(self, entries: Iterable[LogEntry]) -> set[str]:
        """The snapshots that entries of the log published."""
        snapshots: set[str] = set()
        for entry in entries:
            for change in entry.tables:
                snapshots |= self._snapshots(change.table, change.after) - self._snapshots(change.table, change.before)
        return snapshots

    def _snapshots(self, table: TableName, pointer: str | None) -> set[str]:
        if pointer is None:
            return set()
        return {snapshot.id for snapshot in _history(self.iceberg.at_pointers({table: pointer}), table)}


def _history(iceberg: TableFormat, table: TableName) -> Sequence[Snapshot]:
    try:
        return iceberg.history(table)
    except TableError:  # missing or broken metadata, which `lake tables` reports
        return ()


def _line(entry: LogEntry) -> LogLine:
    commit = entry.commit
    return LogLine(
        commit=entry.id,
        at=_moment(entry.at),
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


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
