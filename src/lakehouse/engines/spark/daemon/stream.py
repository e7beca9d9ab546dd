"""The rows of a statement on the daemon as they arrive: the service passes them on and never has all of them in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.core.encoding import COLUMNS_KEY, SUMMARY_KEY
from lakehouse.core.errors import StatementLostError, error_from_dict
from lakehouse.core.result import ArrowRows, BatchedRows, Explain, Result
from lakehouse.core.tables import Column

if TYPE_CHECKING:
    import pyarrow

    from lakehouse.process.unix_http import ResponseStream


def stream_statement(path: Path, body: dict[str, Any], sql: str) -> Result:
    """Run a statement on the daemon; returns when its first rows are there."""
    import pyarrow

    from lakehouse.process.unix_http import ConnectionBroken, stream

    response = stream(path, "/query", body, "application/vnd.apache.arrow.stream")
    if response.status != 200:
        with response:
            try:
                raise error_from_dict(json.loads(response.read()), sql)
            except json.JSONDecodeError as exc:  # the daemon was told to end, and gave the statement up
                raise ConnectionBroken from exc
    reader = pyarrow.ipc.open_stream(response)
    metadata = reader.schema.metadata or {}
    if b"lake" in metadata:  # a statement that does not stream: a write, or one of Spark's own
        with response:
            return whole_result(reader)
    columns = tuple(Column(**column) for column in json.loads(metadata[COLUMNS_KEY.encode()]))
    rows = BatchedRows(reader.schema.remove_metadata(), _batches(response, reader, sql))
    return Result(columns, rows, Explain("spark", str(body["reason"])))


def whole_result(reader: Any) -> Result:
    """The result of an Arrow stream that the daemon sent at once; the metadata of its schema describes it."""
    table = reader.read_all()
    payload = json.loads(table.schema.metadata[b"lake"])
    columns = tuple(Column(**column) for column in payload["columns"])
    return Result(columns, ArrowRows(table.replace_schema_metadata(None)), Explain(**payload["explain"]))


def _batches(response: ResponseStream, reader: Any, sql: str) -> Iterator[pyarrow.RecordBatch]:
    """The batches; raises the error that the last one carries."""
    import pyarrow

    key = SUMMARY_KEY.encode()
    with response:
        while True:
            try:
                received = reader.read_next_batch_with_custom_metadata()
            except (StopIteration, OSError, pyarrow.ArrowException) as exc:
                raise StatementLostError("The warm Spark ended before all rows were sent.", "Run it again.") from exc
            if received.custom_metadata is not None and key in received.custom_metadata:
                outcome = json.loads(received.custom_metadata[key])
                if "error" in outcome:
                    raise error_from_dict(outcome["error"], sql)
                return
            yield received.batch
