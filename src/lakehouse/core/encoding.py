"""Rows as bytes: JSON, CSV, an Arrow stream or Parquet, piece by piece, so that a result of any size needs little memory."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from lakehouse.core.errors import UnknownChoiceError
from lakehouse.core.jsonable import jsonable
from lakehouse.core.tables import Column

if TYPE_CHECKING:
    import pyarrow

#: Rows that are encoded at once.
BATCH_ROWS = 8192
#: Metadata of an Arrow stream: of its schema, and of its last batch.
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


class JsonEncoder:
    """One object with `columns`, `rows` (an object each) and the summary."""

    def begin(self, columns: Sequence[Column], schema: pyarrow.Schema) -> bytes:
        self._names, self._first = unique([column.name for column in columns]), True
        self._converters = [_converter(field.type) for field in schema]
        described = [{"name": name, "type": column.type} for name, column in zip(self._names, columns, strict=True)]
        return f'{{"columns": {json.dumps(described)},\n "rows": ['.encode()

    def rows(self, batch: pyarrow.RecordBatch) -> bytes:
        if not batch.num_rows:
            return b""
        names = self._names
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in converted(batch, self._converters)]
        start, self._first = ("\n  " if self._first else ",\n  "), False
        return (start + ",\n  ".join(lines)).encode()

    def end(self, summary: Mapping[str, Any]) -> bytes:
        return f"],\n {json.dumps(summary)[1:]}\n".encode()


class CsvEncoder:
    """A header line and a line per row; nested values are JSON."""

    def begin(self, columns: Sequence[Column], schema: pyarrow.Schema) -> bytes:
        self._converters = [_csv_converter(field.type) for field in schema]
        return self._lines([[column.name for column in columns]])

    def rows(self, batch: pyarrow.RecordBatch) -> bytes:
        return self._lines(converted(batch, self._converters))

    def end(self, summary: Mapping[str, Any]) -> bytes:
        return b""

    def _lines(self, rows: Any) -> bytes:
        import csv

        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(rows)
        return out.getvalue().encode()


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
    """A Parquet file; rows are written in groups of some megabytes."""

    _GROUP_BYTES = 16 << 20

    def begin(self, columns: Sequence[Column], schema: pyarrow.Schema) -> bytes:
        from pyarrow import parquet

        self._sink, self._pending, self._size = _Sink(), [], 0  # type: ignore[var-annotated]
        self._writer = parquet.ParquetWriter(self._sink, schema, compression="zstd")
        return self._sink.take()

    def rows(self, batch: pyarrow.RecordBatch) -> bytes:
        self._pending.append(batch)
        self._size += batch.nbytes
        return self._flush() if self._size > self._GROUP_BYTES else b""

    def end(self, summary: Mapping[str, Any]) -> bytes:
        written = self._flush() if self._pending else b""
        self._writer.close()
        return written + self._sink.take()

    def _flush(self) -> bytes:
        import pyarrow

        self._writer.write_table(pyarrow.Table.from_batches(self._pending))
        self._pending, self._size = [], 0
        return self._sink.take()


class JsonChunks:
    """Each batch is a JSON array of rows of its own, each row an array."""

    def begin(self, columns: Sequence[Column], schema: pyarrow.Schema) -> bytes:
        self._converters = [_converter(field.type) for field in schema]
        return b""

    def rows(self, batch: pyarrow.RecordBatch) -> bytes:
        return json.dumps(list(converted(batch, self._converters))).encode()

    def end(self, summary: Mapping[str, Any]) -> bytes:
        return b""


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


ENCODERS: Mapping[str, Callable[[], Encoder]] = {
    "json": JsonEncoder,
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


def converted(batch: pyarrow.RecordBatch, converters: Sequence[Callable[[Any], Any] | None]) -> Any:
    """The rows of a batch as tuples of converted values."""
    columns = [
        values if convert is None else [None if value is None else convert(value) for value in values]
        for values, convert in zip((column.to_pylist() for column in batch.columns), converters, strict=True)
    ]
    return zip(*columns, strict=True) if columns else iter(())


def _converter(kind: Any) -> Callable[[Any], Any] | None:
    """What makes JSON of a value of an Arrow type; None for types that are JSON already."""
    from pyarrow import types

    if types.is_integer(kind) or types.is_boolean(kind) or types.is_string(kind) or types.is_large_string(kind):
        return None
    if types.is_floating(kind):
        return lambda value: value if math.isfinite(value) else str(value)
    if types.is_map(kind):
        return lambda value: {str(key): jsonable(item) for key, item in value}
    return jsonable


def _csv_converter(kind: Any) -> Callable[[Any], Any] | None:
    from pyarrow import types

    if types.is_boolean(kind):
        return lambda value: str(value).lower()
    if types.is_nested(kind):
        convert = _converter(kind) or jsonable
        return lambda value: json.dumps(convert(value), ensure_ascii=False)
    return _converter(kind)
