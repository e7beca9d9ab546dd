"""An Iceberg metadata file, parsed from its JSON in milliseconds: describes a table and resolves time travel."""

from __future__ import annotations

from collections.abc import Mapping, Set
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import TableError
from lakehouse.core.files import LOCAL, Files
from lakehouse.core.format import MARK
from lakehouse.core.metadata_file import load_metadata
from lakehouse.core.result import RowChanges
from lakehouse.core.tables import Column, Snapshot

#: The prefix of our own entries in a snapshot's summary.
NOTES = "lake."
KEY_PROPERTY = "lake.key"

_SPARK_TYPES = {"long": "bigint", "timestamptz": "timestamp", "timestamp": "timestamp_ntz", "uuid": "string"}


@dataclass(frozen=True)
class Metadata:
    """One metadata file. It never changes, so it may be cached."""

    raw: dict[str, Any]

    @property
    def current_id(self) -> str:
        current = self.raw.get("current-snapshot-id")
        return "" if current in (None, -1) else str(current)

    @property
    def location(self) -> str:
        return str(self.raw["location"])

    @property
    def properties(self) -> dict[str, str]:
        return dict(self.raw.get("properties", {}))

    def refs(self) -> dict[str, str]:
        """Tags and branches of this one table, by name."""
        return {name: str(ref["snapshot-id"]) for name, ref in self.raw.get("refs", {}).items()}

    def log(self) -> list[tuple[str, datetime]]:
        """The snapshots that were current, with the time when each became so, oldest first."""
        return [(str(entry["snapshot-id"]), _moment(entry["timestamp-ms"])) for entry in self.raw["snapshot-log"]]

    def snapshots(self) -> list[Snapshot]:
        """The snapshots that exist, oldest first."""
        entries = sorted(self.raw.get("snapshots", []), key=lambda entry: entry["timestamp-ms"])
        return [self._snapshot(entry, self._names.get(str(entry["snapshot-id"]), ())) for entry in entries]

    def snapshot(self, snapshot_id: str) -> Snapshot | None:
        """One snapshot; None if it does not exist. A table may have thousands, so the others are not read."""
        entry = self._entries.get(snapshot_id)
        return None if entry is None else self._snapshot(entry, self._names.get(snapshot_id, ()))

    def changes_since(self, snapshot_id: str, effects: Set[str], engine: str, mark: str = "") -> RowChanges:
        """The rows that the only commit since a snapshot changed (`CountsChanges`)."""
        entry = self._entries.get(self.current_id)
        if self.current_id == snapshot_id:
            return row_changes(effects, 0, 0, 0)
        if entry is None or str(entry.get("parent-snapshot-id") or "") != snapshot_id:
            return RowChanges()
        summary, before = entry.get("summary", {}), self._entries.get(snapshot_id, {}).get("summary", {})
        if summary.get(MARK, "") != mark or not _may_be_of(summary, effects, engine):
            return RowChanges()
        removed = _count(summary, "deleted-records") or 0
        # Rows of removed files may have been deleted before, and nobody counts what equality deletes delete.
        is_unclear = removed and _count(before, "total-position-deletes")
        if is_unclear or any(_count(known, "total-equality-deletes") for known in (before, summary)):
            return RowChanges()
        marked = (_count(summary, "added-position-deletes") or 0) - (_count(summary, "removed-position-deletes") or 0)
        return row_changes(effects, _count(summary, "added-records") or 0, removed, marked)

    def snapshot_ids(self) -> list[str]:
        """The ids of the snapshots that exist."""
        return list(self._entries)

    @cached_property
    def _entries(self) -> dict[str, dict[str, Any]]:
        return {str(entry["snapshot-id"]): entry for entry in self.raw.get("snapshots", [])}

    @cached_property
    def _names(self) -> dict[str, tuple[str, ...]]:
        """Tags and branches by snapshot."""
        names: dict[str, tuple[str, ...]] = {}
        for name, snapshot_id in sorted(self.refs().items()):
            names[snapshot_id] = (*names.get(snapshot_id, ()), name)
        return names

    def _snapshot(self, entry: dict[str, Any], refs: tuple[str, ...]) -> Snapshot:
        summary = entry.get("summary", {})
        total = _count(summary, "total-records")
        marked_deleted = _count(summary, "total-position-deletes") or 0
        return Snapshot(
            id=str(entry["snapshot-id"]),
            at=_moment(entry["timestamp-ms"]),
            operation=summary.get("operation", ""),
            rows_added=_count(summary, "added-records") or 0,
            rows_removed=(_count(summary, "deleted-records") or 0) + (_count(summary, "added-position-deletes") or 0),
            rows_total=None if total is None else total - marked_deleted,
            files_total=_count(summary, "total-data-files"),
            bytes_total=_count(summary, "total-files-size"),
            source=summary.get(f"{NOTES}source") or summary.get("engine-name", ""),
            notes={key.removeprefix(NOTES): value for key, value in summary.items() if key.startswith(NOTES)},
            parent=str(entry.get("parent-snapshot-id") or ""),
            refs=refs,
            is_current=str(entry["snapshot-id"]) == self.current_id,
            changed_partitions=tuple(
                key.removeprefix("partitions.") for key in summary if key.startswith("partitions.")
            ),
            changed_partition_count=_count(summary, "changed-partition-count") or 0,
        )

    def has_ascii_partitions(self) -> bool:
        """Whether the names of all partition fields are ASCII; DuckDB ends the process at a manifest with another."""
        specs = self.raw.get("partition-specs", ())
        return all(field["name"].isascii() for spec in specs for field in spec["fields"])

    def columns(self, snapshot_id: str = "") -> tuple[Column, ...]:
        """The schema now, or as it was at a snapshot."""
        return tuple(
            Column(field["name"], spark_type(field["type"]), field["required"], field.get("doc", ""))
            for field in self._fields(snapshot_id)
        )

    def columns_with_uuids(self, snapshot_id: str = "") -> tuple[str, ...]:
        """The names of the columns that are UUIDs or have them in nested values."""
        return tuple(field["name"] for field in self._fields(snapshot_id) if _has_uuids(field["type"]))

    def _fields(self, snapshot_id: str) -> list[dict[str, Any]]:
        schema_id = self.raw["current-schema-id"]
        if snapshot_id:
            schema_id = self._entries[snapshot_id].get("schema-id", schema_id)
        fields: list[dict[str, Any]] = self._schema(schema_id)["fields"]
        return fields

    def same_columns(self, snapshot_id: str) -> bool:
        """Whether the columns of a snapshot have the field ids of today's columns with the same names."""
        entry = self._entries[snapshot_id]
        current = self.raw["current-schema-id"]
        then, now = (
            {field["name"]: field["id"] for field in self._schema(number)["fields"]}
            for number in (entry.get("schema-id", current), current)
        )
        return all(now.get(name, number) == number for name, number in then.items())

    def key(self) -> tuple[str, ...]:
        """The columns that identify a row: Iceberg's identifier fields, or those that our upserts recorded."""
        schema = self._schema(self.raw["current-schema-id"])
        names = {field["id"]: field["name"] for field in schema["fields"]}
        identifiers = tuple(names[number] for number in schema.get("identifier-field-ids", []) if number in names)
        recorded = tuple(filter(None, self.properties.get(KEY_PROPERTY, "").split(",")))
        return identifiers or recorded

    def partitioning(self) -> tuple[str, ...]:
        """The partition fields of the current spec, as in CREATE TABLE."""
        names = {field["id"]: field["name"] for field in self._schema(self.raw["current-schema-id"])["fields"]}
        spec = next(spec for spec in self.raw["partition-specs"] if spec["spec-id"] == self.raw["default-spec-id"])
        return tuple(
            _transform(part["transform"], names.get(part["source-id"], "?"))
            for part in spec["fields"]
            if part["transform"] != "void"
        )

    def sorting(self) -> tuple[str, ...]:
        """The current sort order, as in WRITE ORDERED BY."""
        names = {field["id"]: field["name"] for field in self._schema(self.raw["current-schema-id"])["fields"]}
        default = self.raw.get("default-sort-order-id")
        orders = [order["fields"] for order in self.raw.get("sort-orders", []) if order["order-id"] == default]
        return tuple(
            f"{_transform(part['transform'], names.get(part['source-id'], '?'))} {part['direction'].upper()}"
            f" {part['null-order'].upper().replace('-', ' ')}"
            for part in (orders[0] if orders else [])
        )

    def _schema(self, schema_id: int) -> dict[str, Any]:
        schema: dict[str, Any] = next(schema for schema in self.raw["schemas"] if schema["schema-id"] == schema_id)
        return schema


