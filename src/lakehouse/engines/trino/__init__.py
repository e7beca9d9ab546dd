"""Trino, through its own client: statements with progress, cancelled on Ctrl-C."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from lakehouse.core.arrow_types import arrow_schema, record_batch
from lakehouse.core.cancel import stop_with_scope, stopped_by
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import (
    CommitConflictError,
    EngineError,
    EngineUnreachableError,
    LakeError,
    NotInstalledError,
    QueryRejectedError,
    StatementLostError,
)
from lakehouse.core.masking import mask
from lakehouse.core.names import CATALOG
from lakehouse.core.progress import Amount, task_listener
from lakehouse.core.result import BatchedRows, Explain, ListedRows, Result, Row, RowChanges, first_rows
from lakehouse.core.tables import Column, split_arguments
from lakehouse.engines.trino.settings import TrinoSettings

#: Called while a statement runs, with a line of progress.
Progress = Callable[[str], None]
_POLL_S = 0.2
_BATCH_ROWS = 8192
_POSITION = re.compile(r"^line (\d+):(\d+): ")
_SPARK_TYPES = {
    "integer": "int",
    "real": "float",
    "varchar": "string",
    "char": "string",
    "uuid": "string",
    "json": "string",
    "varbinary": "binary",
    "unknown": "void",
}
_TIMESTAMP = re.compile(r"timestamp(?:\(\d+\))?( with time zone)?")

__all__ = ["Progress", "Trino", "TrinoSettings"]


class Trino:
    """Runs statements in Trino's own SQL; a name of two parts is a table of the lake."""

    def __init__(self, settings: TrinoSettings) -> None:
        self._settings = settings

    @property
    def branches(self) -> Sequence[str]:
        """The branches that it shows beside main."""
        return self._settings.branches

    def on(self, branch: str) -> Trino:
        """A client for which a name of two parts is a table of the branch."""
        return Trino(replace(self._settings, catalog=branch))

    def run(self, sql: str, reason: str, limit: int | None = None, progress: Progress | None = None) -> Result:
        """Run one statement and return all its rows, or the first `limit`."""
        with self._connected() as connection, _translated(sql, self._settings.url):
            cursor = connection.cursor()
            rows = _execute(cursor, sql, limit, progress)
            if limit is not None:  # Trino need not compute rows that nobody fetches
                _cancel(cursor)
        columns, explain = _columns(cursor), self._explain(cursor, reason)
        return Result(columns, ListedRows([column.name for column in columns], rows), explain, _changes(cursor))

    def stream(self, sql: str, reason: str, limit: int | None = None, progress: Progress | None = None) -> Result:
        """The same, with all but the first rows read from Trino when they are needed."""
        with ExitStack() as opened:
            connection = opened.enter_context(self._connected())
            with _translated(sql, self._settings.url):
                cursor = connection.cursor()
                opened.callback(_cancel, cursor)
                first = _execute(cursor, sql, _BATCH_ROWS, progress)
            columns = _columns(cursor)
            schema = arrow_schema(columns)
            opened.callback(stop_with_scope(partial(_cancel, cursor)))
            pages = _Pages(opened.pop_all(), partial(_translated, sql, self._settings.url), cursor, first)
        batches = first_rows((record_batch(schema, page) for page in pages.read()), limit)
        return Result(columns, BatchedRows(schema, batches), self._explain(cursor, reason))

    def _explain(self, cursor: Any, reason: str) -> Explain:
        return Explain("trino", reason, plan=f"query {cursor.query_id}: {mask(cursor.info_uri or self._settings.url)}")

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        try:
            from trino.dbapi import connect
        except ImportError as exc:
            raise NotInstalledError("trino", "trino") from exc
        scheme, host, port = self._settings.address()
        connection = connect(
            host=host,
            port=port,
            http_scheme=scheme,
            user=self._settings.user,
            catalog=self._settings.catalog or CATALOG,
            source="lakehouse",
            timezone="UTC",
            request_timeout=10,
        )
        try:
            yield connection
        finally:
            connection.close()


@dataclass
class _Pages:
    """The rows of a statement in lists; its connection is closed at their end."""

    opened: ExitStack
    translated: Callable[[], AbstractContextManager[None]]
    cursor: Any
    first: list[Row]

    def read(self) -> Iterator[list[Row]]:
        with self.opened:
            page = self.first
            while page:
                yield page
                with self.translated():
                    page = [tuple(row) for row in self.cursor.fetchmany(_BATCH_ROWS)]


def _columns(cursor: Any) -> tuple[Column, ...]:
    return tuple(Column(described[0], spark_type(described[1])) for described in cursor.description or ())


_CHANGES = {"INSERT": "inserted", "UPDATE": "updated", "DELETE": "deleted"}


