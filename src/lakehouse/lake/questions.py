"""Questions to a lake: the semantic layer's file, and what the agent reads the lake with."""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from zoneinfo import ZoneInfo

from lakehouse.agent import AgentSettings
from lakehouse.agent.ask import Asker, Clock, LakeReader
from lakehouse.agent.change import BranchDiff
from lakehouse.agent.refusal import Refusal
from lakehouse.agent.semantics import Entity, Semantics, parse, quoted
from lakehouse.core.cancel import CancelScope
from lakehouse.core.errors import (
    BadSettingError,
    EngineError,
    LakeError,
    NotSupportedError,
    StatementRefusedError,
    StatementTimeoutError,
    TableError,
)
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.requests import QueryRequest
from lakehouse.core.result import Result
from lakehouse.core.statement import TableUse
from lakehouse.core.tables import Snapshot, TableInfo

if TYPE_CHECKING:
    from lakehouse.agent.model import UsageLog
    from lakehouse.pipelines import Pipeline
    from lakehouse.query.route import CheckedStatement
    from lakehouse.versioning.branches import Branches, Refs
    from lakehouse.versioning.diff import TableChange


class AskedLake(Protocol):
    """What of a `Lake` is needed here."""

    def tables(self) -> list[TableInfo]: ...
    def check(self, request: QueryRequest) -> CheckedStatement: ...
    def run_checked(self, checked: CheckedStatement) -> Result: ...
    def snapshot_at(self, name: str, when: str) -> str: ...
    def branch(self, name: str) -> AskedLake: ...
    def query(self, request: QueryRequest) -> Result: ...
    def history(self, name: str) -> Sequence[Snapshot]: ...
    @property
    def refs(self) -> Refs: ...
    def pipelines(self) -> Mapping[str, Pipeline]: ...
    @property
    def semantics_file(self) -> Path: ...
    @property
    def dbt_project(self) -> Path: ...


def open_asker(
    reader: LakeReader, file: Path, clock: Clock, settings: AgentSettings, log: Callable[[], UsageLog]
) -> Asker:
    """What answers questions with the layer in a file, if there is one, and with a model, if the settings name one.

    Args:
        log: opens the log of the model's use.
    """
    try:
        ZoneInfo(clock.zone)
    except (KeyError, ValueError, OSError) as exc:
        raise BadSettingError(
            f"time_zone = {clock.zone!r} is not a time zone.", "Write it as Europe/Rome or UTC."
        ) from exc
    if not settings.model:
        return Asker(reader, written_layer(file), clock)
    from lakehouse.agent.advice import AdvisedAsker
    from lakehouse.agent.model import RemoteModel

    return AdvisedAsker(reader, RemoteModel(settings, log()), settings, written_layer(file), clock)


def written_layer(file: Path) -> Semantics | None:
    """The layer that people wrote for a lake; None if there is no file."""
    try:
        return parse(file.read_text(), str(file))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as exc:
        raise BadSettingError(f"{file} cannot be read: {exc}.", "Check its permissions.") from exc


class LocalReader:
    """Reads a lake of this machine."""

    def __init__(self, lake: AskedLake) -> None:
        self._lake = lake

    def tables(self) -> Sequence[TableInfo]:
        """Every table."""
        return self._lake.tables()

    def query(self, sql: str, limit: int, timeout_s: float | None = None) -> Result:
        """Run a statement through the guard, as any other; one that is no read is refused."""
        checked = self._checked(sql, limit)
        if timeout_s is None:
            return self._lake.run_checked(checked)
        with stopped_after(timeout_s):
            result = self._lake.run_checked(checked)
            result.rows()  # they are computed when they are first asked for
            return result

    def uses(self, sql: str) -> Sequence[TableUse]:
        """The tables that a read names."""
        return self._checked(sql, 1).statement.uses

    def _checked(self, sql: str, limit: int) -> CheckedStatement:
        checked = self._lake.check(QueryRequest(sql, limit=limit))
        if checked.kind != "read":
            raise StatementRefusedError("A question only reads.", "Write the change with `lake sql`.")
        return checked

    def snapshot(self, table: str, when: str) -> str:
        """The id of a table's snapshot at a WHEN."""
        return self._lake.snapshot_at(table, when)

    def on(self, branch: str) -> LocalReader:
        """A reader of another branch."""
        return LocalReader(self._lake.branch(branch))


class BranchWriter:
    """Makes a change on a branch of its own."""

    def __init__(
        self,
        branches: Branches,
        check: Callable[[str, str], CheckedStatement],
        run: Callable[[str, str], None],
        snapshot: Callable[[str, str], str],
    ) -> None:
        """
        Args:
            check: checks a statement for a branch that does not exist yet, within the rights of the caller.
            run: runs a statement on a branch.
            snapshot: the id of a table's current snapshot on a branch.
        """
        self._branches, self._check, self._run, self._snapshot = branches, check, run, snapshot

    def change(self, sql: str, message: str) -> BranchDiff:
        """Run a statement that changes rows of one table on a new branch, and leave the branch."""
        branch = f"ask_{secrets.token_hex(4)}"
        table = _changed_table(self._check(sql, branch))
        self._branches.create(branch, message=message)
        try:
            self._run(sql, branch)
            changed = self._branches.diff(branch)
            # Spark commits a delete of no row, too.
            if not any(change.rows_added or change.rows_removed or change.rows_changed for change in changed):
                raise Refusal(f"No row of {table} is like that, so nothing was changed.")
            return self._diff(branch, table, changed)
        except BaseException:
            self._branches.drop(branch)
            raise

    def _diff(self, branch: str, table: TableName, changed: Sequence[TableChange]) -> BranchDiff:
        counts = [
            f"{change.table}: {change.rows_added} rows added, {change.rows_removed} removed, {change.rows_changed} changed."
            for change in changed
        ]
        rows = self._branches.diff_rows(branch, table)
        snapshots = {f"{change.table} on {branch}": self._snapshot(change.table, branch) for change in changed}
        shown = tuple(tuple(row) for row in rows.rows())
        return BranchDiff(branch, " ".join(counts), tuple(rows.names), shown, snapshots)


