"""A table's next metadata: PyIceberg applies the updates; here is what it leaves open.

Clients number what they add (schemas, specs, orders) as if nobody else added anything. Where the numbers are taken
meanwhile, they are given anew, as Iceberg's own server does; what is there already is used again.
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
from pyiceberg.typedef import IcebergBaseModel

from lakehouse.rest_catalog.problems import CommitFailed, Problem

_NEWEST_FORMAT = 3
_LAST_ADDED = -1
#: Stands for the number of a partition field that has none yet.
UNNUMBERED = -1
_ONLY_IN_VERSION_1 = {"schema", "partition-spec"}


def changed(base: TableMetadata | None, updates: Sequence[TableUpdate], location: str = "") -> TableMetadata:
    """The metadata with the updates applied, `base` itself if they change nothing; `location` is where `base` lies."""
    wanted = max((each.format_version for each in updates if isinstance(each, UpgradeFormatVersionUpdate)), default=0)
    start = _of_version(base, wanted) if base else _nothing(wanted or 2)
    fitted = _Fitting(start)
    rest = [each for each in updates if not isinstance(each, UpgradeFormatVersionUpdate)]
    try:
        result = update_table_metadata(start, tuple(new for each in rest for new in fitted.fit(each)))
    except (ValueError, KeyError, StopIteration, TypeError) as exc:
        raise Problem(f"The updates cannot be applied: {exc}") from exc
    if base is None:
        return _whole(result)
    if result == base:
        return base
    kept: dict[str, Any] = {"metadata_log": _log(base, result, location)}
    if result.last_updated_ms <= base.last_updated_ms:
        kept["last_updated_ms"] = max(_now_ms(), base.last_updated_ms)
    if result.format_version > 1:
        kept["last_sequence_number"] = max(getattr(base, "last_sequence_number", 0), result.last_sequence_number or 0)
    return _whole(result.model_copy(update=kept))


def as_json(metadata: TableMetadata, before: Mapping[str, Any], sent: Sequence[Mapping[str, Any]]) -> bytes:
    """The metadata as its file holds it; fields that PyIceberg does not know stay as they were or as they were sent."""
    # Not its own method, which refuses version 3 because PyIceberg cannot write such tables' data; that is not asked here.
    whole = json.loads(IcebergBaseModel.model_dump_json(metadata))
    known = {field.alias or name for name, field in type(metadata).model_fields.items()}
    for key in before.keys() - known - _ONLY_IN_VERSION_1:
        whole.setdefault(key, before[key])
    snapshots = [*before.get("snapshots", ()), *(each["snapshot"] for each in sent if "snapshot" in each)]
    as_sent = {each["snapshot-id"]: each for each in snapshots}
    for snapshot in whole.get("snapshots", ()):
        for key, value in as_sent.get(snapshot["snapshot-id"], {}).items():
            if key not in ("sequence-number", "parent-snapshot-id", "schema-id"):
                snapshot.setdefault(key, value)
    return json.dumps(whole, separators=(",", ":")).encode()


class _Fitting:
    """Updates rewritten to fit the metadata that they meet."""

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

    def fit(self, update: TableUpdate) -> Iterator[TableUpdate]:
        match update:
            case AddSchemaUpdate() | AddPartitionSpecUpdate() | AddSortOrderUpdate():
                yield from self._add(update)
            case SetCurrentSchemaUpdate(schema_id=given):
                number = self._schema_ids.get(given, given)
                yield SetCurrentSchemaUpdate(schema_id=self._last_if("schema", number))
            case SetDefaultSpecUpdate(spec_id=given):
                yield SetDefaultSpecUpdate(spec_id=self._last_if("partition spec", given))
            case SetDefaultSortOrderUpdate(sort_order_id=given):
                yield SetDefaultSortOrderUpdate(sort_order_id=self._last_if("sort order", given))
            case SetPropertiesUpdate(updates=properties):
                self._properties |= set(properties)
                yield update
            case RemovePropertiesUpdate(removals=removals):
                yield RemovePropertiesUpdate(removals=[key for key in removals if key in self._properties])
                self._properties -= set(removals)
            case AddSnapshotUpdate():
                yield self._snapshot(update)
            case _:
                yield from self._removal(update)

    def _add(self, update: TableUpdate) -> Iterator[TableUpdate]:
        match update:
            case AddSchemaUpdate(schema_=schema):
                same = next((each.schema_id for each in self._schemas if each == schema), None)
                number = _next(each.schema_id for each in self._schemas) if same is None else same
                self._added["schema"] = self._schema_ids[schema.schema_id] = number
                if same is None:
                    self._schemas.append(schema.model_copy(update={"schema_id": number}))
                    yield AddSchemaUpdate(schema=self._schemas[-1])
            case AddPartitionSpecUpdate(spec=spec):
                same = next((each.spec_id for each in self._specs if each.compatible_with(spec)), None)
                number = _next(each.spec_id for each in self._specs) if same is None else same
                self._added["partition spec"] = number
                if same is None:
                    self._specs.append(spec.model_copy(update={"spec_id": number, "fields": self._numbered(spec)}))
                    yield AddPartitionSpecUpdate(spec=self._specs[-1])
            case AddSortOrderUpdate(sort_order=order):
                same = next((each.order_id for each in self._orders if each.fields == order.fields), None)
                number = self._order_number(order) if same is None else same
                self._added["sort order"] = number
                if same is None:
                    self._orders.append(order.model_copy(update={"order_id": number}))
                    yield AddSortOrderUpdate(sort_order=self._orders[-1])

    def _numbered(self, spec: PartitionSpec) -> tuple[PartitionField, ...]:
        """A client may leave the numbers of partition fields to us; then they are sent on as UNNUMBERED."""
        free = count(max([PARTITION_FIELD_ID_START - 1, self._start.last_partition_id or 0]) + 1)
        return tuple(
            field if field.field_id != UNNUMBERED else field.model_copy(update={"field_id": next(free)})
            for field in spec.fields
        )

    def _order_number(self, order: SortOrder) -> int:
        taken = [UNSORTED_SORT_ORDER_ID, *(each.order_id for each in self._orders)]
        return int(max(taken)) + 1 if order.fields else int(UNSORTED_SORT_ORDER_ID)

    def _last_if(self, what: str, number: int) -> int:
        if number != _LAST_ADDED:
            return number
        if what not in self._added:
            raise ValueError(f"the last added {what} cannot be set, because none was added")
        return self._added[what]

    def _snapshot(self, update: AddSnapshotUpdate) -> AddSnapshotUpdate:
        snapshot, start = update.snapshot, self._start
        last = getattr(start, "last_sequence_number", 0)
        number = snapshot.sequence_number or 0
        if start.format_version > 1 and number <= last and snapshot.parent_snapshot_id is not None:
            raise CommitFailed(
                f"Cannot add snapshot with sequence number {number} older than last sequence number {last}"
            )
        next_row = getattr(start, "next_row_id", None) or 0
        if start.format_version > 2 and (snapshot.first_row_id or 0) < next_row:
            raise CommitFailed(
                f"Cannot add a snapshot whose first row id {snapshot.first_row_id} is behind the table's {next_row}"
            )
        schema = self._schema_ids.get(snapshot.schema_id, snapshot.schema_id)
        return AddSnapshotUpdate(snapshot=snapshot.model_copy(update={"schema_id": schema}))

    def _removal(self, update: TableUpdate) -> Iterator[TableUpdate]:
        """What is to be removed and is not there is no error, as with Iceberg's own server."""
        with_statistics = {each.snapshot_id for each in self._start.statistics}
        with_partition_statistics = {each.snapshot_id for each in self._start.partition_statistics}
        match update:
            case RemoveSnapshotsUpdate(snapshot_ids=given):
                there = {each.snapshot_id for each in self._start.snapshots} & set(given)
                for number in there & with_partition_statistics:
                    yield RemovePartitionStatisticsUpdate(snapshot_id=number)
                yield RemoveSnapshotsUpdate(snapshot_ids=[number for number in given if number in there])
            case RemoveStatisticsUpdate(snapshot_id=number):
                yield from [update] if number in with_statistics else []
            case RemovePartitionStatisticsUpdate(snapshot_id=number):
                yield from [update] if number in with_partition_statistics else []
            case _:
                yield update


