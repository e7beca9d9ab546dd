"""Change tables on a branch of their own, and publish it if nobody changed them meanwhile.

Every writer works this way: an ingest, a maintenance and a run. Readers see nothing before the publish. A writer that is
killed leaves its branch, which names the process that owned it, so that only abandoned branches are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from lakehouse.core.cancel import commit as committed
from lakehouse.core.catalog import Catalog
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import CommitConflictError
from lakehouse.core.files import Files
from lakehouse.core.metadata_file import load_metadata, metadata_log, write_next
from lakehouse.core.names import TableName
from lakehouse.core.refs import BranchKind, Commit, InternalBranch, Published, Ref
from lakehouse.process.pids import current_process, has_ended

#: This host knows whether one of its processes runs. A branch of another host is abandoned after this time.
_FOREIGN_LIFE_TIME = timedelta(days=1)

#: Publishes a branch: the catalog's own method, or one that runs the user's hook first.
Publish = Callable[[str, Commit], Published]


@dataclass(frozen=True)
class Fork:
    """Tables on a branch of their own."""

    catalog: Catalog
    """The catalog that the branch was forked from."""
    branch: str
    base: Mapping[TableName, str | None]
    """The pointers of the tables when the branch was created; None for a table that does not exist yet."""
    files: Files

    @property
    def on_branch(self) -> Catalog:
        """The catalog of the branch."""
        return self.catalog.on(self.branch)

    def annotate(self, table: TableName, notes: Mapping[str, str]) -> None:
        """Make what happened to a table on the branch one snapshot with these notes."""
        annotate(self.on_branch, table, notes, self.base[table], self.files)

    def replace_metadata(self, table: TableName, metadata: Mapping[str, Any]) -> str:
        """Make this the metadata of a table on the branch; returns the pointer."""
        before = self.base[table]
        assert before is not None
        pointer = write_next(before, metadata, self.files)
        set_pointer(self.on_branch, table, before, pointer)
        return pointer

    def publish(self, commit: Commit, publish: Publish | None = None) -> Published:
        """Publish the branch if nobody changed its tables since."""
        return committed(lambda: (publish or self.catalog.publish)(self.branch, commit))


@dataclass(frozen=True)
class Committer:
    """Replaces the metadata of tables."""

    catalog: Catalog
    files: Files
    publish: Publish
    author: str = ""

    def commit(self, table: TableName, expected: str, metadata: Mapping[str, Any], message: str) -> bool:
        """Make this the metadata of a table; False if its pointer is not `expected` any more."""
        with forked(self.catalog, "maintain", [table], self.files) as fork:
            if fork.base[table] != expected:
                return False
            fork.replace_metadata(table, metadata)
            return bool(fork.publish(Commit("maintain", self.author, message), self.publish))


@contextmanager
def forked(catalog: Catalog, kind: BranchKind, tables: Sequence[TableName], files: Files) -> Iterator[Fork]:
    """A new branch with some tables until the end of the block; what is not published by then is dropped."""
    branch = InternalBranch.new(kind).name
    try:
        base = catalog.fork(branch, tables, current_process().sign(Commit("branch")))
        yield Fork(catalog, branch, base, files)
    finally:
        catalog.drop_branch(branch)  # it is gone already if it was published


def drop_abandoned(catalog: Catalog, kind: BranchKind, table: TableName | None = None) -> list[str]:
    """Drop the branches of a kind, for all tables or for one, whose processes have ended; returns their names."""
    of_table = None if table is None else set(catalog.branches_of(table, InternalBranch(kind, "").name))
    if of_table is not None and not of_table:
        return []  # the common case: one query
    refs = [ref for ref in catalog.branch_refs() if of_table is None or ref.name in of_table]
    dropped = [ref.name for ref in refs if is_abandoned(ref, kind)]
    for name in dropped:
        catalog.drop_branch(name)
    return dropped


def is_abandoned(ref: Ref, kind: BranchKind) -> bool:
    """Whether a branch is one of a kind whose process has ended. A branch without an owner may be a user's."""
    internal = InternalBranch.parse(ref.name)
    if internal is None or internal.kind != kind or ref.owner is None:
        return False
    if ref.owner.host == current_process().host:
        return has_ended(ref.owner)
    return "" < ref.created_at < (datetime.now(UTC) - _FOREIGN_LIFE_TIME).isoformat()


