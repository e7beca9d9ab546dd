"""Plans a compaction: which files of a table become larger ones, and whether that takes Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.tables.rewrite import PartitionKey, SnapshotFiles, partition_key, partition_sizes
from lakehouse.tables.rewrite_rows import Group

#: A file below this share of the target size is small. Iceberg's own procedure takes the same share.
SMALL_SHARE = 0.75
#: At least this many small files of a partition are worth a rewrite, or fewer if they are tiny.
MIN_FILES = 5
_TINY_BYTES = 16 * 2**20
#: The largest group whose rows are sorted in this process: sorting holds all of them in memory, in about ten times these bytes.
_MAX_SORTED_BYTES = 64 * 2**20


@dataclass(frozen=True)
class CompactionPlan:
    """What a compaction would rewrite."""

    groups: tuple[Group, ...] = ()
    needs_spark: str = ""
    """Why this process cannot do it; empty if it can."""
    files: int = 0
    bytes: int = 0
    files_after: int = 0
    everything: bool = False
    """All files are rewritten, not only small ones and those with deletes."""

    def __bool__(self) -> bool:
        return bool(self.files)


def plan_compaction(table: Any, files: SnapshotFiles, target: int, largest_local: int) -> CompactionPlan:
    """Plan which files to rewrite.

    Args:
        table: PyIceberg's table.
        files: the files of its current snapshot.
        target: the size of a data file in bytes.
        largest_local: how many bytes this process may rewrite.
    """
    reason = _needs_spark(table, files)
    if reason:
        return _spark_plan(files, target, reason)
    groups = tuple(_groups(list(table.scan().plan_files()), target))
    size, count = sum(group.bytes for group in groups), sum(len(group.tasks) for group in groups)
    too_large = f"{size} bytes are more than maintenance.largest_local" if size > largest_local else ""
    if not table.sort_order().is_unsorted and any(group.bytes > _MAX_SORTED_BYTES for group in groups):
        too_large = too_large or f"more than {_MAX_SORTED_BYTES} bytes to sort"
    return CompactionPlan(groups, too_large, count, size, len(groups))


def with_reason(plan: CompactionPlan, reason: str) -> CompactionPlan:
    """Return a plan for Spark."""
    return replace(plan, needs_spark=plan.needs_spark or reason)


def whole_table(files: SnapshotFiles, target: int, reason: str) -> CompactionPlan:
    """Return a plan for Spark to rewrite every file."""
    sizes = partition_sizes(files)
    after = sum(files_needed(size, target) for size in sizes.values())
    return CompactionPlan((), reason, len(files.data), sum(sizes.values()), after, everything=True)


def _needs_spark(table: Any, files: SnapshotFiles) -> str:
    from pyiceberg.manifest import DataFileContent, FileFormat

    version = table.metadata.format_version
    if version != 2:
        return f"format version {version}"
    if any(entry.data_file.content == DataFileContent.EQUALITY_DELETES for entry in files.deletes.values()):
        return "equality deletes"
    entries = (*files.data.values(), *files.deletes.values())
    if any(entry.data_file.file_format != FileFormat.PARQUET for entry in entries):
        return "files that are not Parquet"
    if any(str(field.transform) != "identity" for field in table.sort_order().fields):
        return "a sort order with transforms"
    if any(entry.data_file.spec_id != table.spec().spec_id for entry in files.data.values()):
        return "files of an earlier partitioning"
    return ""


def _spark_plan(files: SnapshotFiles, target: int, reason: str) -> CompactionPlan:
    """Return an estimate of what Spark would rewrite."""
    small: dict[PartitionKey, list[Any]] = {}
    for entry in files.data.values():
        if files.deletes or entry.data_file.file_size_in_bytes < SMALL_SHARE * target:
            small.setdefault(partition_key(entry.data_file), []).append(entry.data_file)
    chosen = [group for group in small.values() if files.deletes or is_worth(len(group), _bytes(group))]
    size = sum(_bytes(group) for group in chosen)
    after = sum(files_needed(_bytes(group), target) for group in chosen)
    return CompactionPlan((), reason, sum(len(group) for group in chosen), size, after)


def _bytes(files: Sequence[Any]) -> int:
    return sum(file.file_size_in_bytes for file in files)


def files_needed(size: int, target: int) -> int:
    """Return how many files of the target size hold these bytes."""
    return max(1, -(-size // target))


def is_worth(count: int, size: int) -> bool:
    """Return whether this number of small files of one partition, with this total size, is worth a rewrite."""
    return count >= MIN_FILES or (count > 1 and size < _TINY_BYTES)


def _groups(tasks: Sequence[Any], target: int) -> Iterator[Group]:
    """Yield the files of each partition in groups of the target size; only groups that are worth a rewrite."""
    candidates: dict[PartitionKey, list[Any]] = {}
    for task in tasks:
        if task.delete_files or task.file.file_size_in_bytes < SMALL_SHARE * target:
            candidates.setdefault(partition_key(task.file), []).append(task)
    for key in sorted(candidates):
        for packed in _packed(candidates[key], target):
            group = Group(key, tuple(packed))
            if group.has_deletes or is_worth(len(packed), group.bytes):
                yield group


def _packed(tasks: Sequence[Any], target: int) -> Iterator[list[Any]]:
    """Yield groups of files up to the target size, in the order of their names, which is mostly that of their rows."""
    group: list[Any] = []
    size = 0
    for task in sorted(tasks, key=lambda task: task.file.file_path):
        if group and size + task.file.file_size_in_bytes > target:
            yield group
            group, size = [], 0
        group.append(task)
        size += task.file.file_size_in_bytes
    if group:
        yield group
