"""The schema changes that a table needs for its files, and which of them the contract allows."""

from __future__ import annotations

import pytest

from lakehouse.core.errors import ContractError
from lakehouse.core.tables import Column
from lakehouse.ingest.files import PlannedColumn, RecordedColumn
from lakehouse.ingest.schema import (
    SchemaChanges,
    columns_after,
    merge_recorded,
    plan_schema_changes,
    with_utc_timestamps,
)


def kind_of(changes: SchemaChanges) -> str:
    parts = {"added": changes.added, "widened": changes.widened, "rewritten": changes.rewritten}
    return ", ".join(name for name, columns in parts.items() if columns)


@pytest.mark.parametrize(
    ("existing", "planned", "what"),
    [
        ("bigint", "bigint", ""),
        ("string", "bigint", ""),
        ("string", "timestamp", ""),
        ("double", "bigint", ""),
        ("int", "int", ""),
        pytest.param("int", "bigint", "widened"),
        ("float", "double", "widened"),
        ("decimal(10,2)", "decimal(12,2)", "widened"),
        ("decimal(10,2)", "decimal(12,3)", "rewritten"),
        ("bigint", "double", "rewritten"),
        ("bigint", "string", "rewritten"),
        ("double", "string", "rewritten"),
        ("date", "timestamp", "rewritten"),
        ("boolean", "string", "rewritten"),
    ],
    ids=lambda value: value or "fits",
)
def test_a_column_fits_widens_or_is_rewritten(existing: str, planned: str, what: str) -> None:
    changes = plan_schema_changes(
        [PlannedColumn("n", "N", planned, recorded=existing)], [Column("n", existing)], "evolve"
    )
    assert kind_of(changes) == what
    assert bool(changes) == bool(what)


def test_new_columns_are_added_in_the_order_of_the_files() -> None:
    planned = [PlannedColumn("id", "id", "bigint"), PlannedColumn("b", "B", "string"), PlannedColumn("a", "A", "date")]
    changes = plan_schema_changes(planned, [Column("id", "bigint")], "evolve")
    assert [column.name for column in changes.added] == ["b", "a"]
    assert changes.describe() == ("column added: b string", "column added: a date")


def test_a_column_that_the_files_lack_changes_nothing() -> None:
    assert not plan_schema_changes(
        [PlannedColumn("id", "id", "bigint")], [Column("id", "bigint"), Column("v", "date")], "freeze"
    )


@pytest.mark.parametrize(
    "planned", [PlannedColumn("v", "V", "string"), PlannedColumn("id", "id", "string", recorded="bigint")]
)
def test_a_frozen_table_names_what_would_have_to_change(planned: PlannedColumn) -> None:
    with pytest.raises(ContractError) as caught:
        plan_schema_changes([planned], [Column("id", "bigint")], "freeze")
    assert planned.name in caught.value.message and "--contract evolve" in caught.value.hint
    assert caught.value.is_user_error


def test_the_columns_of_an_evolved_table_end_with_those_that_partition_it() -> None:
    changes = SchemaChanges(
        added=(PlannedColumn("v", "The V", "date"),), rewritten=(PlannedColumn("n", "N", "string"),)
    )
    columns = [Column("p", "string"), Column("n", "bigint", comment="N")]
    assert columns_after(columns, changes, last=["p"]) == (
        Column("n", "string", comment="N"),
        Column("v", "date", comment="The V"),
        Column("p", "string"),
    )


def test_a_timestamp_without_zone_that_is_stored_as_utc_is_read_as_before_and_fits() -> None:
    """The Hive Metastore has no such type."""
    (stored,) = with_utc_timestamps([PlannedColumn("at", "At", "timestamp_ntz")])
    assert stored.type == "timestamp"
    recorded = merge_recorded(RecordedColumn("at", "timestamp_ntz", "At"), stored.type)
    assert recorded.type == "timestamp_ntz"
    again = PlannedColumn("at", "At", "timestamp_ntz", recorded=recorded.type)
    assert not plan_schema_changes([again], [Column("at", stored.type)], "freeze")


def test_otherwise_the_type_of_the_table_takes_precedence_over_the_recorded_one() -> None:
    assert merge_recorded(RecordedColumn("n", "bigint"), "string").type == "string"
    assert merge_recorded(RecordedColumn("at", "timestamp"), "timestamp_ntz").type == "timestamp_ntz"
    other = PlannedColumn("at", "At", "timestamp_ntz", recorded="timestamp")
    assert kind_of(plan_schema_changes([other], [Column("at", "timestamp")], "evolve")) == "rewritten"


def test_a_nested_column_that_meets_text_becomes_text() -> None:
    planned = [PlannedColumn("c", "c", "string", recorded="struct<a:int>")]
    changes = plan_schema_changes(planned, [Column("c", "struct<a:int>")], "evolve")
    assert (changes.rewritten, changes.widened) == (tuple(planned), ())
