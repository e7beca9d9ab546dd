"""Publishing makes all tables of a branch visible or none, and stamps the notes into one snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pytest
from pyiceberg.catalog.sql import SqlCatalog as PyIceberg

from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.core.names import TableName
from lakehouse.formats.iceberg.metadata import read_metadata
from lakehouse.formats.iceberg.stamp import stamp
from lakehouse.storage.local import LocalHome

LEADS, REJECTED = TableName("crm", "leads"), TableName("crm", "leads__rejected")
ROWS = pyarrow.table({"id": [1, 2]})


@pytest.fixture
def catalog(home: Path) -> SqlCatalog:
    ready = LocalHome(home).ready()
    return SqlCatalog(open_database(ready.catalog_file), f"file://{ready.warehouse}")


def other_writer(catalog: SqlCatalog, name: str = "lake") -> PyIceberg:
    """PyIceberg on the lake, or on one of its branches."""
    return PyIceberg(name, **catalog.pyiceberg_properties())


@pytest.fixture
def main(catalog: SqlCatalog) -> Iterator[PyIceberg]:
    catalog.ensure_namespace("crm")
    writer = other_writer(catalog)
    writer.create_table("crm.leads", schema=ROWS.schema).append(ROWS)
    yield writer
    writer.close()


@pytest.fixture
def branch(catalog: SqlCatalog, main: PyIceberg) -> Iterator[PyIceberg]:
    writer = other_writer(catalog, "work")
    yield writer
    writer.close()


def rows_in(writer: PyIceberg, name: str = "crm.leads") -> int:
    return int(writer.load_table(name).scan().to_arrow().num_rows)


def test_what_a_branch_writes_is_not_seen_before_it_is_published(
    catalog: SqlCatalog, main: PyIceberg, branch: PyIceberg
) -> None:
    base = catalog.fork("work", [LEADS, REJECTED])
    assert base == {LEADS: catalog.pointer(LEADS), REJECTED: None}
    branch.load_table("crm.leads").append(ROWS)
    branch.create_table("crm.leads__rejected", schema=ROWS.schema).append(ROWS)
    assert (rows_in(main), rows_in(branch)) == (2, 4)
    assert not main.table_exists("crm.leads__rejected")
    assert catalog.publish("work")
    assert (rows_in(main), rows_in(main, "crm.leads__rejected")) == (4, 2)
    assert list(catalog.on("work").tables()) == []


def test_a_table_that_changed_meanwhile_is_left_alone(catalog: SqlCatalog, main: PyIceberg, branch: PyIceberg) -> None:
    catalog.fork("work", [LEADS, REJECTED])
    branch.create_table("crm.leads__rejected", schema=ROWS.schema)
    branch.load_table("crm.leads").append(ROWS)
    main.load_table("crm.leads").append(ROWS.slice(0, 1))
    changed = catalog.pointer(LEADS)
    assert not catalog.publish("work")
    assert catalog.pointer(LEADS) == changed
    assert catalog.pointer(REJECTED) is None, "the other table of the branch is not published alone"
    assert rows_in(branch) == 4, "the branch is still there"
    catalog.drop_branch("work")
    assert list(catalog.on("work").tables()) == []
    assert rows_in(main) == 3


def test_a_table_that_somebody_else_made_meanwhile_is_not_replaced(
    catalog: SqlCatalog, main: PyIceberg, branch: PyIceberg
) -> None:
    catalog.fork("work", [REJECTED])
    branch.create_table("crm.leads__rejected", schema=ROWS.schema)
    main.create_table("crm.leads__rejected", schema=ROWS.schema).append(ROWS)
    writer = catalog.pointer(REJECTED)
    assert not catalog.publish("work")
    assert catalog.pointer(REJECTED) == writer


def test_a_table_that_was_dropped_meanwhile_does_not_come_back(
    catalog: SqlCatalog, main: PyIceberg, branch: PyIceberg
) -> None:
    catalog.fork("work", [LEADS])
    branch.load_table("crm.leads").append(ROWS)
    assert catalog.drop(LEADS, "2026-01-01")
    assert not catalog.publish("work")
    assert catalog.pointer(LEADS) is None


def test_a_branch_without_changes_publishes_nothing_and_conflicts_with_nobody(
    catalog: SqlCatalog, main: PyIceberg
) -> None:
    catalog.fork("work", [LEADS])
    main.load_table("crm.leads").append(ROWS)
    assert catalog.publish("work")
    assert rows_in(main) == 4


# ---- the stamp --------------------------------------------------------------------------------------------------


def test_a_stamp_makes_one_snapshot_of_several_and_writes_notes_into_it(
    catalog: SqlCatalog, main: PyIceberg, branch: PyIceberg
) -> None:
    base = catalog.fork("work", [LEADS])
    table = branch.load_table("crm.leads")
    for _ in range(3):
        table.append(ROWS)
    start = catalog.on("work").pointer(LEADS)
    assert start is not None
    stamped = stamp(start, {"lake.source": "leads.csv"}, base[LEADS])
    catalog.on("work").swap_pointer(LEADS, start, stamped)
    assert catalog.publish("work")
    snapshots = main.load_table("crm.leads").snapshots()
    assert len(snapshots) == 2
    assert snapshots[1].parent_snapshot_id == snapshots[0].snapshot_id
    assert snapshots[1].summary is not None and snapshots[1].summary["lake.source"] == "leads.csv"
    assert snapshots[0].summary is not None and snapshots[0].summary.get("lake.source") is None
    assert rows_in(main) == 8
    main.load_table("crm.leads").append(ROWS)  # other writers can append to it
    assert rows_in(main) == 10


def test_the_stamp_of_a_new_table_has_no_parent_and_leaves_the_old_file_alone(
    catalog: SqlCatalog, main: PyIceberg
) -> None:
    main.load_table("crm.leads").append(ROWS)
    pointer = catalog.pointer(LEADS)
    assert pointer is not None
    before = read_metadata(pointer).raw
    stamped = read_metadata(stamp(pointer, {"lake.source": "x"}, None)).raw
    assert len(stamped["snapshots"]) == 1 and "parent-snapshot-id" not in stamped["snapshots"][0]
    assert [entry["snapshot-id"] for entry in stamped["snapshot-log"]] == [before["current-snapshot-id"]]
    assert len(before["snapshots"]) == 2
    assert read_metadata(pointer).raw == before
