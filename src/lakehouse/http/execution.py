"""One statement of a client: checked against the client's rights, run on an engine, read as encoded pieces."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from lakehouse.core.cancel import CancelScope
from lakehouse.core.encoding import encoder, pieces_of
from lakehouse.core.engine import Query
from lakehouse.core.errors import (
    BadRequestError,
    ForbiddenError,
    LakeError,
    NoSuchTableError,
    NotSupportedError,
    StatementCanceledError,
    StatementLostError,
    StatementTimeoutError,
)
from lakehouse.core.names import MAIN
from lakehouse.core.progress import Amount, listening_to_tasks
from lakehouse.core.requests import QueryRequest
from lakehouse.core.result import Result, first_rows
from lakehouse.core.tables import Column
from lakehouse.engines.duckdb.workers.statement import EncodedRows, WorkerEngine, WorkerStatement
from lakehouse.http.answers import plain
from lakehouse.http.audit import AuditLog
from lakehouse.http.principal import Principal
from lakehouse.http.queries import AUDIT, QueryService
from lakehouse.http.spool import Spool
from lakehouse.lake import Lake
from lakehouse.operations import READ
from lakehouse.query.route import CheckedStatement
from lakehouse.query.sql.parser import parse
from lakehouse.query.statement_log import statement_shape
from lakehouse.query.translate.statement import translate
from lakehouse.query.translate.types import NotTranslatedError

#: What is computed before the answer begins: an error until then has a status of its own.
_FIRST_BYTES = 256 << 10
#: How long formats that say only in a header whether they were cut may wait for their end.
_HOLD_S, _HELD_FORMATS = 5.0, ("csv", "json_lines")
#: Deeper than people and programs write, and far from what parsers bear.
_MAX_DEPTH = 200


class Caller(Protocol):
    """The request that a statement came with."""

    @property
    def principal(self) -> Principal:
        """Who sent it."""

    @property
    def request_id(self) -> str:
        """The id of the request, which is that of its statement, too."""

    def lake(self, branch: str = "") -> Lake:
        """The lake on a branch that the caller may use."""

    def check_when(self, when: str) -> None:
        """Refuse a tag that the caller may not use."""

    def note(self, **facts: Any) -> None:
        """Add facts to the audit log."""


class Execution:
    """Runs one statement. `start` and `pieces` block; `cancel` may be called from any thread."""

    def __init__(self, queries: QueryService, call: Caller, request: QueryRequest, engine: str, format: str) -> None:
        """
        Args:
            engine: the requested engine; empty for the default one.
            format: how the rows are encoded (core/encoding.py).
        """
        self._queries, self._call, self._engine, self.format = queries, call, engine, format
        limit = queries.max_rows if request.limit is None else min(request.limit, queries.max_rows)
        # One row more, which shows whether there are more.
        self._limit, self._request = limit, replace(request, limit=limit + 1, stream=not request.explain)
        self._statement: WorkerStatement | None = None
        self._scope, self._timed_out = CancelScope(), False
        self._timer: threading.Timer | None = None
        self._timeout_s = queries.timeout_s
        self._begun = time.monotonic()
        self._result: Result | None = None
        self._amount: Amount | None = None
        self._is_write = False
        self._pieces: Iterator[bytes] = iter(())
        self._is_computed = False
        self.id, self.spool = call.request_id, Spool(queries.space)
        self.summary: dict[str, Any] = {}

    def within(self, timeout_s: float | None) -> Execution:
        """Set a shorter timeout than that of the service."""
        if timeout_s is not None:
            self._timeout_s = min(timeout_s, self._timeout_s)
        return self

    @property
    def owner(self) -> Principal:
        """Who sent the statement."""
        return self._call.principal

    @property
    def limit(self) -> int:
        """The maximum number of rows."""
        return self._limit

    def shown(self) -> dict[str, Any]:
        """The statement for the list of those that run."""
        place = self._statement.place if self._statement is not None else None
        is_running = place is None and not self._is_computed
        return {
            "id": self.id,
            "state": "queued" if place is not None else "running" if is_running else "sending",
            "place": place,
            "progress": self._percent() if is_running else None,
            "seconds": round(time.monotonic() - self._begun, 3),
            "key": self.owner.id,
            "name": self.owner.name,
            "engine": self._result.engine if self._result is not None else self._engine or "auto",
            "branch": self._request.branch or MAIN,
            "statement": statement_shape(self._request.sql),
        }

    def _percent(self) -> int | None:
        if self._amount is not None:  # of Spark's tasks, or Trino's splits
            return 100 * self._amount.done // self._amount.total
        return self._statement.progress if self._statement is not None else None

    def _note_progress(self, amount: Amount) -> None:
        self._amount = amount

    @property
    def changes(self) -> dict[str, int]:
        """How many rows it changed, as far as that is known."""
        return {} if self._result is None else self._result.changes.as_dict()

    @property
    def columns(self) -> tuple[Column, ...]:
        assert self._result is not None
        return self._result.columns

    def start(self) -> None:
        """Check the statement and run it until its first rows are ready."""
        call, request = self._call, self._request
        call.note(statement=statement_shape(request.sql))
        check_depth(request.sql)
        lake = call.lake(request.branch)
        checked = self._check(lake, request)
        self._is_write = checked.kind == "write"
        if self._is_write and self._scope.is_canceled:  # before this, a cancel did not know that it is a write
            raise StatementCanceledError("The statement was canceled.")
        call.note(kind=checked.kind, tables=[str(name) for name in checked.tables])
        self._timer = threading.Timer(self._timeout_s, self._expire)
        self._timer.daemon = True
        self._timer.start()
        try:
            with self._scope.active(), listening_to_tasks(self._note_progress):
                self._result = self._run(lake, checked)
        except LakeError as exc:
            self.close()
            raise self._explained(exc) from exc
        call.note(engine=self._result.engine)
        self._pieces = self.pieces()

    def fill_first(self) -> bool:
        """Compute the first part of the rows; returns whether that is all. An error is raised."""
        begun, size = time.monotonic(), 0
        for piece in self._pieces:
            self.spool.put(piece)
            size += len(piece)
            is_enough = time.monotonic() - begun > _HOLD_S if self.format in _HELD_FORMATS else size >= _FIRST_BYTES
            if is_enough or self.spool.is_full:
                return False
        self.spool.finish()
        return True

    def fill(self) -> None:
        """Compute all other rows. Whoever takes the pieces gets the error."""
        try:
            for piece in self._pieces:
                self.spool.put(piece)
            self.spool.finish()
        except LakeError as exc:
            self.spool.finish(exc)
        finally:
            self.close()

    def _check(self, lake: Lake, request: QueryRequest) -> CheckedStatement:
        """Parse the statement and check the caller's rights to it: what this returns is what runs."""
        checked = lake.check(request, self._engine or None)
        check_rights(self._call, checked)
        return checked

    def _run(self, lake: Lake, checked: CheckedStatement) -> Result:
        queries, principal = self._queries, self._call.principal
        self._statement = self._worker_statement()
        rights = f"{principal.namespaces} {principal.branches}"
        reader = WorkerEngine(self._statement, queries.cache, rights)
        return lake.reading_with(reader).run_checked(checked)

    def _worker_statement(self) -> WorkerStatement:
        pool, owner = self._queries.pool, self._call.principal.id
        statement = WorkerStatement(pool, self.format, self._timeout_s, self._limit, owner)
        self._scope.add(statement.cancel)
        return statement

    def pieces(self) -> Iterator[bytes]:
        """The encoded rows; the summary is complete after the last piece."""
        assert self._result is not None
        source = self._result.source
        try:
            if isinstance(source, EncodedRows):
                yield from source.pieces
                self.summary = dict(source.summary())
                self._call.note(cached=source.is_cached)
            else:
                yield from self._encoded(self._result)
        except LakeError as exc:
            raise self._explained(exc) from exc
        finally:
            self._is_computed = True
            self.close()
        self._call.note(rows=self.summary.get("row_count"))

    def _encoded(self, result: Result) -> Iterator[bytes]:
        """The rows of an engine that returns values; it sends one row more than the limit."""
        encode, (schema, batches) = encoder(self.format), result.stream()
        yield encode.begin(result.columns, schema)
        seen = 0
        # Closed also if the client hangs up, which ends the statement of an engine that still computes.
        with closing(first_rows(batches, self._limit + 1)) as rows:
            for batch in rows:
                kept = batch.slice(0, max(self._limit - seen, 0))
                seen += batch.num_rows
                yield from (encode.rows(piece) for piece in pieces_of(kept) if piece.num_rows)
        self.summary = {
            "row_count": min(seen, self._limit),
            "truncated": seen > self._limit,
            "engine": result.engine,
            **result.changes.as_dict(),
        }
        if self._request.explain:
            self.summary["explain"] = plain(result.explain)
        yield encode.end(self.summary)

    def cancel(self) -> None:
        """Stop the statement, and the sending of its rows. A write ends as its engine says: it may have been committed."""
        self._scope.cancel()
        if not self._is_write:
            self.spool.close()

    def abandon(self) -> LakeError:
        """Stop the statement and wait for nothing of it, as the service ends; returns what its client is told."""
        self._scope.abandon()
        self.spool.close()
        if self._is_write:
            return StatementLostError(
                "The service ended during the statement, so it may or may not have been committed.",
                "Check with `lake history`, then run it again.",
            )
        return StatementCanceledError("The service ended during the statement.", "Run it again.")

    def close(self) -> None:
        """Release what the statement holds; one that still runs is stopped."""
        if self._timer is not None:
            self._timer.cancel()
        if self._statement is not None:
            self._statement.close()

    def _expire(self) -> None:
        self._timed_out = True
        self._scope.cancel()

    def _explained(self, exc: LakeError) -> LakeError:
        """What really happened, where an engine only noticed that its statement was stopped."""
        if self._timed_out:
            return StatementTimeoutError(
                f"The statement took longer than {self._timeout_s:g} s.", "Read less, or raise serve.query_timeout."
            )
        if self._scope.is_canceled:
            return StatementCanceledError("The statement was canceled.")
        return exc