def annotate(branch: Catalog, table: TableName, notes: Mapping[str, str], base: str | None, files: Files) -> None:
    """Add notes to the summary of a table's newest snapshot on an unpublished branch.

    Spark takes notes from a DataFrame's writer, but not from MERGE or UPDATE. What happened since the metadata file `base`
    becomes one snapshot: nobody has seen the ones in between.
    """
    pointer = _pointer(branch, table)
    before = load_metadata(base, files) if base else {}
    annotated = write_next(pointer, _with_notes(pointer, load_metadata(pointer, files), notes, before), files)
    set_pointer(branch, table, pointer, annotated)


def add_notes(branch: Catalog, table: TableName, notes: Mapping[str, str], files: Files) -> None:
    """Add notes to the summary of a table's current snapshot; nothing else of the table changes."""
    pointer = _pointer(branch, table)
    stored, named = load_metadata(pointer, files), {f"lake.{name}": value for name, value in notes.items()}
    snapshots = [
        {**entry, "summary": {**entry["summary"], **named}}
        if entry["snapshot-id"] == stored["current-snapshot-id"]
        else entry
        for entry in stored["snapshots"]
    ]
    changed = {"snapshots": snapshots, "metadata-log": metadata_log(stored, pointer)}
    set_pointer(branch, table, pointer, write_next(pointer, {**stored, **changed}, files))


def _pointer(branch: Catalog, table: TableName) -> str:
    if (pointer := branch.pointer(table)) is None:
        raise CommitConflictError(f"{table} is gone from the branch {branch.name} that writes to it.", "Try again.")
    return pointer


def set_current(branch: Catalog, table: TableName, snapshot: str, files: Files) -> None:
    """Make a snapshot the current one of a table on a branch, with the columns that it had. No data is copied."""
    pointer = _pointer(branch, table)
    stored = load_metadata(pointer, files)
    entry = next(entry for entry in stored["snapshots"] if str(entry["snapshot-id"]) == snapshot)
    now = max(stored["last-updated-ms"] + 1, int(datetime.now(UTC).timestamp() * 1000))
    refs = stored.get("refs", {})
    changed = {
        "current-snapshot-id": entry["snapshot-id"],
        "current-schema-id": _schema_of(stored, entry),
        "refs": {**refs, "main": {"type": "branch", **refs.get("main", {}), "snapshot-id": entry["snapshot-id"]}},
        "snapshot-log": [*stored.get("snapshot-log", []), {"snapshot-id": entry["snapshot-id"], "timestamp-ms": now}],
        "metadata-log": metadata_log(stored, pointer),
        "last-updated-ms": now,
    }
    set_pointer(branch, table, pointer, write_next(pointer, {**stored, **changed}, files))


def _schema_of(stored: Mapping[str, Any], entry: Mapping[str, Any]) -> int:
    """The schema of a snapshot; the current one if today's partitions or sort order need a column that the old one lacks."""
    current = int(stored["current-schema-id"])
    old = int(entry.get("schema-id", current))
    known = {field["id"] for schema in stored["schemas"] if schema["schema-id"] == old for field in schema["fields"]}
    specs = [spec for spec in stored["partition-specs"] if spec["spec-id"] == stored["default-spec-id"]]
    orders = [
        order for order in stored.get("sort-orders", ()) if order["order-id"] == stored.get("default-sort-order-id")
    ]
    needed = {field["source-id"] for layout in (*specs, *orders) for field in layout["fields"]}
    return old if needed <= known else current


def set_pointer(branch: Catalog, table: TableName, expected: str, new: str | None) -> None:
    """Replace the pointer of a table on a branch (None removes the table); an error if it is not `expected`."""
    if not branch.swap_pointer(table, expected, new):
        raise CommitConflictError(
            f"Another process changed {table} on the branch {branch.name}, which one writer owns.",
            "Nothing was published. Try again.",
        )


def _with_notes(
    pointer: str, stored: Mapping[str, Any], notes: Mapping[str, str], before: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the metadata with one snapshot since `before`, which has the notes."""
    newest = stored["current-snapshot-id"]
    seen = {entry["snapshot-id"] for entry in before.get("snapshots", [])} | {newest}
    current = dict(next(entry for entry in stored["snapshots"] if entry["snapshot-id"] == newest))
    current["summary"] = {**current["summary"], **{f"lake.{name}": value for name, value in notes.items()}}
    parent = before.get("current-snapshot-id")
    if parent in (None, -1):
        current.pop("parent-snapshot-id", None)
    else:
        current["parent-snapshot-id"] = parent
    kept = [entry for entry in stored["snapshots"] if entry["snapshot-id"] in seen]
    return {
        **stored,
        "metadata-log": metadata_log(stored, pointer),
        "snapshots": [current if entry["snapshot-id"] == newest else entry for entry in kept],
        "snapshot-log": [entry for entry in stored["snapshot-log"] if entry["snapshot-id"] in seen],
    }
