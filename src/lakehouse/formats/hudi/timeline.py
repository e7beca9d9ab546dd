"""The timeline of a Hudi table, read with hudi-rs: what each completed instant wrote."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import NotInstalledError, NotSupportedError, TableError
from lakehouse.core.result import RowChanges
from lakehouse.core.tables import REPLACE, Column, Snapshot

#: The prefix of our own keys in the commit metadata.
NOTES = "hoodie.lake."

_OPERATIONS = {"upsert": "upsert", "insert": "append", "bulk_insert": "append", "delete": "delete"}
_OPERATIONS |= {"cluster": REPLACE, "compact": REPLACE}
#: Avro types of which hudi-rs 0.5 says that they are not yet implemented.
_UNREADABLE = ("local-timestamp-", "timestamp-nanos")
#: What an Avro type may be called that is not the name of a type of the schema.
_AVRO_WORDS = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
_AVRO_WORDS |= {"record", "array", "map", "enum", "fixed"}
_AVRO_TYPES = {"long": "bigint", "bytes": "binary", "boolean": "boolean"}
_AVRO_TIMES = {"timestamp-micros": "timestamp", "timestamp-millis": "timestamp", "date": "date"}
_AVRO_TIMES |= {"local-timestamp-micros": "timestamp_ntz", "local-timestamp-millis": "timestamp_ntz"}


@dataclass(frozen=True)
class Instant:
    """One completed instant: its time, which is its id, and the commit metadata that Hudi wrote for it."""

    id: str
    action: str
    metadata: Mapping[str, Any]

    def stats(self) -> Iterable[Mapping[str, Any]]:
        """Yield the write statistics of each file."""
        for written in (self.metadata.get("partitionToWriteStats") or {}).values():
            yield from written

    def replaced_files(self) -> Iterable[str]:
        """Yield the file groups that this instant replaced."""
        for files in (self.metadata.get("partitionToReplaceFileIds") or {}).values():
            yield from files

    @property
    def extra(self) -> Mapping[str, str]:
        """The schema and the notes of the commit."""
        return self.metadata.get("extraMetadata") or {}


def open_table(location: str, access: Mapping[str, str]) -> Any:
    """Open a table with hudi-rs; `access` holds the options of the object store."""
    try:
        from hudi import HudiTableBuilder
    except ImportError as exc:
        raise NotInstalledError("hudi", "hudi") from exc
    try:
        return HudiTableBuilder.from_base_uri(location).with_storage_options(dict(access)).build()
    except Exception as exc:  # noqa: BLE001 - hudi-rs raises bare Exceptions
        raise _cannot_be_read(location, exc) from exc


def instants(table: Any) -> list[Instant]:
    """Return every completed instant that changed rows, oldest first."""
    timeline = table.get_timeline()
    completed = [
        *timeline.get_completed_commits(),
        *timeline.get_completed_deltacommits(),
        *timeline.get_completed_replacecommits(),
    ]
    by_time = {instant.timestamp: instant for instant in completed}
    return [
        Instant(time, by_time[time].action, json.loads(timeline.get_instant_metadata_in_json(by_time[time])))
        for time in sorted(by_time)
    ]


def file_slices_at(table: Any, instant: Instant, location: str) -> list[Any]:
    """Return the file slices of a table at an instant; NotSupportedError if hudi-rs cannot read its schema."""
    from hudi import HudiReadOptions

    unreadable = NotSupportedError(
        f"The Hudi table in {location} has types or names that hudi-rs does not read (a timestamp without a time zone, a type that is used by its name, letters beyond ASCII).",
        "Use Spark: lake sql --engine spark",
    )
    # hudi-rs would print a stack trace of Rust before it raises; it takes names of ASCII letters only, and no type by its name.
    schema = instant.extra.get("schema") or "{}"
    references: list[str] = []
    _resolve(json.loads(schema), "", {}, references)
    if references or any(kind in schema for kind in _UNREADABLE) or not schema.isascii():
        raise unreadable
    try:
        slices: list[Any] = table.get_file_slices(HudiReadOptions().with_as_of_timestamp(instant.id))
    except BaseException as exc:
        # A panic of Rust is no Exception, and its class cannot be imported.
        if type(exc).__name__ == "PanicException":
            raise unreadable from exc
        if isinstance(exc, Exception):
            raise _cannot_be_read(location, exc) from exc
        raise
    return slices


def _cannot_be_read(location: str, exc: Exception) -> TableError:
    return TableError(f"The Hudi table in {location} cannot be read: {exc}.", "lake doctor")


def snapshots(timeline: list[Instant]) -> list[Snapshot]:
    """Return the timeline as snapshots: the rows that each instant added and removed, and the totals after it."""
    rows_of_file: dict[str, int] = {}
    size_of_file: dict[str, int] = {}
    history: list[Snapshot] = []
    for instant in timeline:
        before = sum(rows_of_file.values())
        for file in instant.replaced_files():
            rows_of_file.pop(file, None)
            size_of_file.pop(file, None)
        added, removed = 0, before - sum(rows_of_file.values())
        for stat in instant.stats():
            rows_of_file[stat["fileId"]] = stat["numWrites"]
            size_of_file[stat["fileId"]] = stat["fileSizeInBytes"]
            added += stat["numInserts"] + stat["numUpdateWrites"]
            removed += stat["numDeletes"] + stat["numUpdateWrites"]
        snapshot = _snapshot(instant, added, removed, rows_of_file, size_of_file)
        history.append(replace(snapshot, parent=history[-1].id if history else ""))
    if history:
        history[-1] = replace(history[-1], is_current=True)
    return history


def changes_since(timeline: list[Instant], instant_id: str, effects: Set[str]) -> RowChanges:
    """The rows that the only commit since an instant changed (`CountsChanges`): Hudi counts those of each file."""
    later = [instant for instant in timeline if instant.id > instant_id]
    # The notes are those of an ingest or a run: the statement has committed nothing.
    if len(later) > 1 or any(name.startswith(NOTES) for instant in later for name in instant.extra):
        return RowChanges()
    stats = [stat for instant in later for stat in instant.stats()]
    inserted, updated, deleted = (
        sum(stat[name] for stat in stats) for name in ("numInserts", "numUpdateWrites", "numDeletes")
    )
    if "overwrite" in effects:
        return RowChanges(inserted=inserted, updated=updated)
    return RowChanges(inserted + updated + deleted, inserted, updated, deleted)


def files_with_rows(timeline: list[Instant]) -> int:
    """Return how many files hold the rows of the table after the last of these instants."""
    rows_of_file: dict[str, int] = {}
    for instant in timeline:
        for file in instant.replaced_files():
            rows_of_file.pop(file, None)
        rows_of_file.update({stat["fileId"]: stat["numWrites"] for stat in instant.stats()})
    return sum(rows > 0 for rows in rows_of_file.values())


def _snapshot(
    instant: Instant, added: int, removed: int, rows_of_file: Mapping[str, int], size_of_file: Mapping[str, int]
) -> Snapshot:
    operation = str(instant.metadata.get("operationType") or instant.action).lower()
    return Snapshot(
        id=instant.id,
        at=moment(instant.id),
        operation=_OPERATIONS.get(operation, operation.replace("_table", "")),
        rows_added=added,
        rows_removed=removed,
        rows_total=sum(rows_of_file.values()),
        files_total=len(rows_of_file),
        bytes_total=sum(size_of_file.values()),
        source=instant.extra.get(f"{NOTES}source", ""),
        notes={key.removeprefix(NOTES): value for key, value in instant.extra.items() if key.startswith(NOTES)},
    )


def columns(instant: Instant) -> tuple[Column, ...]:
    """Return the schema that an instant recorded, without Hudi's own columns."""
    return columns_of(instant.extra.get("schema") or '{"fields": []}')


