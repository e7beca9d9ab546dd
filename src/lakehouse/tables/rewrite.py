"""Replaces files of an Iceberg table in one new snapshot that changes no row, and merges manifests.

The snapshot's operation is `replace`, so readers of changes know that rows stayed as they were. Before a replacement is
applied to a state of the table that is newer than the one it was made from, `validate` checks that no commit in between
removed one of its files or deleted rows in them.
"""

from __future__ import annotations

import copy
import secrets
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import datetime
from typing import Any

from lakehouse.core.catalog import Catalog
from lakehouse.core.dataclass import dataclass
from lakehouse.core.files import Files
from lakehouse.core.metadata_file import load_metadata, metadata_log
from lakehouse.core.names import TableName
from lakehouse.tables.fork import Committer, forked

#: Our note in the summary of a snapshot that rewrote files: how many data files it left.
COMPACTED_FILES = "lake.compacted-files"
#: Attempts to commit a replacement when the table has changed.
_COMMITS = 10
#: Entries of one manifest that we write; about 8 MB with the statistics of 30 columns.
_ENTRIES_PER_MANIFEST = 4000
#: A table has at most this many manifests before they are merged; and this multiple of those that it needs.
_MANY_MANIFESTS, _EXCESS_MANIFESTS = 20, 4
_COMPRESSION = "gzip"

PartitionKey = tuple[int, str]


class StaleReplacementError(Exception):
    """Another commit has changed the files of a replacement, which has to be planned again."""


@dataclass(frozen=True)
class AddedFile:
    """A new data file, and the sequence number up to which deletes are applied in it."""

    file: Any
    sequence: int


@dataclass(frozen=True)
class Replacement:
    """Files that take the place of others without changing a row."""

    removed: frozenset[str]
    """Data files by path."""
    added: tuple[AddedFile, ...]
    partitions: frozenset[PartitionKey] = frozenset()
    """The partitions of the removed files."""
    applied_deletes: frozenset[str] = frozenset()
    """All delete files of the table when the removed files were read: what they delete is not in the added files."""
    removed_deletes: frozenset[str] = frozenset()
    """Delete files that refer to removed files only."""
    merge_manifests: bool = False
    """Rewrite all manifests."""


@dataclass
class SnapshotFiles:
    """The manifests and live entries of one snapshot."""

    manifests: list[Any]
    data: dict[str, Any] = field(default_factory=dict)
    """Entries of data files by path."""
    deletes: dict[str, Any] = field(default_factory=dict)
    manifest_of: dict[str, str] = field(default_factory=dict)
    """The manifest of each file by the file's path."""


@dataclass(frozen=True)
class LoadedTable:
    """An Iceberg table at one moment."""

    pointer: str
    raw: dict[str, Any]
    table: Any
    """PyIceberg's table."""
    files: SnapshotFiles


@dataclass(frozen=True)
class FileRewriter:
    """Replaces files of tables by others with the same rows.

    Rows are read and written first, without a lock. The commit is repeated on the newest state of the table as long as nobody
    has changed the same files; appends of others stay.
    """

    catalog: Catalog
    files: Files
    committer: Committer
    now: Callable[[], datetime]

    def load(self, table: TableName) -> LoadedTable | None:
        pointer = self.catalog.pointer(table)
        return self._load_at(pointer) if pointer else None

    def _load_at(self, pointer: str) -> LoadedTable:
        from lakehouse.pyiceberg_internals import table_at

        table = table_at(pointer, self.catalog.pyiceberg_properties())
        return LoadedTable(pointer, load_metadata(pointer, self.files), table, read_snapshot(table))

    @contextmanager
    def on_spark(
        self, table: TableName, loaded: LoadedTable, rewrite: Callable[[str, str], None]
    ) -> Iterator[tuple[Replacement, LoadedTable]]:
        """Let Spark rewrite files on a branch, which holds them until the end of the block.

        Args:
            rewrite: runs Spark's procedure, given the name of the branch's catalog and of the branch.

        Yields:
            What was replaced, to be committed; and the table on the branch.
        """
        with forked(self.catalog, "maintain", [table], self.files) as fork:
            if fork.base[table] != loaded.pointer:
                raise StaleReplacementError("the table changed before Spark began")
            rewrite(fork.on_branch.name, fork.branch)
            after = self._load_at(fork.on_branch.pointer(table) or loaded.pointer)
            yield _difference(loaded.files, after.files), after

    def commit(
        self,
        table: TableName,
        loaded: LoadedTable,
        replacement: Replacement,
        message: str,
        notes: dict[str, str] | None = None,
    ) -> bool:
        """Apply a replacement to the newest state of the table; repeats it while other commits come first.

        Args:
            notes: of a compaction, for the summary of its snapshot; None for one that only merges manifests.
        """
        state: LoadedTable | None = loaded
        for _ in range(_COMMITS):
            if state is None:
                return False
            left = len(state.files.data) - len(replacement.removed) + len(replacement.added)
            # Without a mode, an ingest would take the operation `replace` for a replacement of all rows.
            summary = {"lake.mode": "maintain", **({} if notes is None else {COMPACTED_FILES: str(left), **notes})}
            raw = replace_files(state.table, state.raw, replacement, summary, self.now(), state.files)
            if self.committer.commit(table, state.pointer, raw, message):
                return True
            state = self.load(table)
        return False


