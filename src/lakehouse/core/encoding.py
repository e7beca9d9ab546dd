"""Rows as bytes: JSON, JSON lines, CSV, an Arrow stream or Parquet, piece by piece, so that a result of any size needs little memory.

The service and the command line both use these encoders, so that both print the same. Arrow makes the text (core/arrow_text.py).
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from lakehouse.core.arrow_text import csv_parts, joined, json_arrays, json_objects
from lakehouse.core.errors import UnknownChoiceError
from lakehouse.core.jsonable import csv_line
from lakehouse.core.tables import Column

if TYPE_CHECKING:
    import pyarrow

#: Rows that are encoded at once, and their size: a column of text in Arrow holds 2 GB.
BATCH_ROWS, _BATCH_BYTES = 8192, 32 << 20
#: Metadata of an Arrow stream, of its schema and of its last batch; and of a Parquet file.
COLUMNS_KEY, SUMMARY_KEY = "lake.columns", "lake.summary"


class Encoder(Protocol):
    """Writes one result."""

    def begin(self, columns: Sequence[Column], schema: pyarrow.Schema) -> bytes:
        """What comes before the rows."""

    def rows(self, batch: pyarrow.RecordBatch) -> bytes:
        """Some rows."""

    def end(self, summary: Mapping[str, Any]) -> bytes:
        """What comes after the rows.

        Args:
            summary: row_count, truncated, engine, and explain if it was requested.
        """


class JsonLinesEncoder:
    """One object per row, a line each."""

    _before, _between, _after = b"", b"", "\n"
    """What stands before the first row, before each other row, and after each row."""

    def begin(self, columns: Sequence[Column], schema: pyarrow.Schema) -> bytes:
        self._names, self._start = unique([column.name for column in columns]), self._before
        return b""

    def rows(self, batch: pyarrow.RecordBatch) -> bytes:
        if not batch.num_rows:
            return b""
        # What separates rows stands after each of them, so that Arrow adds it, and is cut off after the last one.
        rows = joined([*json_objects(self._names, batch.columns), self._after])
        start, self._start = self._start, self._between
        return b"".join((start, rows[: len(rows) - len(self._between)]))

    def end(self, summary: Mapping[str, Any]) -> bytes:
        return b""


class JsonArrayEncoder(JsonLinesEncoder):
    """An array of objects."""

    _before, _between, _after = b"[", b",\n ", ",\n "

    def end(self, summary: Mapping[str, Any]) -> bytes:
        return b"[]\n" if self._start == self._before else b"]\n"


class JsonEncoder(JsonLinesEncoder):
    """One object with `columns`, `rows` (an object each) and the summary."""

    _before, _between, _after = b"\n  ", b",\n  ", ",\n  "

    def begin(self, columns: Sequence[Column], schema: pyarrow.Schema) -> bytes:
        super().begin(columns, schema)
        described = [{"name": name, "type": column.type} for name, column in zip(self._names, columns, strict=True)]
        return f'{{"columns": {json.dumps(described)},\n "rows": ['.encode()

    def end(self, summary: Mapping[str, Any]) -> bytes:
        return f"],\n {json.dumps(summary)[1:]}\n".encode()


class CsvEncoder:
    """A header line and a line per row; nested values are JSON. NULL is nothing, and an empty text is `""`."""

    def begin(self, columns: Sequence[Column], schema: pyarrow.Schema) -> bytes:
        return csv_line(column.name for column in columns).encode()

    def rows(self, batch: pyarrow.RecordBatch) -> bytes:
        if not batch.num_rows or not batch.num_columns:
            return b""
        parts: list[Any] = []
        for column in batch.columns:
            parts += [*csv_parts(column), ","]
        return bytes(joined([*parts[:-1], "\n"]))

    def end(self, summary: Mapping[str, Any]) -> bytes:
        return b""


class _Sink(io.RawIOBase):
    """Collects what a writer of Arrow writes, until it is taken."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._parts.append(part)
        self._position += len(part)
        return len(part)

    def tell(self) -> int:
        return self._position

    def take(self) -> bytes:
        taken, self._parts = b"".join(self._parts), []
        return taken


class ArrowEncoder:
    """An Arrow IPC stream.

    The metadata of its schema has the columns with their types in Spark's words. Its last batch is empty and has the summary as
    metadata: a client that finds none knows that the stream is not complete.
    """

    def begin(self, columns: Sequence[Column], schema: pyarrow.Schema) -> bytes:
        import pyarrow

        described = json.dumps([{"name": column.name, "type": column.type} for column in columns])
        self._sink, self._schema = _Sink(), schema.with_metadata({COLUMNS_KEY: described})
        self._writer = pyarrow.ipc.new_stream(self._sink, self._schema)
        return self._sink.take()

    def rows(self, batch: pyarrow.RecordBatch) -> bytes:
        self._writer.write_batch(batch)
        return self._sink.take()

    def end(self, summary: Mapping[str, Any]) -> bytes:
        import pyarrow

        nothing = pyarrow.RecordBatch.from_arrays(
            [pyarrow.array([], field.type) for field in self._schema], schema=self._schema
        )
        self._writer.write_batch(nothing, {SUMMARY_KEY: json.dumps(summary)})
        self._writer.close()
        return self._sink.take()


