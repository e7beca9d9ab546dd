"""The metadata of a table as a tree of nodes: what `lake inspect`, the service and the console show, whatever the format."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol, TypeVar, runtime_checkable

from lakehouse.core.dataclass import dataclass
from lakehouse.core.jsonable import jsonable
from lakehouse.core.names import TableName

#: How far down a tree goes. Each layer has those above it.
SNAPSHOTS, MANIFESTS, FILES = "snapshots", "manifests", "files"
LAYERS = (SNAPSHOTS, MANIFESTS, FILES)
#: Characters of a file that are shown; metadata of many snapshots has megabytes.
MOST_CHARACTERS = 500_000
_LONGEST_VALUE = 80
#: Row groups of a Parquet file that are shown.
_MOST_GROUPS = 20

T = TypeVar("T")


@dataclass(frozen=True)
class MetadataNode:
    """One part of a table's metadata, with the parts below it.

    Iceberg: `metadata` has `schema` and `snapshot`; a snapshot has a `manifest-list`, which has `manifest`, which has `data`,
    `position-deletes` and `equality-deletes`. Hudi: `timeline` has `schema` and `instant`, which has `file-slice`.
    """

    kind: str
    name: str
    """The id of a snapshot, a schema or an instant; else the name of the file."""
    path: str = ""
    """The URI of the file; empty for a part of the file above it."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Counts, times and bounds, as JSON has them. The first `schema` has no `changes`: it is what the table began with."""
    children: tuple[MetadataNode, ...] = ()
    left_out: int = 0
    """Parts below it that are not in `children`."""


@dataclass(frozen=True)
class MetadataFile:
    """The content of a file of a table's metadata, as text; of a data file its footer."""

    path: str
    kind: str
    size: int
    """Bytes of the file; -1 where that is not known."""
    text: str
    """JSON; of Hudi's properties the lines."""
    left_out: int = 0
    """Characters or records at the end that are not in `text`."""


@dataclass(frozen=True)
class InspectRequest:
    """Which part of the metadata to return."""

    layer: str = MANIFESTS
    snapshot: str = ""
    """Only this snapshot, by its id (default: all down to the layer of snapshots, and the current one below it)."""
    manifest: str = ""
    """Only this manifest of the snapshot: a path, or the name of the file."""
    limit: int = 20
    """The most nodes of each layer."""


@runtime_checkable
class Inspectable(Protocol):
    """A format that shows its metadata; what a format may also be able to do."""

    def inspect(self, table: TableName, request: InspectRequest) -> MetadataNode:
        """Return the metadata of a table as a tree."""

    def metadata_file(self, table: TableName, path: str, request: InspectRequest) -> MetadataFile:
        """Return the content of one file that belongs to a table; NotFoundError for another one."""


def newest(items: Sequence[T], limit: int) -> tuple[Sequence[T], int]:
    """Return the last items, the newest first, and how many were left out."""
    shown = items[-limit:] if limit else ()
    return list(reversed(shown)), len(items) - len(shown)


def file_name(path: str) -> str:
    """Return the last part of a path."""
    return path.rpartition("/")[2]


def names_file(given: str, path: str) -> bool:
    """Return whether a path, or the name of a file, refers to a path."""
    return given in (path, file_name(path))


def short_text(value: str) -> str:
    """Return a value that is not too long for a line."""
    return value if len(value) <= _LONGEST_VALUE else value[: _LONGEST_VALUE - 1] + "…"


def shown_text(path: str, kind: str, size: int, text: str, left_out: int = 0) -> MetadataFile:
    """Return the content of a file, shortened if it is too long."""
    return MetadataFile(path, kind, size, text[:MOST_CHARACTERS], max(len(text) - MOST_CHARACTERS, 0) or left_out)


def parquet_footer(source: Any, path: str, kind: str, size: int) -> MetadataFile:
    """Return the footer of a Parquet file: schema, row groups, columns with their statistics; ValueError if it has none.

    Args:
        source: a path, or a stream that can seek.
    """
    from pyarrow import ArrowException, parquet

    try:
        metadata = parquet.read_metadata(source)
    except ArrowException as exc:
        raise ValueError(f"{path} is no Parquet file: {exc}") from exc
    groups = min(metadata.num_row_groups, _MOST_GROUPS)
    content = {
        "rows": metadata.num_rows,
        "created_by": metadata.created_by,
        "schema": str(metadata.schema).splitlines()[1:],
        "row_groups": [jsonable(metadata.row_group(number).to_dict()) for number in range(groups)],
    }
    text = json.dumps(content, indent=2, ensure_ascii=False)
    return shown_text(path, kind, size, text, metadata.num_row_groups - groups)


def undecoded(path: str, kind: str, size: int) -> MetadataFile:
    """Return what is shown of a file whose format is not decoded."""
    return MetadataFile(path, kind, size, json.dumps({"content": "of a format that is not decoded"}))


# ---- evolution of a schema --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SchemaField:
    """A column or a part of one, as two versions of a schema are compared by it."""

    name: str
    """With the columns that it is a part of: `address.city`."""
    type: str
    """Empty for a struct, a list or a map, whose parts are compared."""
    required: bool = False
    comment: str = ""


def schema_changes(before: Mapping[Any, SchemaField], after: Mapping[Any, SchemaField]) -> list[dict[str, str]]:
    """Return what changed from one version of a schema to the next.

    Args:
        before: the fields by what identifies them: Iceberg's field ids, else their names.
    """
    changes = [_change("dropped", old.name, old.type, "") for key, old in before.items() if key not in after]
    for key, new in after.items():
        known = before.get(key)
        if known is None:
            changes.append(_change("added", new.name, "", new.type))
            continue
        if known.name != new.name:
            changes.append(_change("renamed", new.name, known.name, new.name))
        if known.type != new.type:
            changes.append(_change("type changed", new.name, known.type, new.type))
        if known.required != new.required:
            nulls = ("required", "optional") if known.required else ("optional", "required")
            changes.append(_change("nulls changed", new.name, *nulls))
        if known.comment != new.comment:
            changes.append(_change("comment changed", new.name, known.comment, new.comment))
    return changes


def _change(change: str, column: str, before: str, after: str) -> dict[str, str]:
    return {"change": change, "column": column, "before": before, "after": after}