#: Quoted text, in which brackets are not brackets.
_QUOTED = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"[^\"]*\"|`[^`]*`")


def check_depth(sql: str) -> None:
    """Refuse a statement whose brackets are so deep that a parser may run out of stack, which ends its process."""
    depth = deepest = 0
    for character in _QUOTED.sub("", sql):
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    if deepest > _MAX_DEPTH:
        raise BadRequestError(
            f"The statement is nested {deepest} levels deep, and {_MAX_DEPTH} are allowed.", "Use CTEs: WITH … AS (…)"
        )


def check_rights(call: Caller, checked: CheckedStatement) -> None:
    """Raise ForbiddenError unless the caller may run the statement."""
    principal = call.principal
    if checked.kind == "session":
        raise NotSupportedError(
            "A request has a session of its own, so statements that change it have no effect.",
            "Send what you need with each statement: branch, as_of, limit.",
        )
    if checked.kind in ("write", "drop"):
        principal.check_change(checked.request.branch)
    else:
        principal.check(READ)
    principal.check_tables(checked.tables)
    for when in {checked.request.as_of, *(use.as_of for use in checked.statement.uses)}:
        call.check_when(when)
    if principal.is_limited and not checked.lake_only:
        raise ForbiddenError(
            f"The engine {checked.engine} may read other databases as well, and the key is limited.",
            "Use duckdb or spark.",
        )
    hidden = checked.views or (checked.kind != "read" and not checked.tables)
    if principal.namespaces and hidden:
        raise ForbiddenError(
            "The key is limited to namespaces, and this statement may use tables that it does not name.",
            "Name the tables: views, SHOW, CALL and EXPLAIN need a key without limits.",
        )