class ParquetEncoder:
    """A Parquet file; rows are written in groups of some megabytes. Its metadata has the columns and the summary, as that of Arrow."""

    _GROUP_BYTES = 16 << 20

    def begin(self, columns: Sequence[Column], schema: pyarrow.Schema) -> bytes:
        from pyarrow import parquet

        self._sink, self._pending, self._size = _Sink(), [], 0  # type: ignore[var-annotated]
        described = json.dumps([{"name": column.name, "type": column.type} for column in columns])
        self._writer = parquet.ParquetWriter(
            self._sink, schema.with_metadata({COLUMNS_KEY: described}), compression="zstd"
        )
        return self._sink.take()

    def rows(self, batch: pyarrow.RecordBatch) -> bytes:
        self._pending.append(batch)
        self._size += batch.nbytes
        return self._flush() if self._size > self._GROUP_BYTES else b""

    def end(self, summary: Mapping[str, Any]) -> bytes:
        written = self._flush() if self._pending else b""
        self._writer.add_key_value_metadata({SUMMARY_KEY: json.dumps(summary)})
        self._writer.close()
        return written + self._sink.take()

    def _flush(self) -> bytes:
        import pyarrow

        self._writer.write_table(pyarrow.Table.from_batches(self._pending))
        self._pending, self._size = [], 0
        return self._sink.take()


class JsonChunks:
    """Each batch is a JSON array of rows of its own, each row an array on its own line."""

    def begin(self, columns: Sequence[Column], schema: pyarrow.Schema) -> bytes:
        return b""

    def rows(self, batch: pyarrow.RecordBatch) -> bytes:
        return b"".join((b"[", joined([*json_arrays(batch.columns), ",\n"])[:-2], b"]"))

    def end(self, summary: Mapping[str, Any]) -> bytes:
        return b""

    @staticmethod
    def count(chunk: bytes) -> int:
        """The number of rows of a chunk; JSON writes a line break within a text as an escape."""
        return chunk.count(b"\n") + 1


class ArrowChunks:
    """Each batch is an Arrow IPC stream of its own."""

    def begin(self, columns: Sequence[Column], schema: pyarrow.Schema) -> bytes:
        return b""

    def rows(self, batch: pyarrow.RecordBatch) -> bytes:
        import pyarrow

        sink = _Sink()
        with pyarrow.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return sink.take()

    def end(self, summary: Mapping[str, Any]) -> bytes:
        return b""

    @staticmethod
    def count(chunk: bytes) -> int:
        """The number of rows of a chunk."""
        import pyarrow

        return int(pyarrow.ipc.open_stream(chunk).read_next_batch().num_rows)


ENCODERS: Mapping[str, Callable[[], Encoder]] = {
    "json": JsonEncoder,
    "json_lines": JsonLinesEncoder,
    "json_array": JsonArrayEncoder,
    "csv": CsvEncoder,
    "arrow": ArrowEncoder,
    "parquet": ParquetEncoder,
    "json_chunks": JsonChunks,
    "arrow_chunks": ArrowChunks,
}


def encoder(name: str) -> Encoder:
    """A new encoder by the name of its format."""
    if name not in ENCODERS:
        raise UnknownChoiceError("format", name, ENCODERS)
    return ENCODERS[name]()


def unique(names: Sequence[str]) -> list[str]:
    """The names, with a number after those that occurred before: an object has each name once."""
    names_so_far: list[str] = []
    for name in names:
        number, candidate = 2, name
        while candidate in names_so_far:
            number, candidate = number + 1, f"{name}_{number}"
        names_so_far.append(candidate)
    return names_so_far


def pieces_of(batch: pyarrow.RecordBatch) -> Iterator[pyarrow.RecordBatch]:
    """The rows of a batch in batches that are small enough to encode."""
    if batch.num_rows <= BATCH_ROWS and (batch.nbytes <= _BATCH_BYTES or batch.num_rows <= 1):
        yield batch
        return
    size = BATCH_ROWS if batch.num_rows > BATCH_ROWS else batch.num_rows // 2
    for start in range(0, batch.num_rows, size):
        yield from pieces_of(batch.slice(start, size))
