"""The metadata of an Iceberg table as a tree: metadata file, schemas, snapshots, manifest lists, manifests, data and delete files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import LakeError, NotFoundError, TableError, WhenError
from lakehouse.core.files import Files, local_path
from lakehouse.core.inspection import (
    FILES,
    SNAPSHOTS,
    InspectRequest,
    MetadataFile,
    MetadataNode,
    SchemaField,
    file_name,
    names_file,
    newest,
    parquet_footer,
    schema_changes,
    short_text,
    shown_text,
    undecoded,
)
from lakehouse.core.jsonable import jsonable
from lakehouse.core.metadata_file import load_metadata
from lakehouse.formats.iceberg import avro
from lakehouse.formats.iceberg.metadata import Metadata, spark_type

#: Field ids of a manifest list (Iceberg's specification), by the names under which they are shown.
_MANIFEST_FIELDS = {
    "path": 500, "bytes": 501, "spec": 502, "content": 517, "sequence_number": 515, "added_by": 503,
    "files_added": 504, "files_existing": 505, "files_deleted": 506, "rows_added": 512, "rows_existing": 513,
    "rows_deleted": 514,
}  # fmt: skip
#: Those of a manifest; a pair names a field of its data file.
_ENTRY_FIELDS = {
    "status": 0, "added_by": 1, "sequence_number": 3, "content": (2, 134), "path": (2, 100), "format": (2, 101),
    "partition": (2, 102), "rows": (2, 103), "bytes": (2, 104), "nulls": (2, 110), "lower": (2, 125),
    "upper": (2, 128), "equality_ids": (2, 135), "deletes_in": (2, 143),
}  # fmt: skip
_STATUSES = ("existing", "added", "deleted")
_CONTENTS = ("data", "position-deletes", "equality-deletes")
#: Columns whose bounds, and records of an Avro file that are shown.
_MOST_COLUMNS, _MOST_RECORDS = 12, 500
#: Manifests that are searched for a data file; a caller who names the manifest saves the search.
_SEARCHED_MANIFESTS = 200
#: The columns of position delete files.
_DELETED_PATH = 2147483546
_OF_DELETES = {_DELETED_PATH: "file_path", 2147483545: "pos"}
_PUFFIN = b"PFA1"
_PUFFIN_TAIL = 12


@dataclass(frozen=True)
class Inspector:
    """Reads the metadata that one metadata file refers to."""

    pointer: str
    metadata: Metadata
    files: Files
    access: Callable[[], Mapping[str, str]]
    """The properties with which PyIceberg reads data files, of which only the footer is needed."""

    # ---- the tree -----------------------------------------------------------------------------------------------

    def tree(self, request: InspectRequest) -> MetadataNode:
        """Return the metadata file with what is below it, down to a layer."""
        raw, snapshots = self.metadata.raw, self._snapshot_entries
        shown, left_out = newest(snapshots, request.limit)
        if request.snapshot:
            shown = [self._entry(request.snapshot)]
            left_out = len(snapshots) - 1
        schemas = () if request.snapshot else self._schemas(request.limit)
        opened = request.snapshot or self.metadata.current_id
        nodes = [self._snapshot(entry, request, str(entry["snapshot-id"]) == opened) for entry in shown]
        facts = {
            "format_version": raw.get("format-version"),
            "uuid": raw.get("table-uuid", ""),
            "location": self.metadata.location,
            "current_snapshot": self.metadata.current_id,
            "snapshots": len(snapshots),
            "schemas": len(raw["schemas"]),
            "previous_metadata_files": len(raw.get("metadata-log", ())),
            "statistics_files": [entry["statistics-path"] for entry in raw.get("statistics", ())][: request.limit],
        }
        return MetadataNode("metadata", file_name(self.pointer), self.pointer, facts, (*schemas, *nodes), left_out)

    def _snapshot(self, entry: Mapping[str, Any], request: InspectRequest, is_open: bool) -> MetadataNode:
        snapshot_id = str(entry["snapshot-id"])
        known = self.metadata.snapshot(snapshot_id)
        assert known is not None
        facts = {
            "at": jsonable(known.at),
            "operation": known.operation,
            "schema": entry.get("schema-id"),
            "parent": known.parent,
            "rows_added": known.rows_added,
            "rows_removed": known.rows_removed,
            "rows": known.rows_total,
            "files": known.files_total,
            "bytes": known.bytes_total,
            "source": known.source,
            "refs": list(known.refs),
            "is_current": known.is_current,
        }
        path = str(entry.get("manifest-list", ""))
        if not path or not is_open or request.layer == SNAPSHOTS:
            return MetadataNode("snapshot", snapshot_id, facts=facts, left_out=int(bool(path)))
        return MetadataNode("snapshot", snapshot_id, facts=facts, children=(self._manifest_list(path, request),))

    def _manifest_list(self, path: str, request: InspectRequest) -> MetadataNode:
        manifests = self._manifests(path)
        chosen = [
            manifest for manifest in manifests if names_file(request.manifest or manifest["path"], manifest["path"])
        ]
        if not chosen and request.manifest:
            raise _not_of_table(request.manifest, "manifest of this snapshot")
        shown, room = chosen[: request.limit], request.limit
        nodes = []
        for manifest in shown:
            node = self._manifest(manifest, request.layer, room)
            room -= len(node.children)
            nodes.append(node)
        sums = {name: sum(manifest[name] or 0 for manifest in manifests) for name in ("files_added", "files_existing")}
        facts = {"manifests": len(manifests), **sums}
        return MetadataNode("manifest-list", file_name(path), path, facts, tuple(nodes), len(manifests) - len(shown))

    def _manifest(self, manifest: Mapping[str, Any], layer: str, room: int) -> MetadataNode:
        facts = {name: value for name, value in manifest.items() if name not in ("path", "content")}
        facts["added_by"] = str(manifest["added_by"])
        facts["content"] = "deletes" if manifest["content"] else "data"
        stated = sum(manifest[f"files_{status}"] or 0 for status in _STATUSES)
        path = manifest["path"]
        if layer != FILES or room <= 0:
            return MetadataNode("manifest", file_name(path), path, facts, left_out=stated)
        entries = self._records(path, _ENTRY_FIELDS)
        nodes = tuple(self._file(entry, manifest["spec"] or 0) for entry in entries[:room])
        return MetadataNode("manifest", file_name(path), path, facts, nodes, len(entries) - len(nodes))

    def _file(self, entry: Mapping[str, Any], spec: int) -> MetadataNode:
        bounds, more = self._bounds(entry["lower"] or {}, entry["upper"] or {})
        nulls = {self._column(number): count for number, count in (entry["nulls"] or {}).items() if count}
        facts = {
            "status": _STATUSES[entry["status"]],
            "added_by": str(entry["added_by"] or ""),
            "sequence_number": entry["sequence_number"],
            "format": str(entry["format"]).lower(),
            "partition": self._partition(spec, entry["partition"]),
            "rows": entry["rows"],
            "bytes": entry["bytes"],
            "bounds": bounds,
            "nulls": dict(list(nulls.items())[:_MOST_COLUMNS]),
            "columns_left_out": more,
        }
        if entry["equality_ids"]:
            facts["deletes_by"] = [self._column(number) for number in entry["equality_ids"]]
        if entry["deletes_in"]:
            facts["deletes_in"] = entry["deletes_in"]
        kind = _CONTENTS[entry["content"] or 0]
        return MetadataNode(kind, file_name(entry["path"]), entry["path"], facts)

    # ---- reading ------------------------------------------------------------------------------------------------

    @cached_property
    def _snapshot_entries(self) -> list[dict[str, Any]]:
        return sorted(self.metadata.raw.get("snapshots", ()), key=lambda entry: entry["timestamp-ms"])

    def _entry(self, snapshot_id: str) -> dict[str, Any]:
        for entry in self._snapshot_entries:
            if str(entry["snapshot-id"]) == snapshot_id:
                return entry
        raise WhenError(f"There is no snapshot {snapshot_id}.", "List them: lake history TABLE")

    def _manifests(self, path: str) -> list[dict[str, Any]]:
        return self._records(path, _MANIFEST_FIELDS)

    def _records(self, path: str, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
        from lakehouse.pyiceberg_internals import read_avro

        content = self._read(path)
        try:
            records = read_avro(content, *fields.values())
        except LakeError:
            raise
        except Exception as exc:  # noqa: BLE001 - the decoder raises anything for damaged bytes
            raise TableError(f"The file {path} is damaged: {exc!r}.", "lake verify") from exc
        return [dict(zip(fields, record, strict=True)) for record in records]

    def _read(self, path: str) -> bytes:
        try:
            return self.files.read(path)
        except FileNotFoundError as exc:
            raise TableError(
                f"The file {path} is gone.", "Maintenance or another tool removed it: lake verify"
            ) from exc

    # ---- values -------------------------------------------------------------------------------------------------

    @cached_property
    def _schemas_by_age(self) -> list[Any]:
        """PyIceberg's schemas, the newest first."""
        from pyiceberg.schema import Schema

        schemas = sorted(self.metadata.raw["schemas"], key=lambda schema: -schema["schema-id"])
        return [Schema.model_validate(schema) for schema in schemas]

    def _column(self, number: int) -> str:
        if number in _OF_DELETES:
            return _OF_DELETES[number]
        for schema in self._schemas_by_age:
            if (name := schema.find_column_name(number)) is not None:
                return str(name)
        return f"field {number}"

    def _bounds(self, lower: Mapping[int, bytes], upper: Mapping[int, bytes]) -> tuple[dict[str, list[Any]], int]:
        numbers = sorted({*lower, *upper})
        shown = {
            self._column(number): [self._bound(number, values.get(number)) for values in (lower, upper)]
            for number in numbers[:_MOST_COLUMNS]
        }
        return shown, max(len(numbers) - _MOST_COLUMNS, 0)

    def _bound(self, number: int, value: bytes | None) -> Any:
        """A bound as a value. A column that was widened has bounds of its old type in old files."""
        if value is None:
            return None
        if number in _OF_DELETES:
            return short_text(value.decode(errors="replace")) if number == _DELETED_PATH else value.hex()
        for schema in self._schemas_by_age:
            try:
                parsed = _value(schema.find_type(number), value)
            except Exception:  # noqa: BLE001, S112 - of another type, or a column that this schema lacks
                continue
            return short_text(parsed) if isinstance(parsed, str) else parsed
        return value.hex()

    def _partition(self, spec_id: int, record: Any) -> str:
        """A partition as in the name of its folder: `day=2026-01-14/shop=3`."""
        from pyiceberg.partitioning import PartitionSpec

        specs = {spec["spec-id"]: spec for spec in self.metadata.raw["partition-specs"]}
        if record is None or not specs.get(spec_id, {}).get("fields"):
            return ""
        spec = PartitionSpec.model_validate(specs[spec_id])
        parts = []
        for position, part in enumerate(spec.fields):
            types = [
                schema.find_type(part.source_id)
                for schema in self._schemas_by_age
                if part.source_id in schema.field_ids
            ]
            value = record[position]
            text = part.transform.to_human_string(types[0], value) if types else str(value)
            parts.append(f"{part.name}={text}")
        return "/".join(parts)

    # ---- schemas ------------------------------------------------------------------------------------------------

    def _schemas(self, limit: int) -> list[MetadataNode]:
        """The newest schemas, oldest first, each with what changed since the one before it."""
        schemas = sorted(self.metadata.raw["schemas"], key=lambda schema: schema["schema-id"])
        first = {}
        for entry in reversed(self._snapshot_entries):
            first[entry.get("schema-id")] = str(entry["snapshot-id"])
        nodes = []
        for place in range(max(len(schemas) - limit, 0), len(schemas)):
            schema = schemas[place]
            before = schema_fields(schemas[place - 1]) if place else {}
            snapshot = self.metadata.snapshot(first.get(schema["schema-id"], ""))
            facts = {
                "columns": len(schema["fields"]),
                "is_current": schema["schema-id"] == self.metadata.raw["current-schema-id"],
                "first_snapshot": snapshot.id if snapshot else "",
                "at": jsonable(snapshot.at) if snapshot else None,
                "changes": schema_changes(before, schema_fields(schema)) if place else [],
            }
            nodes.append(MetadataNode("schema", str(schema["schema-id"]), facts=facts))
        return nodes

    # ---- one file -----------------------------------------------------------------------------------------------

    def file(self, path: str, request: InspectRequest) -> MetadataFile:
        """Return the content of a file of this table."""
        raw = self.metadata.raw
        if names_file(path, self.pointer):
            return self._json(self.pointer)
        for entry in raw.get("metadata-log", ()):
            if names_file(path, entry["metadata-file"]):
                return self._json(entry["metadata-file"])
        for entry in raw.get("snapshots", ()):
            if names_file(path, entry.get("manifest-list", "")):
                return self._avro(entry["manifest-list"], "manifest-list")
        for entry in (*raw.get("statistics", ()), *raw.get("partition-statistics", ())):
            if names_file(path, entry["statistics-path"]):
                return self._footer(entry["statistics-path"], "statistics", entry.get("file-size-in-bytes", -1))
        return self._file_of_snapshot(path, request)

    def _file_of_snapshot(self, path: str, request: InspectRequest) -> MetadataFile:
        snapshot_id = request.snapshot or self.metadata.current_id
        manifest_list = self._entry(snapshot_id).get("manifest-list", "") if snapshot_id else ""
        manifests = self._manifests(manifest_list) if manifest_list else []
        for manifest in manifests:
            if names_file(path, manifest["path"]):
                return self._avro(manifest["path"], "manifest")
        named = [
            manifest for manifest in manifests if names_file(request.manifest or manifest["path"], manifest["path"])
        ]
        for entry in self._entries(named[:_SEARCHED_MANIFESTS]):
            if names_file(path, entry["path"]):
                return self._footer(entry["path"], _CONTENTS[entry["content"] or 0], entry["bytes"])
        raise _not_of_table(path, "file of this table, or it is of another snapshot or manifest")

    def _entries(self, manifests: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        fields = {name: _ENTRY_FIELDS[name] for name in ("path", "content", "bytes")}
        for manifest in manifests:
            yield from self._records(manifest["path"], fields)

    def _json(self, path: str) -> MetadataFile:
        try:
            content = load_metadata(path, self.files)
        except FileNotFoundError as exc:
            raise TableError(f"The file {path} is gone.", "Maintenance or another tool removed it.") from exc
        # A client may have written anything into the list of earlier files: only this table's are shown.
        if content.get("table-uuid") != self.metadata.raw.get("table-uuid"):
            raise _not_of_table(path, "metadata file of this table")
        return shown_text(path, "metadata", -1, json.dumps(content, indent=2, ensure_ascii=False))

    def _avro(self, path: str, kind: str) -> MetadataFile:
        content = self._read(path)
        try:
            file = avro.read(content)
        except avro.AvroError as exc:
            raise TableError(f"The file {path} is damaged: {exc}.", "lake verify") from exc
        header = {
            key: value.decode(errors="replace")
            for key, value in file.metadata.items()
            if key not in ("avro.schema", "schema")
        }
        shown = {"header": header, "records": [jsonable(record) for record in file.records[:_MOST_RECORDS]]}
        text = json.dumps(shown, indent=2, ensure_ascii=False)
        return shown_text(path, kind, len(content), text, max(len(file.records) - _MOST_RECORDS, 0))

    def _footer(self, path: str, kind: str, size: int) -> MetadataFile:
        try:
            with self._open(path) as stream:
                return footer(stream, path, kind, size)
        except FileNotFoundError as exc:
            raise TableError(f"The file {path} is gone.", "Restore it from a backup: lake verify") from exc

    def _open(self, path: str) -> Any:
        """Open a file of any size for reading at any position."""
        if "://" not in path or path.startswith("file:"):
            return local_path(path).open("rb")
        from pyiceberg.io import load_file_io

        return load_file_io({**self.access(), **self.metadata.properties}, path).new_input(path).open()


def schema_fields(schema: Mapping[str, Any]) -> dict[int, SchemaField]:
    """Return the fields of a schema by their ids, those inside of structs, lists and maps, too."""
    fields: dict[int, SchemaField] = {}

    def add(number: int, name: str, kind: Any, required: bool, comment: str = "") -> None:
        is_nested = isinstance(kind, dict)
        fields[number] = SchemaField(name, "" if is_nested else spark_type(kind), required, comment)
        if not is_nested:
            return
        for part in kind.get("fields", ()):
            add(part["id"], f"{name}.{part['name']}", part["type"], part["required"], part.get("doc", ""))
        for part in ("element", "key", "value"):
            if part in kind:
                add(kind[f"{part}-id"], f"{name}.{part}", kind[part], kind.get(f"{part}-required", True))

    for column in schema["fields"]:
        add(column["id"], column["name"], column["type"], column["required"], column.get("doc", ""))
    return fields


def footer(stream: Any, path: str, kind: str, size: int) -> MetadataFile:
    """Return the footer of a Parquet or Puffin file."""
    head = stream.read(4)
    if head == _PUFFIN:
        content = stream.read()
        length = int.from_bytes(content[-_PUFFIN_TAIL : -_PUFFIN_TAIL + 4], "little")
        text = content[-_PUFFIN_TAIL - length : -_PUFFIN_TAIL].decode(errors="replace")
        return shown_text(path, kind, size, text)
    try:
        return parquet_footer(stream, path, kind, size)
    except ValueError:  # ORC or Avro
        return undecoded(path, kind, size)


def _value(kind: Any, value: bytes) -> Any:
    """A serialized value as JSON; times as text, which Iceberg stores as numbers."""
    from pyiceberg.conversions import from_bytes
    from pyiceberg.transforms import IdentityTransform

    parsed = from_bytes(kind, value)
    is_time = str(kind).startswith(("date", "time"))
    return IdentityTransform().to_human_string(kind, parsed) if is_time else jsonable(parsed)


def _not_of_table(path: str, what: str) -> NotFoundError:
    return NotFoundError(
        f"{short_text(path)} is no {what}.", "List the files: lake inspect TABLE --files [--snapshot WHEN]"
    )
