"""A query process: one DuckDB that reads the warehouse and nothing else, and runs one statement at a time.

The guard has allowed each statement before it comes here. What the guard might overlook, DuckDB refuses: files outside the
warehouse, extensions, settings. What DuckDB does not limit, the memory of scalar functions, the operating system does.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.core.dataclass import dataclass
from lakehouse.core.encoding import BATCH_ROWS, encoder, pieces_of
from lakehouse.core.errors import EngineMemoryError, LakeError, StatementCanceledError
from lakehouse.core.names import TableName
from lakehouse.core.quoting import text
from lakehouse.core.result import Explain
from lakehouse.core.tables import Column, Scan
from lakehouse.engines.duckdb import ViewCatalog, ViewCatalogs, check_types, read_batches, spark_type
from lakehouse.engines.duckdb.connection import connect, load_extension
from lakehouse.engines.duckdb.errors import only_spark_answers
from lakehouse.engines.duckdb.explain import explain_query
from lakehouse.engines.duckdb.workers import frames
from lakehouse.engines.duckdb.workers.copies import SmallTables

if TYPE_CHECKING:
    import duckdb
    import pyarrow

#: Settings of a cursor with which DuckDB measures the progress of its statement, and prints nothing.
_PROGRESS_SETTINGS = ("enable_progress_bar", "enable_progress_bar_print", "progress_bar_time")
_MEASURE_PROGRESS = "SET enable_progress_bar = true; SET enable_progress_bar_print = false; SET progress_bar_time = 0"
#: The share of the memory of DuckDB for copies of small tables.
_COPIES_SHARE = 8
#: Larger results that may fail while they are computed are kept in a table of DuckDB.
_MAX_ROWS_IN_MEMORY = 200_000
#: A canceled statement is interrupted again after this time, until it ends.
_INTERRUPT_AGAIN_S = 0.05
#: Address space beyond DuckDB's own limit: libraries, Arrow buffers, stacks of threads.
_MARGIN_BYTES = 1 << 30


class Worker:
    """Runs statements that arrive on a socket."""

    def __init__(self, options: Mapping[str, Any], data: socket.socket) -> None:
        self._data, self._lock = data, threading.Lock()
        self._unsent = bytearray()
        """Messages that wait for the next ones."""
        self._number = self._canceled_number = 0
        self._cursor: duckdb.DuckDBPyConnection | None = None
        """That of the running statement."""
        self._idle: duckdb.DuckDBPyConnection | None = None
        """For the next statement. To open a cursor takes as long as a small query, so that one is used again."""
        self._catalog: ViewCatalog | None = None
        """What the idle cursor uses."""
        self._catalogs = ViewCatalogs(SmallTables(int(options["memory"]) // _COPIES_SHARE).create)
        self._explained = ViewCatalogs()  # an explanation counts the files that the query reads
        self._connection = _open(options)
        _limit_memory(int(options["memory"]))

    def serve(self) -> None:
        """Run statements until the service closes the socket."""
        while True:
            cursor = self._idle_cursor()
            _, content = frames.receive(self._data)
            job = json.loads(content)
            with self._lock:
                self._number, self._cursor = int(job["number"]), cursor
            is_complete = False
            try:
                self._raise_if_canceled()
                is_complete = self._run(job, cursor)
            except LakeError as exc:
                self._unsent.clear()
                frames.send(self._data, frames.ERROR, json.dumps(exc.as_dict()).encode())
            finally:
                with self._lock:
                    self._cursor = None
                if not is_complete:
                    self._drop_idle()

    def _idle_cursor(self) -> duckdb.DuckDBPyConnection:
        """The cursor for the next statement."""
        if self._idle is None:
            self._idle = self._connection.cursor()
            self._idle.execute(_MEASURE_PROGRESS)
        return self._idle

    def _drop_idle(self) -> None:
        """Close the cursor, and with it what a statement has left in it: rows that nobody reads, a temporary table."""
        if self._idle is not None:
            self._idle.close()
        self._idle = self._catalog = None

    def cancel(self, number: int) -> None:
        """Interrupt a statement, unless it has ended; one that has not arrived yet does not begin."""
        with self._lock:
            self._canceled_number = number
        self.interrupt_canceled()

    def interrupt_canceled(self) -> bool:
        """Interrupt the running statement if it is canceled, which is what this returns: DuckDB forgets an interrupt when a query begins."""
        with self._lock:
            if self._cursor is None or self._number != self._canceled_number:
                return False
            self._cursor.interrupt()
            return True

    def progress(self) -> int:
        """How much of the running statement is done, in percent; -1 if that is not known.

        Of a scan that it does not measure (each of an Iceberg table), DuckDB says 0 before it begins and then no more, and of a
        part that is done before the next is known it says 100.
        """
        with self._lock:
            percent = round(self._cursor.query_progress()) if self._cursor is not None else -1
        return percent if 0 < percent < 100 else -1

    def _run(self, job: Mapping[str, Any], cursor: duckdb.DuckDBPyConnection) -> bool:
        """Run a statement and send its result; returns whether nothing of it is left in the cursor."""
        import duckdb

        sql, parameters = str(job["sql"]), job["parameters"] or None
        try:
            views = _parse_views(job["views"])
            catalogs = self._explained if job["explain"] else self._catalogs
            self._catalog = catalogs.use(cursor, tuple(views.items()), self._catalog)
            explain = Explain("duckdb", job["reason"])
            if job["explain"]:
                explain = explain_query(cursor, sql, views.values(), job["reason"], parameters)
            return self._send_result(job, cursor, explain)
        except (duckdb.OutOfMemoryException, MemoryError) as exc:
            # DuckDB's own hint names the setting of the command line.
            raise EngineMemoryError(
                "The statement needs more memory than a query process has.",
                "Read less at once, raise serve.worker_memory, or use the engine spark.",
            ) from exc
        except duckdb.InterruptException as exc:
            raise StatementCanceledError("The statement was canceled.") from exc
        except duckdb.Error as exc:
            self._raise_if_canceled()
            raise only_spark_answers(exc, sql) from exc

    def _raise_if_canceled(self) -> None:
        if self._number == self._canceled_number:
            raise StatementCanceledError("The statement was canceled.")

    def _send_result(self, job: Mapping[str, Any], cursor: duckdb.DuckDBPyConnection, explain: Explain) -> bool:
        columns = [Column(**column) for column in job["columns"]]
        computed = _compute(job, cursor, columns)
        header = {"columns": [asdict(column) for column in columns], "explain": asdict(explain)}
        self._send(frames.HEADER, json.dumps(header).encode())
        encode, limit, count = encoder(job["format"]), job["limit"], 0
        self._send(frames.DATA, encode.begin(columns, computed.schema))
        truncated = False
        for batch in computed.batches:
            room = batch.num_rows if limit is None else limit - count
            truncated = batch.num_rows > room
            kept = batch.slice(0, room) if truncated else batch
            count += kept.num_rows
            for piece in pieces_of(kept):
                if piece.num_rows and (content := encode.rows(piece)):
                    self._send(frames.DATA, content)
            if truncated:
                break
            if not computed.is_complete:  # the next rows may take a while
                self._flush()
        summary: dict[str, Any] = {"row_count": count, "truncated": truncated, "engine": "duckdb"}
        if job["explain"]:
            summary["explain"] = asdict(explain)
        self._send(frames.DATA, encode.end(summary))
        self._send(frames.END, json.dumps(summary).encode())
        self._flush()
        return not truncated and not computed.is_stored

    def _send(self, kind: bytes, content: bytes) -> None:
        """Send a message, a small one together with those that follow: each wakes the service up."""
        if len(content) >= frames.SMALL_BYTES:
            self._flush()
            frames.send(self._data, kind, content)
            return
        self._unsent += frames.message(kind, content)
        if len(self._unsent) >= frames.SMALL_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._unsent:
            self._data.sendall(self._unsent)
            self._unsent.clear()


@dataclass(frozen=True)
class Computed:
    """The rows of a statement."""

    schema: pyarrow.Schema
    batches: Iterable[pyarrow.RecordBatch]
    is_complete: bool = False
    """All of them are in memory."""
    is_stored: bool = False
    """They are in a temporary table of the cursor."""


def _compute(job: Mapping[str, Any], cursor: duckdb.DuckDBPyConnection, columns: Sequence[Column]) -> Computed:
    """The rows of the result. What may fail is done before: Spark then runs the whole statement."""
    sql, limit, parameters = str(job["sql"]), job["limit"], job["parameters"] or None
    if job["may_fail"] and limit is not None:
        sql = f"FROM ({sql}\n) LIMIT {limit + 1}"  # one row more shows that there are more
    if job["may_fail"] and (limit is None or limit > _MAX_ROWS_IN_MEMORY):
        # A table of DuckDB is written to disk if it does not fit into memory. Its columns have names of their own.
        names = ", ".join(f"c{number}" for number in range(len(columns)))
        cursor.execute(f"CREATE OR REPLACE TEMP TABLE answer AS SELECT * FROM ({sql}\n) AS t({names})", parameters)
        sql, parameters = "FROM answer", None
    cursor.execute(sql, parameters)
    check_types(columns, [Column(str(name), spark_type(kind)) for name, kind, *_ in cursor.description or ()])
    if job["may_fail"] and sql != "FROM answer":
        table = cursor.to_arrow_table()
        return Computed(table.schema, table.to_batches(BATCH_ROWS), is_complete=True)
    reader = cursor.to_arrow_reader(BATCH_ROWS)
    if sql != "FROM answer":
        return Computed(reader.schema, read_batches(reader))
    import pyarrow

    schema = pyarrow.schema([field.with_name(c.name) for field, c in zip(reader.schema, columns, strict=True)])
    renamed = (pyarrow.record_batch(batch.columns, schema=schema) for batch in read_batches(reader))
    return Computed(schema, renamed, is_stored=True)


def _parse_views(listed: Sequence[Any]) -> dict[TableName | str, Scan]:
    return {name: _parse_scan(scan) for name, scan in listed}


def _parse_scan(listed: Mapping[str, Any]) -> Scan:
    """A scan is a key of the catalogs, so that what JSON lists are tuples in it."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in listed.items()
    }
    return Scan(**{**fields, "columns": tuple(Column(**column) for column in fields["columns"])})