@lru_cache(maxsize=256)
def read_metadata(uri: str, files: Files = LOCAL) -> Metadata:
    """Read a metadata file of a table, plain or gzipped."""
    try:
        raw = load_metadata(uri, files)
    except OSError as exc:
        raise TableError(
            f"The catalog points at {uri}, which cannot be read: {exc.strerror or 'there is no such file'}.",
            "The warehouse was moved or damaged: restore it, or drop the table with: lake drop",
        ) from exc
    if "view-uuid" in raw:
        raise TableError(f"{uri} is the metadata of a view, which has no rows of its own.")
    return Metadata(raw)


def _may_be_of(summary: Mapping[str, str], effects: Set[str], engine: str) -> bool:
    """Whether a commit may be that of a statement with these effects, rather than that of an ingest, a run or another engine."""
    appends = summary.get("operation") == "append"
    if appends and "insert" not in effects or not appends and effects == {"insert"}:
        return False
    is_by_lake = any(name.startswith(NOTES) for name in summary)
    return not is_by_lake and summary.get("engine-name", "") == engine


def row_changes(effects: Set[str], added: int, removed: int, marked: int) -> RowChanges:
    """What a statement with these effects did to rows.

    Copy-on-write replaces whole files, so that most of the rows that it adds and removes are copies; merge-on-read adds an updated
    row and marks the old one as deleted.

    Args:
        added: rows in new files.
        removed: rows in files that the table no longer has.
        marked: rows that are now marked as deleted in files that stay.
    """
    gone, is_merged_on_read = removed + marked, not removed
    if "overwrite" in effects:  # no row is copied
        return RowChanges(added + gone, added, 0, gone)
    inserted = updated = deleted = None
    if "delete" not in effects:
        inserted, deleted = added - gone, 0
    elif "insert" not in effects:
        inserted, deleted = 0, gone - added
    elif is_merged_on_read and "update" not in effects:
        inserted, deleted = added, gone
    if "update" not in effects:
        updated = 0
    elif is_merged_on_read and inserted is not None:
        updated = added - inserted
    parts = [count for count in (inserted, updated, deleted) if count is not None]
    return RowChanges(sum(parts) if len(parts) == 3 else None, inserted, updated, deleted)