def _next(numbers: Iterable[int]) -> int:
    return max(numbers, default=-1) + 1


def _nothing(version: int) -> TableMetadata:
    """Metadata before its first update: not valid yet, so nothing is checked."""
    kinds = {1: "V1", 2: "V2", 3: "V3"}
    if version not in kinds:
        raise Problem(f"Unsupported format version: {version}")
    import pyiceberg.table.metadata as models

    facts: dict[str, Any] = {
        "location": "",
        "last_column_id": 0,
        "schemas": [],
        "partition_specs": [],
        "sort_orders": [],
        "current_schema_id": _LAST_ADDED,
        "default_spec_id": _LAST_ADDED,
        "default_sort_order_id": _LAST_ADDED,
        "last_partition_id": PARTITION_FIELD_ID_START - 1,
    }
    if version == _NEWEST_FORMAT:
        facts["next_row_id"] = 0
    return getattr(models, f"TableMetadata{kinds[version]}").model_construct(**facts)


def _of_version(base: TableMetadata, version: int) -> TableMetadata:
    """The metadata in a newer format, which asks for nothing but the number and, from version 3, a count of rows."""
    if not version or version == base.format_version:
        return base
    if not base.format_version < version <= _NEWEST_FORMAT:
        raise Problem(f"Cannot change a table of format version {base.format_version} to {version}")
    facts = json.loads(IcebergBaseModel.model_dump_json(base))
    facts = {key: value for key, value in facts.items() if key not in _ONLY_IN_VERSION_1}
    facts["format-version"] = version
    if version == _NEWEST_FORMAT:
        facts["next-row-id"] = 0
    return TableMetadataUtil.parse_obj(facts)


def _whole(metadata: TableMetadata) -> TableMetadata:
    """Checked as if read from a file; version 1 also repeats its current schema and spec in fields of their own."""
    if metadata.format_version == 1:
        spec = [field.model_dump() for field in metadata.spec().fields]
        metadata = metadata.model_copy(update={"schema_": metadata.schema(), "partition_spec": spec})
    try:
        return TableMetadataUtil.parse_raw(IcebergBaseModel.model_dump_json(metadata))
    except (ValueError, KeyError) as exc:
        raise Problem(f"The updates do not make a whole table: {exc}") from exc


def _log(base: TableMetadata, result: TableMetadata, location: str) -> list[MetadataLogEntry]:
    kept = int(
        result.properties.get(
            TableProperties.METADATA_PREVIOUS_VERSIONS_MAX, TableProperties.METADATA_PREVIOUS_VERSIONS_MAX_DEFAULT
        )
    )
    entry = MetadataLogEntry(metadata_file=location, timestamp_ms=base.last_updated_ms)
    return [*base.metadata_log, entry][-max(1, kept) :]


def _now_ms() -> int:
    return int(time.time() * 1000)
