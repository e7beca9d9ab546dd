"""Clone a lake without its data: new metadata files in another folder refer to the data files of the source."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from pathlib import Path

from lakehouse.copies.content import hudi_folders
from lakehouse.copies.lake_parts import LakeParts
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import NotSupportedError
from lakehouse.core.metadata_file import load_metadata, new_uri, version_of
from lakehouse.core.refs import Commit
from lakehouse.core.state import CatalogState, TableEntry
from lakehouse.formats.iceberg import relocate
from lakehouse.storage.tree import LocalTree
from lakehouse.tables.fill import fill

#: States where a clone comes from; in the clone's folder.
CLONE_FILE = "clone.json"
TAG_PREFIX = "clone_"


@dataclass(frozen=True)
class CloneReport:
    """What a clone refers to."""

    tables: int
    tag: str
    """The tag in the source that keeps the files of the clone."""
    notes: tuple[str, ...] = ()


def clone_shallow(source: LakeParts, target: LakeParts, from_ref: str, resumes: bool = False) -> CloneReport:
    """Fill an empty lake with the tables of a branch or tag. A tag in the source keeps the files that they share.

    Args:
        resumes: an earlier call was killed; this one finishes the clone of the tag that the earlier one created.
    """
    if not isinstance(source.warehouse, LocalTree) or not isinstance(target.warehouse, LocalTree):
        raise NotSupportedError(
            "A shallow clone shares files of this machine, and this lake is in an object store.",
            "Create a branch, which is free as well (lake branch create), or copy the lake: lake backup, lake restore",
        )
    message = f"files shared with the clone in {target.home}"
    tag = _tag_with(source, message) if resumes else ""
    if not tag:
        tag = f"{TAG_PREFIX}{uuid.uuid4().hex[:8]}"
        # First, so that no maintenance of the source removes what is read next.
        source.catalog.create_tag(tag, from_ref, Commit("tag", message=message))
    try:
        report = _fill(source, target, tag)
    except BaseException:
        source.catalog.drop_tag(tag)
        raise
    note = {"source": str(source.home), "tag": tag}
    LocalTree(target.home).write(CLONE_FILE, json.dumps(note).encode())
    return report


def _tag_with(source: LakeParts, message: str) -> str:
    """The newest tag of a clone that has this message; empty if there is none."""
    tags = [ref for ref in source.catalog.tags() if ref.name.startswith(TAG_PREFIX) and ref.message == message]
    return max(tags, key=lambda ref: ref.created_at).name if tags else ""


def _fill(source: LakeParts, target: LakeParts, tag: str) -> CloneReport:
    content = source.catalog.dump_state()
    tables = next(state.tables for state in content.tags if state.ref.name == tag)
    cloned = tuple(_clone_table(source, target, table) for table in tables)
    spaces = {entry.table.namespace: content.namespaces.get(entry.table.namespace, {}) for entry in cloned}
    hudi = hudi_folders(file.name for file in source.warehouse.list())
    notes = [f"Hudi table {folder}: its files cannot be shared" for folder in hudi]
    fill(target.catalog, CatalogState(main=cloned, namespaces=spaces))
    return CloneReport(len(cloned), tag, tuple(notes))


def _clone_table(source: LakeParts, target: LakeParts, entry: TableEntry) -> TableEntry:
    """Write the metadata of a table with a location in the clone: its next files go there, the present ones stay."""
    raw = load_metadata(entry.pointer, source.files)
    raw["location"] = target.names.uri(source.names.of(raw["location"]))
    raw["properties"] = {
        name: value for name, value in raw.get("properties", {}).items() if name not in relocate.PATH_PROPERTIES
    }
    # Files that engines may remove after a commit, by a property of the table.
    raw["metadata-log"] = []
    folder = f"{target.names.of(raw['location'])}/metadata"
    version = max(version_of(Path(entry.pointer).name), 0)
    # The same name in a second call: nothing names the file of a call that was killed.
    pointer = target.names.uri(new_uri(folder, version, origin=entry.pointer))
    target.warehouse.write(target.names.of(pointer), json.dumps(raw).encode())
    return replace(entry, pointer=pointer)
