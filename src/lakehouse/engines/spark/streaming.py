"""The rows of a Spark query while they are computed: partition by partition, as Arrow batches.

`collect` returns all rows at once, and `limit` moves all of them into one partition: either needs the memory of the whole
result. Here, a partition is computed when the one before it is read, and those after the last row that is wanted never are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lakehouse.core.result import BatchedRows, Explain, Result, first_rows
from lakehouse.core.tables import Column
from lakehouse.engines.spark.errors import translated
from lakehouse.engines.spark.results import arrow_schema, with_arrow_types

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

#: Spark itself stops early after so few rows, and one partition of them is small.
_SMALL_LIMIT = 10_000


def can_stream(frame: DataFrame) -> bool:
    """Whether the frame is of a Spark that this process drives; a Spark Connect client of 3.5 gets no Arrow."""
    return hasattr(frame, "_jdf")


def streamed_result(frame: DataFrame, sql: str, reason: str, limit: int | None) -> Result:
    """Start a query and return its rows as they arrive; raises the errors that come before the first rows."""
    columns = tuple(Column(field.name, field.dataType.simpleString()) for field in frame.schema.fields)
    if limit is not None and limit <= _SMALL_LIMIT:
        frame = frame.limit(limit)
    frame = with_arrow_types(frame)
    schema = arrow_schema(frame.schema)
    batches = first_rows(_batches(_serve(frame), schema, sql), limit)
    first = next(batches, None)
    return Result(columns, BatchedRows(schema, _with_first(first, batches)), Explain("spark", reason))


def _with_first(
    first: pyarrow.RecordBatch | None, others: Iterator[pyarrow.RecordBatch]
) -> Iterator[pyarrow.RecordBatch]:
    if first is not None:
        yield first
    yield from others


def _batches(served: Any, schema: pyarrow.Schema, sql: str) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow
    from pyspark.rdd import _local_iterator_from_socket
    from pyspark.serializers import NoOpSerializer

    with translated(sql):
        for data in _local_iterator_from_socket(served, NoOpSerializer()):
            yield pyarrow.ipc.read_record_batch(pyarrow.py_buffer(data), schema)


def _serve(frame: DataFrame) -> Any:
    """Have the JVM serve the Arrow batches of a frame on a socket, in a thread with the properties of this one."""
    context = frame.sparkSession.sparkContext
    jvm: Any = context._jvm
    with _session_settings(frame):
        return jvm.PythonRDD.toLocalIteratorAndServe(frame._jdf.toArrowBatchRdd(), True)


@contextmanager
def _session_settings(frame: DataFrame) -> Iterator[None]:
    """Give tasks the settings of the session, as Spark does for its own actions; without, they run with the defaults."""
    context = frame.sparkSession.sparkContext
    java: Any = context._jvm
    settings = frame.sparkSession._jsparkSession.conf().getAll()
    settings = java.scala.collection.JavaConverters.mapAsJavaMapConverter(settings).asJava()
    properties = context._jsc.sc().getLocalProperties()
    properties.putAll(settings)
    try:
        yield
    finally:
        properties.keySet().removeAll(settings.keySet())