def read_snapshot(table: Any) -> SnapshotFiles:
    """Read the manifests of a table's current snapshot."""
    from pyiceberg.manifest import ManifestContent

    snapshot = table.current_snapshot()
    files = SnapshotFiles(list(snapshot.manifests(table.io)) if snapshot else [])
    for manifest in files.manifests:
        into = files.data if manifest.content == ManifestContent.DATA else files.deletes
        for entry in manifest.fetch_manifest_entry(table.io):
            into[entry.data_file.file_path] = entry
            files.manifest_of[entry.data_file.file_path] = manifest.manifest_path
    return files


def partition_key(file: Any) -> PartitionKey:
    """Return a key that is equal for the files of one partition."""
    return file.spec_id, repr(file.partition)


def partition_sizes(files: SnapshotFiles) -> Mapping[PartitionKey, int]:
    """Return the bytes of the data files of each partition."""
    sizes: Counter[PartitionKey] = Counter()
    for entry in files.data.values():
        sizes[partition_key(entry.data_file)] += entry.data_file.file_size_in_bytes
    return sizes


def validate(current: SnapshotFiles, replacement: Replacement) -> None:
    """Raise if a commit since the replacement was planned has removed one of its files, or deleted rows in one.

    Equality deletes need no check: they apply to files with a lower sequence number, and the added files have that of the
    snapshot that they were read from.
    """
    from pyiceberg.manifest import DataFileContent

    missing = (replacement.removed - set(current.data)) | (replacement.removed_deletes - set(current.deletes))
    if missing:
        raise StaleReplacementError(f"{len(missing)} of the files to replace are no longer in the table")
    for path, entry in current.deletes.items():
        if path in replacement.applied_deletes or entry.data_file.content == DataFileContent.EQUALITY_DELETES:
            continue
        if partition_key(entry.data_file) in replacement.partitions:
            raise StaleReplacementError("rows of the files to replace were deleted meanwhile")


def with_dangling_deletes(table: Any, files: SnapshotFiles, replacement: Replacement) -> Replacement:
    """Return the replacement, which also removes the delete files that refer to no other data file."""
    remaining = set(files.data) - replacement.removed
    gone = frozenset(
        path
        for path, entry in files.deletes.items()
        if partition_key(entry.data_file) in replacement.partitions
        and not (_referenced(table, entry.data_file) & remaining)
    )
    return replace(replacement, removed_deletes=gone)


def _referenced(table: Any, delete_file: Any) -> set[str]:
    """Return the data files in which a position delete file deletes rows."""
    from pyarrow import parquet

    path_id = 2147483546
    lower, upper = (delete_file.lower_bounds or {}).get(path_id), (delete_file.upper_bounds or {}).get(path_id)
    if lower and lower == upper:
        return {lower.decode()}
    with table.io.new_input(delete_file.file_path).open() as stream:
        return set(parquet.read_table(stream, columns=["file_path"]).column(0).unique().to_pylist())


def _difference(before: SnapshotFiles, after: SnapshotFiles) -> Replacement:
    """Return what Spark's procedures changed between two states of a table as a replacement."""
    removed = frozenset(before.data) - set(after.data)
    added = [after.data[path] for path in after.data if path not in before.data]
    return Replacement(
        removed=removed,
        added=tuple(AddedFile(entry.data_file, entry.sequence_number) for entry in added),
        partitions=frozenset(partition_key(before.data[path].data_file) for path in removed),
        applied_deletes=frozenset(before.deletes),
        removed_deletes=frozenset(before.deletes) - set(after.deletes),
    )


