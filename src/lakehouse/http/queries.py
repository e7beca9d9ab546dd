"""What all statements of a service share: query processes, threads that wait for them, limits, a cache."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Protocol

from lakehouse.config.settings import Settings
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import NotFoundError
from lakehouse.core.files import local_path
from lakehouse.engines.duckdb.workers.cache import ResultCache
from lakehouse.engines.duckdb.workers.pool import WorkerOptions, WorkerPool
from lakehouse.http.principal import Principal
from lakehouse.http.spool import SpoolSpace
from lakehouse.lake.assemble import parse_size
from lakehouse.lake.backend import warehouse_access
from lakehouse.storage.local import LocalHome
from lakehouse.storage.s3 import is_remote

#: Statements that wait for a process, or compute rows, each take one.
_THREADS = 128
_MAX_THREADS_OF_A_PROCESS = 4
#: The folder, in that of the run files, where the audit log is as a table.
AUDIT = "audit"


class RunningQuery(Protocol):
    """A statement that has not ended."""

    id: str

    @property
    def owner(self) -> Principal:
        """Who sent it."""

    def shown(self) -> dict[str, Any]:
        """The statement for a list."""

    def cancel(self) -> None:
        """Stop it."""


class RunningQueries:
    """The statements of a service that have not ended, by id."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queries: dict[str, RunningQuery] = {}

    @contextmanager
    def listed(self, query: RunningQuery) -> Iterator[None]:
        """List a statement while the block runs."""
        self.add(query)
        try:
            yield
        finally:
            self.remove(query)

    def add(self, query: RunningQuery) -> None:
        """List a statement. A client may send one id twice at once, so the second gets a number."""
        with self._lock:
            number, wanted = 1, query.id
            while query.id in self._queries:
                number += 1
                query.id = f"{wanted}-{number}"
            self._queries[query.id] = query

    def remove(self, query: RunningQuery) -> None:
        """The statement has ended."""
        with self._lock:
            self._queries.pop(query.id, None)

    def all(self, caller: Principal) -> list[RunningQuery]:
        """The statements of the caller, or of everybody for an owner; the oldest first."""
        with self._lock:
            queries = list(self._queries.values())
        return [query for query in queries if caller.is_owner or query.owner.id == caller.id]

    def get(self, identifier: str, caller: Principal) -> RunningQuery:
        """A statement of the caller, or of anybody for an owner; raises NotFoundError."""
        for query in self.all(caller):
            if query.id == identifier:
                return query
        raise NotFoundError(f"No query {identifier[:64]!r} is running.", "GET /queries")


@dataclass(frozen=True)
class QueryService:
    """Runs statements."""

    pool: WorkerPool
    threads: ThreadPoolExecutor
    space: SpoolSpace
    timeout_s: float
    max_rows: int
    cache: ResultCache | None = None
    running: RunningQueries = field(default_factory=RunningQueries)

    def close(self) -> None:
        """End the query processes."""
        self.pool.close()
        self.threads.shutdown(wait=False, cancel_futures=True)


def open_queries(settings: Settings) -> QueryService:
    """Start the query processes that the settings describe."""
    serve, cores = settings.serve, os.cpu_count() or 1
    home = LocalHome(settings.home)
    warehouse, access = warehouse_access(settings)
    options = WorkerOptions(
        folders=[*_folders(warehouse), f"{home.run / AUDIT}/"],
        spill=home.run / "spill",
        memory=parse_size("serve.worker_memory", serve.worker_memory),
        threads=min(cores, _MAX_THREADS_OF_A_PROCESS),
        access=access,
    )
    cache = parse_size("serve.cache", serve.cache)
    return QueryService(
        WorkerPool(options, serve.workers or max(cores, 2), home.logs / "serve.log"),
        ThreadPoolExecutor(_THREADS, thread_name_prefix="statement"),
        SpoolSpace(home.run / "spool", parse_size("serve.spool", serve.spool)),
        float(serve.query_timeout),
        serve.max_rows,
        ResultCache(cache) if cache else None,
    )


def _folders(warehouse: str) -> list[str]:
    """The warehouse in each form in which metadata may name it."""
    if is_remote(warehouse):
        return [warehouse.rstrip("/") + "/"]
    path = local_path(warehouse)
    paths = {str(path), str(path.resolve())}
    return sorted({form for path in paths for form in (f"{path}/", f"file:{path}/", f"file://{path}/")})
