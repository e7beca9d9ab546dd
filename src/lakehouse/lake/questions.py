"""Questions to a lake: the semantic layer's file, and what the agent reads the lake with."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from zoneinfo import ZoneInfo

from lakehouse.agent import AgentSettings
from lakehouse.agent.ask import Asker, Clock, LakeReader
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
from lakehouse.core.requests import QueryRequest
from lakehouse.core.result import Result
from lakehouse.core.statement import TableUse
from lakehouse.core.tables import TableInfo

if TYPE_CHECKING:
    from lakehouse.agent.model import UsageLog
    from lakehouse.pipelines import Pipeline
    from lakehouse.query.route import CheckedStatement


class AskedLake(Protocol):
    """What of a `Lake` is needed here."""

    def tables(self) -> list[TableInfo]: ...
    def check(self, request: QueryRequest) -> CheckedStatement: ...
    def run_checked(self, checked: CheckedStatement) -> Result: ...
    def snapshot_at(self, name: str, when: str) -> str: ...
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
