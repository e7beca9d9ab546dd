"""Requirements of a commit: PyIceberg decides whether each holds; refusals say it in the words that engines know."""

from __future__ import annotations

from collections.abc import Iterable

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AssertCreate, AssertRefSnapshotId, TableRequirement

from lakehouse.rest_catalog.problems import CommitFailed

#: By the requirement's type: what changed, the field that was expected, and the field of the metadata.
_WORDS = {
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
    """Refuse a commit that was made from something else than what is there."""
    for requirement in requirements:
        if isinstance(requirement, AssertCreate):
            continue  # whether the name is free is decided where the pointer is put
        if isinstance(requirement, AssertRefSnapshotId) and base is not None and _is_new_ref(requirement, base):
            continue  # PyIceberg allows none but `main` to be new in an empty table
        try:
            requirement.validate(base)
        except CommitFailedException as exc:
            raise CommitFailed(_told(requirement, base, str(exc))) from exc


def _is_new_ref(requirement: AssertRefSnapshotId, base: TableMetadata) -> bool:
    return requirement.snapshot_id is None and requirement.ref not in base.refs


def _told(requirement: TableRequirement, base: TableMetadata | None, text: str) -> str:
    if base is None or requirement.type not in _WORDS:
        return text if text.startswith("Requirement failed") else f"Requirement failed: {text}"
    what, wanted, found = _WORDS[requirement.type]
    return f"Requirement failed: {what} {getattr(requirement, wanted)} != {getattr(base, found)}"