def spark_type(kind: str | dict[str, Any]) -> str:
    """Return an Iceberg type as a Spark type."""
    if isinstance(kind, str):
        if kind.startswith("fixed["):
            return "binary"
        return _SPARK_TYPES.get(kind, kind.replace(" ", "") if kind.startswith("decimal") else kind)
    if kind["type"] == "struct":
        return "struct<" + ",".join(f"{field['name']}:{spark_type(field['type'])}" for field in kind["fields"]) + ">"
    if kind["type"] == "list":
        return f"array<{spark_type(kind['element'])}>"
    return f"map<{spark_type(kind['key'])},{spark_type(kind['value'])}>"


def _has_uuids(kind: str | dict[str, Any]) -> bool:
    if isinstance(kind, str):
        return kind == "uuid"
    parts = [kind.get(name, "") for name in ("element", "key", "value")]
    return any(map(_has_uuids, (*parts, *(field["type"] for field in kind.get("fields", ())))))


def _transform(transform: str, column: str) -> str:
    """`day` of `ts` is written days(ts), `bucket[16]` of `id` bucket(16, id), as in CREATE TABLE."""
    if transform == "identity":
        return column
    name, _, width = transform.partition("[")
    if width:
        return f"{name}({width.rstrip(']')}, {column})"
    return f"{name}s({column})"


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, tz=UTC)


def _count(summary: dict[str, str], key: str) -> int | None:
    return int(summary[key]) if key in summary else None
