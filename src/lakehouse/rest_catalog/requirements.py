"""Requirements of a commit: PyIceberg validates them; the messages are those of Iceberg's own server."""

from __future__ import annotations

from collections.abc import Iterable

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AssertCreate, AssertRefSnapshotId, TableRequirement

from lakehouse.rest_catalog.errors import CommitFailedError

#: By the requirement's type: the message, the field of the requirement, and the field of the metadata.
_MESSAGES = {
    "assert-table-uuid": ("UUID does not match: expected", "uuid", "table_uuid"),
    "assert-last-assigned-field-id": (
        "last assigned field id changed: expected id",
        "last_assigned_field_id",
        "last_column_id",
    ),
    "assert-current-schema-id": ("current schema changed: expected id", "current_schema_id", "current_schema_id"),
    "assert-last-assigned-partition-id": (
        "last assigned partition id changed: expected id",
        "last_assigned_partition_id",
        "last_partition_id",
    ),
    "assert-default-spec-id": ("default partition spec changed: expected id", "default_spec_id", "default_spec_id"),
    "assert-default-sort-order-id": (
        "default sort order changed: expected id",
        "default_sort_order_id",
        "default_sort_order_id",
    ),
}


def check(requirements: Iterable[TableRequirement], base: TableMetadata | None) -> None:
    """Refuse a commit whose requirements do not hold."""
    for requirement in requirements:
        if isinstance(requirement, AssertCreate):
            continue  # the transaction checks whether the name is free
        if isinstance(requirement, AssertRefSnapshotId) and base is not None and _is_new_ref(requirement, base):
            continue  # PyIceberg accepts only `main` as a new ref of an empty table
        try:
            requirement.validate(base)
        except CommitFailedException as exc:
            raise CommitFailedError(_message(requirement, base, str(exc))) from exc


def _is_new_ref(requirement: AssertRefSnapshotId, base: TableMetadata) -> bool:
    return requirement.snapshot_id is None and requirement.ref not in base.refs


def _message(requirement: TableRequirement, base: TableMetadata | None, text: str) -> str:
    if base is None or requirement.type not in _MESSAGES:
        return text if text.startswith("Requirement failed") else f"Requirement failed: {text}"
    what, expected, actual = _MESSAGES[requirement.type]
    return f"Requirement failed: {what} {getattr(requirement, expected)} != {getattr(base, actual)}"