def columns_of(avro_schema: str) -> tuple[Column, ...]:
    """Return the columns of an Avro schema, without Hudi's own."""
    schema = _resolve(json.loads(avro_schema), "", {}, [])
    return tuple(
        Column(field["name"], avro_type(field["type"]), not _nullable(field["type"]), field.get("doc", ""))
        for field in schema["fields"]
        if not field["name"].startswith("_hoodie_")
    )


def moment(instant_id: str) -> datetime:
    """Return the time of an instant: its id is a UTC time with milliseconds (our Spark runs in UTC)."""
    padded = instant_id.ljust(17, "0")[:17]
    return datetime.strptime(padded[:14], "%Y%m%d%H%M%S").replace(microsecond=int(padded[14:]) * 1000, tzinfo=UTC)


def avro_type(kind: Any) -> str:
    """Return an Avro type as a Spark type."""
    if isinstance(kind, list):
        return avro_type(next(part for part in kind if part != "null"))
    if isinstance(kind, str):
        return _AVRO_TYPES.get(kind, kind)
    if kind.get("logicalType") == "decimal":
        return f"decimal({kind['precision']},{kind.get('scale', 0)})"
    if kind.get("logicalType") in _AVRO_TIMES:
        return _AVRO_TIMES[kind["logicalType"]]
    return _nested_type(kind)


def _nested_type(kind: Mapping[str, Any]) -> str:
    match kind["type"]:
        case "record":
            return "struct<" + ",".join(f"{part['name']}:{avro_type(part['type'])}" for part in kind["fields"]) + ">"
        case "array":
            return f"array<{avro_type(kind['items'])}>"
        case "map":
            return f"map<string,{avro_type(kind['values'])}>"
        case "enum":
            return "string"
        case "fixed":
            return "binary"
        case other:
            return avro_type(other)


def _resolve(kind: Any, namespace: str, known: dict[str, Any], references: list[str]) -> Any:
    """Return an Avro type in which each type is written out, also where the schema only names one that it has defined before.

    Args:
        known: the types that were defined so far, by their full name.
        references: gets the names of types that are used by their name.
    """
    if isinstance(kind, str):
        if kind in _AVRO_WORDS:
            return kind
        references.append(kind)
        return known.get(kind) or known.get(f"{namespace}.{kind}") or kind
    if isinstance(kind, list):
        return [_resolve(part, namespace, known, references) for part in kind]
    namespace = kind.get("namespace", namespace)
    resolved = dict(kind)
    for member in ("type", "items", "values"):
        if member in kind:
            resolved[member] = _resolve(kind[member], namespace, known, references)
    if "fields" in kind:
        resolved["fields"] = [
            {**field, "type": _resolve(field["type"], namespace, known, references)} for field in kind["fields"]
        ]
    if "name" in kind:
        known[kind["name"] if "." in kind["name"] or not namespace else f"{namespace}.{kind['name']}"] = resolved
    return resolved


def _nullable(kind: Any) -> bool:
    return isinstance(kind, list) and "null" in kind
