"""Rewrites the rows of data files in this process, without a JVM: small files are read concurrently, large ones batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import TableError
from lakehouse.tables.rewrite import AddedFile, PartitionKey, Replacement, SnapshotFiles, with_dangling_deletes

#: Size of a small file, which is read whole; how many are read together, by how many threads: object stores answer slowly.
_SMALL_BYTES, _TOGETHER, _THREADS = 2**20, 64, 8
#: Groups up to this size are rewritten concurrently, by this number of threads: memory is limited.
_SMALL_GROUP, _GROUPS = 8 * 2**20, 4


@dataclass(frozen=True)
class Group:
    """Data files of one partition that become one file."""

    partition: PartitionKey
    tasks: tuple[Any, ...]
    """PyIceberg's scan tasks: each a data file with its delete files."""

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(task.file.file_path for task in self.tasks)

    @property
    def bytes(self) -> int:
        return sum(task.file.file_size_in_bytes for task in self.tasks)

    @property
    def rows(self) -> int:
        return sum(task.file.record_count for task in self.tasks)

    @property
    def has_deletes(self) -> bool:
        return any(task.delete_files for task in self.tasks)


def rewrite_groups(table: Any, files: SnapshotFiles, groups: Sequence[Group]) -> Replacement:
    """Write the rows of each group to one new file; the table stays as it is until the replacement is committed."""
    with ThreadPoolExecutor(_GROUPS if all(group.bytes <= _SMALL_GROUP for group in groups) else 1) as pool:
        parts = list(pool.map(partial(_rewrite_group, table, files), groups))
    return with_dangling_deletes(
        table,
        files,
        Replacement(
            removed=frozenset().union(*(part.removed for part in parts)),
            added=tuple(file for part in parts for file in part.added),
            partitions=frozenset().union(*(part.partitions for part in parts)),
            applied_deletes=frozenset(files.deletes),
        ),
    )


def _rewrite_group(table: Any, files: SnapshotFiles, group: Group) -> Replacement:
    """Write the rows of a group to one new file; the table stays as it is until the replacement is committed."""
    from lakehouse.pyiceberg_internals import write_data_file

    order = table.sort_order()
    sorted_by = [] if order.is_unsorted else [_sort_key(table, part) for part in order.fields]
    batches = read_batches(table, group.tasks)
    if sorted_by:
        batches = _sorted(batches, sorted_by)
    partition = group.tasks[0].file.partition
    written = write_data_file(table, batches, partition, order.order_id if sorted_by else None)
    rows = written.record_count if written else 0
    if rows > group.rows or (rows != group.rows and not group.has_deletes):
        raise TableError(
            f"A compaction read {rows} rows of {group.rows} from {len(group.tasks)} files; nothing was changed.",
            "lake verify",
        )
    snapshot = table.current_snapshot()
    added = (AddedFile(written, snapshot.sequence_number),) if written else ()
    return Replacement(
        removed=group.paths,
        added=added,
        partitions=frozenset({group.partition}),
        applied_deletes=frozenset(files.deletes),
    )


def _sort_key(table: Any, part: Any) -> tuple[str, str]:
    direction = "descending" if part.direction.value == "desc" else "ascending"
    return table.schema().find_column_name(part.source_id), direction


def _sorted(batches: Iterator[Any], keys: Sequence[tuple[str, str]]) -> Iterator[Any]:
    import pyarrow

    rows = list(batches)
    if rows:
        yield from pyarrow.Table.from_batches(rows).sort_by(list(keys)).to_batches()


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