def too_many_manifests(files: SnapshotFiles) -> bool:
    """Return whether a query would be planned noticeably faster with merged manifests."""
    needed = -(-len(files.data) // _ENTRIES_PER_MANIFEST) + bool(files.deletes)
    return len(files.manifests) > max(_MANY_MANIFESTS, _EXCESS_MANIFESTS * needed)


def replace_files(
    table: Any,
    raw: Mapping[str, Any],
    replacement: Replacement,
    notes: Mapping[str, str],
    now: datetime,
    current: SnapshotFiles | None = None,
) -> dict[str, Any]:
    """Write the manifests of a new snapshot, and return the metadata with it.

    Args:
        table: PyIceberg's table at the pointer that `raw` was read from.
        notes: further entries of the snapshot's summary.
        current: the files of its current snapshot, if they were read already.
    """
    current = current or read_snapshot(table)
    validate(current, replacement)
    gone = replacement.removed | replacement.removed_deletes
    affected = _affected(current, gone, replacement.merge_manifests)
    kept = [manifest for manifest in current.manifests if manifest.manifest_path not in affected]
    new, summary = copy.deepcopy(dict(raw)), _summary(current, replacement)
    writer = _ManifestFiles(table)
    sequence = raw["last-sequence-number"] + 1
    manifests = [*kept, *writer.write(current, affected, replacement, sequence)]
    writer.add_snapshot(new, manifests, {**summary, **notes}, now)
    live = [manifest for manifest in manifests if manifest.has_added_files() or manifest.has_existing_files()]
    if len(live) < len(manifests):
        # A second snapshot, without the manifests of removed files: DuckDB and PyIceberg would read them for every query.
        totals = {name: value for name, value in summary.items() if name.startswith("total-")}
        _ManifestFiles(table).add_snapshot(new, live, {**totals, **notes}, now)
    new["metadata-log"] = metadata_log(raw, table.metadata_location)
    return new


def _affected(current: SnapshotFiles, gone: frozenset[str], everything: bool) -> set[str]:
    """Return the manifests to rewrite: those with a removed file, or all if there are too many."""
    if everything or too_many_manifests(current):
        return {manifest.manifest_path for manifest in current.manifests}
    return {current.manifest_of[path] for path in gone}


class _ManifestFiles:
    """Writes the manifests of one new snapshot."""

    def __init__(self, table: Any) -> None:
        self._table, self._snapshot_id = table, secrets.randbits(62)
        self._commit, self._number = uuid.uuid4(), 0

    def add_snapshot(
        self, raw: dict[str, Any], manifests: Sequence[Any], summary: Mapping[str, str], now: datetime
    ) -> None:
        """Write a manifest list, and make it the current snapshot of the metadata."""
        parent, sequence = raw.get("current-snapshot-id"), raw["last-sequence-number"] + 1
        milliseconds = max(int(now.timestamp() * 1000), raw["last-updated-ms"] + 1)
        raw["snapshots"].append(
            {
                "snapshot-id": self._snapshot_id,
                "parent-snapshot-id": parent,
                "sequence-number": sequence,
                "timestamp-ms": milliseconds,
                "manifest-list": self._write_list(manifests, parent, sequence),
                "summary": {"operation": "replace", **summary},
                "schema-id": raw["current-schema-id"],
            }
        )
        raw |= {"current-snapshot-id": self._snapshot_id, "last-sequence-number": sequence}
        raw["last-updated-ms"] = milliseconds
        raw.setdefault("refs", {})["main"] = {"snapshot-id": self._snapshot_id, "type": "branch"}
        raw.setdefault("snapshot-log", []).append({"snapshot-id": self._snapshot_id, "timestamp-ms": milliseconds})

    def write(
        self, current: SnapshotFiles, affected: set[str], replacement: Replacement, sequence: int
    ) -> Iterator[Any]:
        """Rewrite the entries of some manifests, without the removed and with the added files."""
        for manifest in self._manifests(current, affected, replacement):
            # Set here, because the manifest lists of two snapshots hold this manifest.
            manifest.sequence_number = sequence
            if manifest.min_sequence_number < 0:
                manifest.min_sequence_number = sequence
            yield manifest

    def _manifests(self, current: SnapshotFiles, affected: set[str], replacement: Replacement) -> Iterator[Any]:
        from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus

        added = [
            ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED,
                snapshot_id=self._snapshot_id,
                sequence_number=new.sequence,
                data_file=new.file,
            )
            for new in replacement.added
        ]
        yield from self._by_spec(_of(current.data, current, affected), replacement.removed, added, deletes=False)
        yield from self._by_spec(_of(current.deletes, current, affected), replacement.removed_deletes, [], deletes=True)

    def _by_spec(
        self, entries: Sequence[Any], gone: frozenset[str], added: Sequence[Any], deletes: bool
    ) -> Iterator[Any]:
        specs = sorted({entry.data_file.spec_id for entry in (*entries, *added)})
        for spec in specs:
            of_spec = [entry for entry in entries if entry.data_file.spec_id == spec]
            live = [("existing", entry) for entry in of_spec if entry.data_file.file_path not in gone]
            live += [("add", entry) for entry in added if entry.data_file.spec_id == spec]
            # In manifests of their own, which readers skip. Spark needs them: it refuses to delete rows of a file that is
            # gone only if a manifest says so.
            removed = [("delete", entry) for entry in of_spec if entry.data_file.file_path in gone]
            for part in (live, removed):
                part.sort(key=lambda pair: repr(pair[1].data_file.partition))
                for start in range(0, len(part), _ENTRIES_PER_MANIFEST):
                    yield self._write(spec, part[start : start + _ENTRIES_PER_MANIFEST], deletes)

    def _write(self, spec_id: int, entries: Iterable[tuple[str, Any]], deletes: bool) -> Any:
        from pyiceberg.manifest import ManifestWriterV2

        from lakehouse.pyiceberg_internals import DeleteManifestWriter

        table, kind = self._table, DeleteManifestWriter if deletes else ManifestWriterV2
        output = table.io.new_output(self._place(f"{self._commit}-m{self._number}.avro"))
        self._number += 1
        with kind(table.specs()[spec_id], table.schema(), output, self._snapshot_id, _COMPRESSION) as writer:
            for how, entry in entries:
                getattr(writer, how)(entry)
        return writer.to_manifest_file()

    def _write_list(self, manifests: Iterable[Any], parent: int | None, sequence: int) -> str:
        from pyiceberg.manifest import write_manifest_list

        place = self._place(f"snap-{self._snapshot_id}-0-{self._commit}.avro")
        output = self._table.io.new_output(place)
        with write_manifest_list(2, output, self._snapshot_id, parent, sequence, _COMPRESSION) as writer:
            writer.add_manifests(list(manifests))
        return place

    def _place(self, name: str) -> str:
        return f"{self._table.metadata_location.rpartition('/')[0]}/{name}"


