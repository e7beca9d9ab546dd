"""Reads the rows of data files for a compaction in this process: small files concurrently, large ones batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

#: Size of a small file, which is read whole; how many are read together, by how many threads: object stores answer slowly.
_SMALL_BYTES, _TOGETHER, _THREADS = 2**20, 64, 8


def read_batches(table: Any, tasks: Sequence[Any]) -> Iterator[Any]:
    """Yield the rows of files without the deleted ones, in the order of the files.

    Args:
        tasks: PyIceberg's scan tasks: each a data file with its delete files.
    """
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    from lakehouse.pyiceberg_internals import stream_file

    scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
    read = partial(_read_small, table, scan, _columns(table))
    with ThreadPoolExecutor(_THREADS) as pool:
        for together in _chunks(tasks):
            if len(together) == 1:
                yield from stream_file(scan, table.io, together[0])
                continue
            yield from _combined([batch for batches in pool.map(read, together) for batch in batches])


def _combined(batches: list[Any]) -> list[Any]:
    """Return one batch instead of many small ones, if they have the same columns."""
    import pyarrow

    if len({str(batch.schema) for batch in batches}) != 1:
        return batches
    return list(pyarrow.Table.from_batches(batches).combine_chunks().to_batches())


def _chunks(tasks: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield small files in groups and every other file alone."""
    small: list[Any] = []
    for task in tasks:
        if task.file.file_size_in_bytes <= _SMALL_BYTES:
            small.append(task)
            if len(small) < _TOGETHER:
                continue
        if small:
            yield small
            small = []
        if task.file.file_size_in_bytes > _SMALL_BYTES:
            yield [task]
    if small:
        yield small


def _read_small(table: Any, scan: Any, columns: Any, task: Any) -> list[Any]:
    """Return the rows of a file, with PyIceberg only where its columns or deletes require it: that takes four times as long."""
    from pyarrow import parquet

    if columns is not None and not task.delete_files:
        with table.io.new_input(task.file.file_path).open() as stream:
            file = parquet.ParquetFile(stream)
            if _described(file.schema_arrow) == columns:
                return list(file.read().to_batches())
    return list(scan.to_record_batches([task]))


def _columns(table: Any) -> Any:
    """Return the columns of a file whose rows need no conversion; None if the table has nested columns."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    schema = table.schema()
    if any(not field.field_type.is_primitive for field in schema.fields):
        return None
    return _described(schema_to_pyarrow(schema, include_field_ids=True))


def _described(schema: Any) -> Any:
    """Return the name, the field id and the type of each column; None if a column has no id."""
    columns = [((field.metadata or {}).get(b"PARQUET:field_id"), field.name, _type(field.type)) for field in schema]
    return columns if all(number for number, _, _ in columns) else None


def _type(type_: Any) -> str:
    return str(type_).removeprefix("large_")