def _open(options: Mapping[str, Any]) -> duckdb.DuckDBPyConnection:
    """Open DuckDB and lock it down, in the one order in which each step is still possible."""
    connection = connect(allow_community_extensions="false")
    if options["access"]:
        load_extension(connection, "httpfs")
        connection.execute(options["access"])
    Path(options["spill"]).mkdir(parents=True, exist_ok=True)
    folders = ", ".join(text(folder) for folder in options["folders"])
    for statement in (
        f"SET memory_limit = '{int(options['memory'])}B'",
        f"SET threads = {int(options['threads'])}",
        f"SET temp_directory = {text(options['spill'])}",
        f"SET max_temp_directory_size = '{int(options['memory']) * 10}B'",
        f"SET allowed_directories = [{folders}]",
        f"SET allowed_configs = ['enable_external_file_cache', {', '.join(map(text, _PROGRESS_SETTINGS))}]",
        "SET enable_external_access = false",
        "SET lock_configuration = true",
    ):
        connection.execute(statement)
    return connection


def _limit_memory(memory: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 0
    if pages:
        limit = pages * os.sysconf("SC_PAGE_SIZE") + memory + _MARGIN_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _listen_for_requests(control: socket.socket, worker: Worker) -> None:
    """Cancel a statement by its number, or answer with the progress to the number 0; end with the service."""
    is_stopping = False
    while True:
        control.settimeout(_INTERRUPT_AGAIN_S if is_stopping else None)
        try:
            number = control.recv(8)
        except TimeoutError:
            is_stopping = worker.interrupt_canceled()
            continue
        if not number:
            os._exit(0)
        if any(number):
            worker.cancel(int.from_bytes(number, "big"))
            is_stopping = True
        else:
            control.sendall(worker.progress().to_bytes(1, "big", signed=True))


def main() -> None:
    """Read the options from standard input, then serve."""
    options = json.loads(sys.stdin.readline())
    data, control = socket.socket(fileno=options["data"]), socket.socket(fileno=options["control"])
    import pyarrow  # noqa: F401 - loaded before the limit of the address space is set

    worker = Worker(options, data)
    threading.Thread(target=_listen_for_requests, args=(control, worker), daemon=True).start()
    frames.send(data, frames.HEADER, b"{}")
    try:
        worker.serve()
    except (frames.ConnectionLost, BrokenPipeError):
        os._exit(0)


if __name__ == "__main__":
    main()
