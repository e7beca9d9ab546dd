"""Applies updates to a table's metadata with PyIceberg, and adds what PyIceberg does not do.

Clients assign ids to the schemas, specs and orders that they add. Where another commit has taken an id meanwhile, this
module assigns a new one, as Iceberg's own server does; an equal object that exists is used instead.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.table import TableProperties
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.table.snapshots import MetadataLogEntry
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER_ID, SortOrder
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AddSnapshotUpdate,
    AddSortOrderUpdate,
    RemovePartitionStatisticsUpdate,
    RemovePropertiesUpdate,
    RemoveSnapshotsUpdate,
    RemoveStatisticsUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate,
    SetPropertiesUpdate,
    TableUpdate,
    UpgradeFormatVersionUpdate,
    update_table_metadata,
)

from lakehouse.pyiceberg_internals import LAST_ADDED, NEWEST_FORMAT, dump_metadata, empty_metadata
from lakehouse.rest_catalog.errors import CommitFailedError, RestError

#: The id of a partition field that has none yet.
UNASSIGNED = -1
_ONLY_IN_VERSION_1 = {"schema", "partition-spec"}


def apply_updates(base: TableMetadata | None, updates: Sequence[TableUpdate], location: str = "") -> TableMetadata:
    """Return the metadata with updates applied, or `base` itself if they change nothing.

    Args:
        location: the file of `base`, for the metadata log.
    """
    version = max(
        (update.format_version for update in updates if isinstance(update, UpgradeFormatVersionUpdate)), default=0
    )
    start = _upgrade(base, version) if base else _empty(version or 2)
    rewriter = _UpdateRewriter(start)
    others = [update for update in updates if not isinstance(update, UpgradeFormatVersionUpdate)]
    try:
        result = update_table_metadata(start, tuple(new for update in others for new in rewriter.rewrite(update)))
    except (ValueError, KeyError, StopIteration, TypeError) as exc:
        raise RestError(f"The updates cannot be applied: {exc}") from exc
    if base is None:
        return _validate(result)
    if result == base:
        return base
    fields: dict[str, Any] = {"metadata_log": _metadata_log(base, result, location)}
    if result.last_updated_ms <= base.last_updated_ms:
        fields["last_updated_ms"] = max(_now_ms(), base.last_updated_ms)
    if result.format_version > 1:
        fields["last_sequence_number"] = max(getattr(base, "last_sequence_number", 0), result.last_sequence_number or 0)
    return _validate(result.model_copy(update=fields))


def serialize(metadata: TableMetadata, before: Mapping[str, Any], sent: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the content of a metadata file. Fields that PyIceberg does not know stay as they were or as they were sent."""
    content = json.loads(dump_metadata(metadata))
    known = {field.alias or name for name, field in type(metadata).model_fields.items()}
    for key in before.keys() - known - _ONLY_IN_VERSION_1:
        content.setdefault(key, before[key])
    snapshots = [*before.get("snapshots", ()), *(update["snapshot"] for update in sent if "snapshot" in update)]
    as_sent = {snapshot["snapshot-id"]: snapshot for snapshot in snapshots}
    for snapshot in content.get("snapshots", ()):
        for key, value in as_sent.get(snapshot["snapshot-id"], {}).items():
            if key not in ("sequence-number", "parent-snapshot-id", "schema-id"):
                snapshot.setdefault(key, value)
    return json.dumps(content, separators=(",", ":")).encode()