def _changes(cursor: Any) -> RowChanges:
    """How many rows Trino says that a statement changed."""
    if cursor.update_type is None or cursor.rowcount < 0:
        return RowChanges()
    part = _CHANGES.get(cursor.update_type)
    return RowChanges(
        cursor.rowcount, **({**dict.fromkeys(_CHANGES.values(), 0), part: cursor.rowcount} if part else {})
    )


def _execute(cursor: Any, sql: str, limit: int | None, progress: Progress | None) -> list[Row]:
    """Run the statement in a background thread, while this one reports progress and can cancel it; the first rows, or all."""
    rows: list[list[Row]] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            cursor.execute(sql)
            fetched = cursor.fetchall() if limit is None else cursor.fetchmany(limit)
            rows.append([tuple(row) for row in fetched])
        except BaseException as exc:  # noqa: BLE001 - raised in the waiting thread
            failure.append(exc)

    worker = threading.Thread(target=run, daemon=True)
    worker.start()
    try:
        with stopped_by(lambda: _cancel(cursor)):
            while worker.is_alive():
                worker.join(_POLL_S)
                _report(cursor, progress)
    finally:
        if worker.is_alive():  # after Ctrl-C
            _cancel(cursor)
    if failure:
        raise failure[0]
    if not rows:
        raise EngineUnreachableError("Trino returned no result.", "lake logs trino")
    return rows[0]


def _cancel(cursor: Any) -> None:
    with suppress(Exception):
        cursor.cancel()


def _report(cursor: Any, progress: Progress | None) -> None:
    stats = cursor.stats or {}
    done, total = int(stats.get("completedSplits", 0)), int(stats.get("totalSplits", 0))
    if total and (listener := task_listener()) is not None:
        listener(Amount(done, total, "splits"))
    if total and progress is not None:
        progress(f"Running on Trino: {100 * done // total} % ({done} of {total} splits)")


@contextmanager
def _translated(sql: str, url: str) -> Iterator[None]:
    """Raise what Trino's client raises in this block as a LakeError."""
    import requests
    from trino.exceptions import TrinoConnectionError, TrinoQueryError, TrinoUserError

    try:
        yield
    except TrinoUserError as exc:
        text = exc.message or ""
        position = _POSITION.match(text)
        line, column = (int(position[1]), int(position[2])) if position else (None, None)
        raise QueryRejectedError(_POSITION.sub("", text), sql=sql, line=line, column=column) from exc
    except TrinoQueryError as exc:
        raise _failed(exc) from exc
    except (TrinoConnectionError, requests.exceptions.RequestException) as exc:
        raise EngineUnreachableError(
            f"Trino does not answer at {url}.", "Start it: lake up trino. Or check trino.url: lake config show"
        ) from exc


def _failed(exc: Any) -> LakeError:
    """The error for a statement that Trino accepted and could not finish."""
    if exc.error_name in ("USER_CANCELED", "ADMINISTRATIVELY_KILLED"):
        return EngineError("The statement was cancelled in Trino.")
    causes = set(_exceptions(exc.failure_info))
    if "CommitStateUnknownException" in causes:
        return StatementLostError.of_commit()
    if causes & {"CommitFailedException", "ValidationException"}:
        return CommitConflictError(
            "Other writers changed the table while the statement ran on Trino.", "Nothing was written. Run it again."
        )
    hint = "lake logs trino" if exc.error_type != "EXTERNAL" else "Does the server of that catalog run? lake status"
    return EngineError(f"Trino failed: {exc.message} ({exc.error_name}).", hint)


def _exceptions(failure: dict[str, Any] | None) -> Iterator[str]:
    """The classes of Java exceptions in a failure: its own and those of its causes."""
    while failure:
        yield str(failure.get("type", "")).rpartition(".")[2]
        failure = failure.get("cause")


def spark_type(kind: str) -> str:
    """The Spark type of a Trino type such as `row(a bigint, b varchar(3))`."""
    kind = kind.strip()
    if (stamp := _TIMESTAMP.fullmatch(kind)) is not None:
        return "timestamp" if stamp[1] else "timestamp_ntz"
    head, bracket, inside = kind.partition("(")
    head, inside = head.lower(), inside.removesuffix(")")
    match head:
        case "array":
            return f"array<{spark_type(inside)}>"
        case "map":
            return "map<" + ",".join(spark_type(part) for part in split_arguments(inside)) + ">"
        case "row":
            return "struct<" + ",".join(_field(part) for part in split_arguments(inside)) + ">"
        case "decimal":
            return "decimal(" + inside.replace(" ", "") + ")" if bracket else "decimal(38,0)"
    return _SPARK_TYPES.get(head, head)


def _field(part: str) -> str:
    name, _, kind = part.strip().partition(" ")
    name = name.strip('"')
    return f"{name}:{spark_type(kind)}"