def _of(entries: Mapping[str, Any], current: SnapshotFiles, manifests: set[str]) -> list[Any]:
    return [entry for path, entry in entries.items() if current.manifest_of[path] in manifests]


def _summary(current: SnapshotFiles, replacement: Replacement) -> dict[str, str]:
    """Return the counts that the summary of a snapshot states."""
    from pyiceberg.manifest import DataFileContent

    gone = [current.data[path].data_file for path in replacement.removed]
    added_files = [added.file for added in replacement.added]
    data = [entry.data_file for path, entry in current.data.items() if path not in replacement.removed] + added_files
    deletes = [entry.data_file for path, entry in current.deletes.items() if path not in replacement.removed_deletes]
    by_position = [file for file in deletes if file.content == DataFileContent.POSITION_DELETES]
    by_equality = [file for file in deletes if file.content == DataFileContent.EQUALITY_DELETES]
    counts = {
        "added-data-files": len(added_files),
        "deleted-data-files": len(gone),
        "added-records": _rows(added_files),
        "deleted-records": _rows(gone),
        "added-files-size": _bytes(added_files),
        "removed-files-size": _bytes(gone),
        "removed-delete-files": len(replacement.removed_deletes),
        "changed-partition-count": len({partition_key(file) for file in gone}),
        "total-data-files": len(data),
        "total-delete-files": len(deletes),
        "total-records": _rows(data),
        "total-files-size": _bytes(data) + _bytes(deletes),
        "total-position-deletes": _rows(by_position),
        "total-equality-deletes": _rows(by_equality),
    }
    return {name: str(value) for name, value in counts.items() if value or name.startswith("total-")}


def _rows(files: Iterable[Any]) -> int:
    return sum(file.record_count for file in files)


def _bytes(files: Iterable[Any]) -> int:
    return sum(file.file_size_in_bytes for file in files)