class _UpdateRewriter:
    """Rewrites updates so that they apply to metadata that has changed since."""

    def __init__(self, start: TableMetadata) -> None:
        self._start = start
        self._schemas, self._specs, self._orders = (
            list(start.schemas),
            list(start.partition_specs),
            list(start.sort_orders),
        )
        self._properties = set(start.properties)
        self._added: dict[str, int] = {}
        self._schema_ids: dict[int, int] = {}

    def rewrite(self, update: TableUpdate) -> Iterator[TableUpdate]:
        match update:
            case AddSchemaUpdate() | AddPartitionSpecUpdate() | AddSortOrderUpdate():
                yield from self._add(update)
            case SetCurrentSchemaUpdate(schema_id=number):
                number = self._schema_ids.get(number, number)
                yield SetCurrentSchemaUpdate(schema_id=self._resolve("schema", number))
            case SetDefaultSpecUpdate(spec_id=number):
                yield SetDefaultSpecUpdate(spec_id=self._resolve("partition spec", number))
            case SetDefaultSortOrderUpdate(sort_order_id=number):
                yield SetDefaultSortOrderUpdate(sort_order_id=self._resolve("sort order", number))
            case SetPropertiesUpdate(updates=properties):
                self._properties |= set(properties)
                yield update
            case RemovePropertiesUpdate(removals=removals):
                yield RemovePropertiesUpdate(removals=[key for key in removals if key in self._properties])
                self._properties -= set(removals)
            case AddSnapshotUpdate():
                yield self._check_snapshot(update)
            case _:
                yield from self._removal(update)

    def _add(self, update: TableUpdate) -> Iterator[TableUpdate]:
        match update:
            case AddSchemaUpdate(schema_=schema):
                same = next((known.schema_id for known in self._schemas if known == schema), None)
                number = _next(known.schema_id for known in self._schemas) if same is None else same
                self._added["schema"] = self._schema_ids[schema.schema_id] = number
                if same is None:
                    self._schemas.append(schema.model_copy(update={"schema_id": number}))
                    yield AddSchemaUpdate(schema=self._schemas[-1])
            case AddPartitionSpecUpdate(spec=spec):
                same = next((known.spec_id for known in self._specs if known.compatible_with(spec)), None)
                number = _next(known.spec_id for known in self._specs) if same is None else same
                self._added["partition spec"] = number
                if same is None:
                    self._specs.append(
                        spec.model_copy(update={"spec_id": number, "fields": self._with_field_ids(spec)})
                    )
                    yield AddPartitionSpecUpdate(spec=self._specs[-1])
            case AddSortOrderUpdate(sort_order=order):
                same = next((known.order_id for known in self._orders if known.fields == order.fields), None)
                number = self._next_order_id(order) if same is None else same
                self._added["sort order"] = number
                if same is None:
                    self._orders.append(order.model_copy(update={"order_id": number}))
                    yield AddSortOrderUpdate(sort_order=self._orders[-1])

    def _with_field_ids(self, spec: PartitionSpec) -> tuple[PartitionField, ...]:
        """Assign ids to the partition fields that a client sent without one."""
        free = count(max([PARTITION_FIELD_ID_START - 1, self._start.last_partition_id or 0]) + 1)
        return tuple(
            field if field.field_id != UNASSIGNED else field.model_copy(update={"field_id": next(free)})
            for field in spec.fields
        )

    def _next_order_id(self, order: SortOrder) -> int:
        taken = [UNSORTED_SORT_ORDER_ID, *(known.order_id for known in self._orders)]
        return int(max(taken)) + 1 if order.fields else int(UNSORTED_SORT_ORDER_ID)

    def _resolve(self, what: str, number: int) -> int:
        if number != LAST_ADDED:
            return number
        if what not in self._added:
            raise ValueError(f"cannot set the last added {what}: none was added")
        return self._added[what]

    def _check_snapshot(self, update: AddSnapshotUpdate) -> AddSnapshotUpdate:
        snapshot, start = update.snapshot, self._start
        last = getattr(start, "last_sequence_number", 0)
        number = snapshot.sequence_number or 0
        if start.format_version > 1 and number <= last and snapshot.parent_snapshot_id is not None:
            raise CommitFailedError(
                f"Cannot add snapshot with sequence number {number} older than last sequence number {last}"
            )
        next_row = getattr(start, "next_row_id", None) or 0
        if start.format_version > 2 and (snapshot.first_row_id or 0) < next_row:
            raise CommitFailedError(
                f"Cannot add a snapshot whose first row id {snapshot.first_row_id} is below the table's {next_row}"
            )
        schema = self._schema_ids.get(snapshot.schema_id, snapshot.schema_id)
        return AddSnapshotUpdate(snapshot=snapshot.model_copy(update={"schema_id": schema}))

    def _removal(self, update: TableUpdate) -> Iterator[TableUpdate]:
        """Drop removals of what does not exist, as Iceberg's own server does."""
        with_statistics = {file.snapshot_id for file in self._start.statistics}
        with_partition_statistics = {file.snapshot_id for file in self._start.partition_statistics}
        match update:
            case RemoveSnapshotsUpdate(snapshot_ids=numbers):
                existing = {snapshot.snapshot_id for snapshot in self._start.snapshots} & set(numbers)
                for number in existing & with_partition_statistics:
                    yield RemovePartitionStatisticsUpdate(snapshot_id=number)
                yield RemoveSnapshotsUpdate(snapshot_ids=[number for number in numbers if number in existing])
            case RemoveStatisticsUpdate(snapshot_id=number):
                yield from [update] if number in with_statistics else []
            case RemovePartitionStatisticsUpdate(snapshot_id=number):
                yield from [update] if number in with_partition_statistics else []
            case _:
                yield update


def _next(numbers: Iterable[int]) -> int:
    return max(numbers, default=-1) + 1


def _empty(version: int) -> TableMetadata:
    try:
        return empty_metadata(version)
    except KeyError as exc:
        raise RestError(f"Unsupported format version: {version}") from exc


def _upgrade(base: TableMetadata, version: int) -> TableMetadata:
    """Return the metadata in a newer format version, which adds only the number and, in version 3, a row counter."""
    if not version or version == base.format_version:
        return base
    if not base.format_version < version <= NEWEST_FORMAT:
        raise RestError(f"Cannot change a table of format version {base.format_version} to {version}")
    fields = json.loads(dump_metadata(base))
    fields = {key: value for key, value in fields.items() if key not in _ONLY_IN_VERSION_1}
    fields["format-version"] = version
    if version == NEWEST_FORMAT:
        fields["next-row-id"] = 0
    return TableMetadataUtil.parse_obj(fields)


def _validate(metadata: TableMetadata) -> TableMetadata:
    """Validate metadata as if read from a file; version 1 has its current schema and spec in fields of their own too."""
    if metadata.format_version == 1:
        spec = [field.model_dump() for field in metadata.spec().fields]
        metadata = metadata.model_copy(update={"schema_": metadata.schema(), "partition_spec": spec})
    try:
        return TableMetadataUtil.parse_raw(dump_metadata(metadata))
    except (ValueError, KeyError) as exc:
        raise RestError(f"The updates do not result in a valid table: {exc}") from exc


def _metadata_log(base: TableMetadata, result: TableMetadata, location: str) -> list[MetadataLogEntry]:
    limit = int(
        result.properties.get(
            TableProperties.METADATA_PREVIOUS_VERSIONS_MAX, TableProperties.METADATA_PREVIOUS_VERSIONS_MAX_DEFAULT
        )
    )
    entry = MetadataLogEntry(metadata_file=location, timestamp_ms=base.last_updated_ms)
    return [*base.metadata_log, entry][-max(1, limit) :]


def _now_ms() -> int:
    return int(time.time() * 1000)
