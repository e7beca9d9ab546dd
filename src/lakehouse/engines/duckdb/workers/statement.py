"""One statement on a query process, and the engine that sends it there."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError
from dataclasses import asdict
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.core.engine import EngineCapabilities, Query
from lakehouse.core.errors import StatementCanceledError, StatementTimeoutError, error_from_dict
from lakehouse.core.result import Explain, Result, Row
from lakehouse.core.tables import Column
from lakehouse.engines.duckdb.workers import frames
from lakehouse.engines.duckdb.workers.cache import ResultCache, is_repeatable
from lakehouse.engines.duckdb.workers.pool import Turn, WorkerPool, WorkerProcess


class WorkerStatement:
    """A statement: started, read piece by piece, canceled from any thread, and closed."""

    def __init__(self, pool: WorkerPool, format: str, timeout_s: float, limit: int, owner: str = "") -> None:
        """
        Args:
            owner: whose statement it is, for a fair share of the processes.
            format: how the result is encoded (core/encoding.py).
            timeout_s: after this time, waiting included, it is canceled.
            limit: maximum number of rows; a result with more is marked as truncated.
        """
        self._pool, self.format, self._timeout_s, self.limit = pool, format, timeout_s, limit
        self._deadline = time.monotonic() + timeout_s
        self._lock = threading.Lock()
        self._worker: WorkerProcess | None = None
        self._owner, self._turn = owner, Turn(owner)
        self._canceled, self._sql = False, ""
        self.summary: dict[str, Any] = {}

    def start(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Wait for a process and start; returns the header once the first rows are ready."""
        self._turn, self._sql = Turn(self._owner), str(job["sql"])
        self._raise_if_canceled()
        try:
            worker = self._pool.acquire(self._deadline, self._turn)
        except CancelledError as exc:
            raise StatementCanceledError("The statement was canceled.") from exc
        with self._lock:
            self._worker = worker
        try:
            self._raise_if_canceled()
            worker.send({**job, "format": self.format})
            if self._canceled:  # in the moment before the process knew the statement
                worker.interrupt()
            kind, content = self._next()
        except BaseException:
            self.close()
            raise
        assert kind == frames.HEADER
        return dict(json.loads(content))

    def pieces(self) -> Iterator[bytes]:
        """The encoded result, piece by piece; closes the statement at its end."""
        try:
            while True:
                kind, content = self._next()
                if kind == frames.END:
                    self.summary = json.loads(content)
                    self._give_back(is_sound=True)
                    return
                if content:
                    yield content
        finally:
            self.close()

    def cancel(self) -> None:
        """Stop the statement; whoever reads it gets StatementCanceledError."""
        self._canceled = True
        self._turn.cancel()
        with self._lock:
            if self._worker is not None:
                self._worker.interrupt()

    @property
    def place(self) -> int | None:
        """The place in the queue, from 1; None if the statement does not wait."""
        return self._pool.place(self._turn)

    @property
    def progress(self) -> int | None:
        """How much is done, in percent; None if that is not known."""
        with self._lock:
            worker = self._worker
        return worker.progress() if worker is not None else None

    def close(self) -> None:
        """Give the process back; a statement that still runs is stopped first."""
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            self._pool.release(worker, worker.stop_statement())

    def _next(self) -> tuple[bytes, bytes]:
        worker = self._worker
        if worker is None:
            raise StatementCanceledError("The statement was canceled.")
        try:
            kind, content = worker.receive(self._deadline)
        except TimeoutError as exc:
            self.close()
            raise StatementTimeoutError(
                f"The statement took longer than {self._timeout_s:g} s.", "Read less, or raise serve.query_timeout."
            ) from exc
        if kind == frames.ERROR:
            self._give_back(is_sound=True)
            raise error_from_dict(json.loads(content), self._sql)
        return kind, content

    def _give_back(self, is_sound: bool) -> None:
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            self._pool.release(worker, is_sound)

    def _raise_if_canceled(self) -> None:
        if self._canceled:
            raise StatementCanceledError("The statement was canceled.")


class WorkerEngine:
    """DuckDB as an engine, in a query process: for one statement."""

    name = "duckdb"
    capabilities = EngineCapabilities(scans=True, translated=True)

    def __init__(self, statement: WorkerStatement, cache: ResultCache | None = None, rights: str = "") -> None:
        """
        Args:
            cache: results of earlier statements (default: none).
            rights: whoever has others gets no result from the cache that was stored for these.
        """
        self._statement, self._cache, self._rights = statement, cache, rights

    def prepare(self) -> None:
        """The processes are warm."""

    def run(self, query: Query) -> Result:
        translation = query.translation
        assert translation is not None
        sql = translation.sql
        job = {
            "sql": sql,
            "views": [[name, asdict(scan)] for name, scan in translation.views.items()],
            "columns": [asdict(column) for column in translation.columns],
            "may_fail": translation.may_fail,
            "parameters": dict(translation.parameters),
            "limit": self._statement.limit,
            "explain": query.request.explain,
            "reason": query.reason,
        }
        cache = self._cache if self._cache is not None and is_repeatable(sql) else None
        key = cache.key(job, self._statement.format, self._rights) if cache else ""
        known = cache.get(key) if cache else None
        if known is not None:
            return _result(known.header, iter(known.pieces), lambda: known.summary, is_cached=True)
        header = self._statement.start(job)
        statement_pieces = self._statement.pieces()
        if cache:
            statement_pieces = cache.storing(key, header, statement_pieces, lambda: self._statement.summary)
        return _result(header, statement_pieces, lambda: self._statement.summary)


def _result(
    header: Mapping[str, Any], pieces: Iterator[bytes], summary: Callable[[], dict[str, Any]], is_cached: bool = False
) -> Result:
    columns = tuple(Column(**column) for column in header["columns"])
    return Result(columns, EncodedRows(pieces, summary, is_cached), Explain(**header["explain"]))


@dataclass
class EncodedRows:
    """Rows as encoded bytes, read piece by piece; whoever wants values asks another engine."""

    pieces: Iterator[bytes]
    summary: Callable[[], dict[str, Any]]
    """row_count and truncated, once all pieces are read."""
    is_cached: bool = False

    def fetch(self) -> list[Row]:
        raise NotImplementedError("The result of a query process is read in pieces.")

    def arrow(self) -> Any:
        raise NotImplementedError("The result of a query process is read in pieces.")