def local_writer(lake: AskedLake) -> BranchWriter:
    """Changes a lake of this machine."""

    def run(sql: str, branch: str) -> None:
        lake.query(QueryRequest(sql, branch=branch)).rows()

    return BranchWriter(
        lake.refs.branches,
        lambda sql, _: lake.check(QueryRequest(sql)),
        run,
        lambda table, branch: lake.branch(branch).history(table)[-1].id,
    )


def check_may_change(branch: str) -> None:
    """Refuse a change that would start from a branch: merging it would publish the branch as well."""
    if branch and branch != MAIN:
        raise NotSupportedError(
            f"A change is made on a branch of its own from main, not from {branch}.", "Leave the branch out."
        )


def _changed_table(checked: CheckedStatement) -> TableName:
    """The one table whose rows a statement changes; any other statement is refused."""
    statement = checked.statement
    targets = {use.name for use in statement.uses if use.is_target}
    is_plain = not (statement.creates or statement.renames or statement.truncates)
    if checked.kind != "write" or not is_plain or len(targets) != 1 or not _ROW_CHANGE.match(statement.text):
        raise StatementRefusedError(
            "A change is one DELETE, UPDATE, INSERT or MERGE of one table.", "Anything else: `lake sql`."
        )
    return targets.pop()


_ROW_CHANGE = re.compile(r"\s*(?:DELETE\s+FROM|UPDATE|INSERT\s+INTO|MERGE\s+INTO)\b", re.IGNORECASE)


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Stop the statements of the block after a time, with StatementTimeoutError."""
    scope = CancelScope()
    timer = threading.Timer(seconds, scope.cancel)
    timer.daemon = True
    timer.start()
    try:
        with scope.active():
            yield
    except LakeError as exc:
        if not scope.is_canceled:
            raise
        raise StatementTimeoutError(f"The statement took longer than {seconds:g} s.", "Ask for less.") from exc
    finally:
        timer.cancel()


# ---- the layer's file ------------------------------------------------------------------------------------------------


def draft_layer(lake: AskedLake) -> str:
    """The text of a layer of all tables: what the pipelines ship, and a draft of the others from schemas, keys and comments."""
    from lakehouse.agent.draft import describe, draft, shipped, to_toml

    tables = [info for info in lake.tables() if not info.problem]
    descriptions = {
        table.name: table.description for pipeline in lake.pipelines().values() for table in pipeline.tables
    }
    names = {str(info.name) for info in tables}
    drafted = draft(tables, {**describe(lake.dbt_project, names), **descriptions})
    return to_toml(shipped().of_tables(names).merged(drafted))


def write_draft(lake: AskedLake) -> Path:
    """Write the draft to the file of the layer, which must not exist."""
    file = lake.semantics_file
    try:
        with file.open("x") as stream:
            stream.write(draft_layer(lake))
    except FileExistsError as exc:
        raise BadSettingError(f"{file} exists.", "Edit it, or move it away first.") from exc
    return file


def check_layer(lake: AskedLake) -> list[tuple[str, str, str]]:
    """What of the layer does not fit the tables, as (entity, name, problem)."""
    layer = written_layer(lake.semantics_file)
    tables = {str(info.name): info for info in lake.tables()}
    if layer is None:
        from lakehouse.agent.ask import layer_for

        layer = layer_for(list(tables.values()), None)
    findings = []
    for entity in layer.entities.values():
        if entity.table not in tables:
            findings.append((entity.name, entity.table, "There is no such table."))
            continue
        columns = {column.name for column in tables[entity.table].columns}
        findings += [
            (entity.name, column, "There is no such column.") for column in entity.key if column not in columns
        ]
        parts = {dimension.name: dimension.sql for dimension in entity.dimensions.values()}
        parts |= {metric.name: _with_filter(metric.expression, metric.filter) for metric in entity.metrics.values()}
        findings += _failing(lake, entity, parts)
    for join in layer.joins:
        for name, column in ((join.entity, join.column), (join.to_entity, join.to_column)):
            findings += _failing(lake, layer.entities[name], {f"join on {column}": quoted(column)})
    return findings


def _with_filter(expression: str, condition: str) -> str:
    return f"CASE WHEN max({condition}) THEN {expression} END" if condition else expression


def _failing(lake: AskedLake, entity: Entity, parts: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """The expressions that the table does not have; all are tried at once, and one by one only if that fails."""
    if not parts or _problem(lake, entity, list(parts.values())) == "":
        return []
    tried = {name: _problem(lake, entity, [sql]) for name, sql in parts.items()}
    return [(entity.name, name, problem) for name, problem in tried.items() if problem]


def _problem(lake: AskedLake, entity: Entity, expressions: Sequence[str]) -> str:
    """Why a query of expressions fails; empty if it does not. Plain columns and aggregates are tried apart."""
    plain = [sql for sql in expressions if "(" not in sql]
    other = [sql for sql in expressions if "(" in sql]
    for listed in filter(None, (plain, *([sql] for sql in other))):
        try:
            LocalReader(lake).query(f"SELECT {', '.join(listed)} FROM {entity.table} LIMIT 1", 1).rows()
        except (EngineError, NotSupportedError, TableError) as exc:
            return exc.message
    return ""