_AUDIT_TABLES = ("default.audit",)


class AuditExecution(Execution):
    """Runs one statement on the audit log."""

    def __init__(self, queries: QueryService, call: Caller, sql: str, format: str, log: AuditLog) -> None:
        super().__init__(queries, call, QueryRequest(sql), "duckdb", format)
        self._log = log

    def _check(self, lake: Lake, request: QueryRequest) -> CheckedStatement:
        statement = parse(request.sql)
        if statement.kind != "read":
            raise NotSupportedError("The audit log can only be read.", "select … from audit")
        for use in statement.uses:
            if str(use.name) not in _AUDIT_TABLES:
                raise NoSuchTableError(str(use.name), ["audit"], 1)
        self._call.principal.check(READ)
        return CheckedStatement(request, "duckdb", statement)

    def _run(self, lake: Lake, checked: CheckedStatement) -> Result:
        request, statement = checked.request, checked.statement
        scan = self._log.scan(Path(lake.folder) / "run" / AUDIT)
        self._statement = self._worker_statement()
        scans = dict.fromkeys(statement.uses, scan)
        try:
            translation = translate(statement, scans, request.parameters)
        except NotTranslatedError as exc:
            raise NotSupportedError(
                f"The audit log cannot be asked for {exc}.", "Write the query in another way."
            ) from exc
        query = Query(request, "the audit log", statement, translation=translation)
        return WorkerEngine(self._statement).run(query)
