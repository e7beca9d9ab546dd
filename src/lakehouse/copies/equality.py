"""Compare two lakes, or a lake and a backup: table by table and snapshot by snapshot, wherever their files are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any

from lakehouse.copies.lake_parts import FileNames
from lakehouse.core.dataclass import dataclass
from lakehouse.core.metadata_file import parse_metadata
from lakehouse.core.state import CatalogState, TableEntry
from lakehouse.formats.iceberg import avro, relocate

Read = Callable[[str], bytes]

#: Fields of a data file that hold paths or depend on their length.
_PATH_DEPENDENT = ("lower_bounds", "upper_bounds", "file_size_in_bytes", "column_sizes")


@dataclass(frozen=True)
class Difference:
    """Something that differs between the two sides."""

    ref: str
    table: str
    what: str


@dataclass
class Side:
    """One of the two lakes: its catalog, and how its files are read by their URIs."""

    state: CatalogState
    names: FileNames
    read: Read
    _digests: dict[str, str] = field(default_factory=dict)

    def digest(self, entry: TableEntry) -> tuple[str, dict[str, str]]:
        """Return a digest of a table's metadata without its snapshots' files, and one of the files of each snapshot."""
        raw = parse_metadata(entry.pointer, self.read(entry.pointer))
        plain = relocate.move_table(raw, self.names.of)
        snapshots = {
            str(snapshot["snapshot-id"]): self._of_list(snapshot["manifest-list"])
            for snapshot in raw.get("snapshots") or ()
            if "manifest-list" in snapshot
        }
        return _digest(plain), snapshots

    def _of_list(self, uri: str) -> str:
        if uri not in self._digests:
            manifests = []
            for record in avro.read(self.read(uri)).records:
                described = {**record, "manifest_path": self.names.of(record["manifest_path"]), "manifest_length": 0}
                manifests.append([described, self._of_manifest(record["manifest_path"])])
            self._digests[uri] = _digest(manifests)
        return self._digests[uri]

    def _of_manifest(self, uri: str) -> str:
        if uri not in self._digests:
            self._digests[uri] = _digest([self._plain(record) for record in avro.read(self.read(uri)).records])
        return self._digests[uri]

    def _plain(self, entry: dict[str, Any]) -> dict[str, Any]:
        file = dict(entry["data_file"])
        file["file_path"] = self.names.of(file["file_path"])
        if file.get("referenced_data_file"):
            file["referenced_data_file"] = self.names.of(file["referenced_data_file"])
        if file.get("content", relocate.DATA) == relocate.POSITION_DELETES:
            file = {name: value for name, value in file.items() if name not in _PATH_DEPENDENT}
        return {**entry, "data_file": file}


def differences(left: Side, right: Side, same_kind: bool = True) -> Iterator[Difference]:
    """Yield what differs between two lakes: refs, tables, their metadata, and each of their snapshots.

    Args:
        same_kind: both catalogs are of one kind. Otherwise the right one may hold more (Nessie's branches have all tables) and
            logs in its own way.
    """
    if same_kind:
        yield from _refs(left, right)
    others = {_key(right, by, entry): entry for by, entry in right.state.entries()}
    compared: set[str] = set()
    for by, entry in left.state.entries():
        other = others.pop(_key(left, by, entry), None)
        if other is None:
            yield Difference(by, str(entry.table), "it is missing, or at another metadata file")
        elif entry.pointer not in compared:
            compared.add(entry.pointer)
            yield from _of_table(left, right, by, entry, other)
    if same_kind:
        yield from (Difference(by, str(entry.table), "it is only in the second") for (by, _), entry in others.items())


def _key(side: Side, by: str, entry: TableEntry) -> tuple[str, str]:
    return by, f"{entry.table} {side.names.of(entry.pointer)}"


def _of_table(left: Side, right: Side, by: str, entry: TableEntry, other: TableEntry) -> Iterator[Difference]:
    name = str(entry.table)
    try:
        (metadata, snapshots), (other_metadata, other_snapshots) = left.digest(entry), right.digest(other)
    except (OSError, ValueError, KeyError) as exc:
        yield Difference(by, name, f"it cannot be compared: {exc}")
        return
    if metadata != other_metadata:
        yield Difference(by, name, "its metadata differs")
    for snapshot in sorted({*snapshots, *other_snapshots}):
        if snapshots.get(snapshot) != other_snapshots.get(snapshot):
            yield Difference(by, name, f"snapshot {snapshot} differs")


def _refs(left: Side, right: Side) -> Iterator[Difference]:
    ours, theirs = left.state.moved(left.names.of), right.state.moved(right.names.of)
    for what, left_value, right_value in (
        ("branches", [branch.ref for branch in ours.branches], [branch.ref for branch in theirs.branches]),
        ("tags", [tag.ref for tag in ours.tags], [tag.ref for tag in theirs.tags]),
        ("log", ours.log, theirs.log),
        ("namespaces", dict(ours.namespaces), dict(theirs.namespaces)),
    ):
        if left_value != right_value:
            yield Difference(what, "", "they differ")


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=bytes.hex)
    return hashlib.sha256(text.encode()).hexdigest()
