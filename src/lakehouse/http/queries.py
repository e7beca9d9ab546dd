"""What all statements of a service share: query processes, threads that wait for them, limits, a cache."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lakehouse.config.settings import Settings
from lakehouse.core.files import local_path
from lakehouse.engines.duckdb.workers.cache import ResultCache
from lakehouse.engines.duckdb.workers.pool import WorkerOptions, WorkerPool
from lakehouse.lake.assemble import parse_size
from lakehouse.lake.backend import warehouse_access
from lakehouse.storage.local import LocalHome
from lakehouse.storage.s3 import is_remote

#: Statements that wait for a process, or for a client that reads slowly, each take one.
_THREADS = 128
_MAX_THREADS_OF_A_PROCESS = 4
#: The folder, in that of the run files, where the audit log is as a table.
AUDIT = "audit"


@dataclass(frozen=True)
class QueryService:
    """Runs statements."""

    pool: WorkerPool
    threads: ThreadPoolExecutor
    timeout_s: float
    max_rows: int
    cache: ResultCache | None = None

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
