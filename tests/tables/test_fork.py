"""A fork makes all its tables visible or none, with its notes in one snapshot, and only abandoned forks are dropped."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow
import pytest
from pyiceberg.catalog.sql import SqlCatalog as PyIceberg

from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.core.errors import CommitConflictError
from lakehouse.core.files import LOCAL, LocalFiles
from lakehouse.core.names import TableName
from lakehouse.core.refs import BranchOwner, Commit
from lakehouse.formats.iceberg.metadata import read_metadata
from lakehouse.process.pids import current_process
from lakehouse.storage.local import LocalHome
from lakehouse.tables.fork import Fork, annotate, drop_abandoned, forked, set_pointer

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


def test_a_pointer_that_moved_is_not_replaced(catalog: SqlCatalog, main: PyIceberg) -> None:
    before = str(catalog.pointer(LEADS))
    main.load_table("crm.leads").append(ROWS)
    now = catalog.pointer(LEADS)
    with pytest.raises(CommitConflictError, match="Another process changed crm.leads"):
        set_pointer(catalog, LEADS, before, None)
    assert catalog.pointer(LEADS) == now
    set_pointer(catalog, LEADS, str(now), before)
    assert rows_in(main) == 2


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


# ---- notes ------------------------------------------------------------------------------------------------------


def test_annotating_makes_one_snapshot_of_several_and_writes_notes_into_it(
    catalog: SqlCatalog, main: PyIceberg, branch: PyIceberg
) -> None:
    base = catalog.fork("work", [LEADS])
    table = branch.load_table("crm.leads")
    for _ in range(3):
        table.append(ROWS)
    annotate(catalog.on("work"), LEADS, {"source": "leads.csv"}, base[LEADS], LOCAL)
    assert catalog.publish("work")
    snapshots = main.load_table("crm.leads").snapshots()
    assert len(snapshots) == 2
    assert snapshots[1].parent_snapshot_id == snapshots[0].snapshot_id
    assert snapshots[1].summary is not None and snapshots[1].summary["lake.source"] == "leads.csv"
    assert snapshots[0].summary is not None and snapshots[0].summary.get("lake.source") is None
    assert rows_in(main) == 8
    main.load_table("crm.leads").append(ROWS)  # other writers can append to it
    assert rows_in(main) == 10


def test_the_annotated_snapshot_of_a_new_table_has_no_parent_and_leaves_the_old_file_alone(
    catalog: SqlCatalog, main: PyIceberg
) -> None:
    main.load_table("crm.leads").append(ROWS)
    pointer = catalog.pointer(LEADS)
    assert pointer is not None
    before = read_metadata(pointer).raw
    annotate(catalog, LEADS, {"source": "x"}, None, LOCAL)
    stamped = read_metadata(catalog.pointer(LEADS) or "").raw
    assert len(stamped["snapshots"]) == 1 and "parent-snapshot-id" not in stamped["snapshots"][0]
    assert [entry["snapshot-id"] for entry in stamped["snapshot-log"]] == [before["current-snapshot-id"]]
    assert len(before["snapshots"]) == 2
    assert read_metadata(pointer).raw == before


class WrittenBetween(LocalFiles):
    """Files of which the first that is written gives another process the time for a commit on the same branch."""

    def __init__(self, writer: PyIceberg) -> None:
        self._writer: PyIceberg | None = writer

    def write(self, uri: str, content: bytes) -> None:
        super().write(uri, content)
        if self._writer is not None:
            self._writer.load_table("crm.leads").append(ROWS)
        self._writer = None


def test_notes_that_cannot_be_added_are_an_error(catalog: SqlCatalog, main: PyIceberg, branch: PyIceberg) -> None:
    base = catalog.fork("work", [LEADS])
    branch.load_table("crm.leads").append(ROWS)
    fork = Fork(catalog, "work", base, WrittenBetween(branch))
    with pytest.raises(CommitConflictError, match=r"changed crm\.leads on the branch work"):
        fork.annotate(LEADS, {"sha256": "0"})


# ---- owners -----------------------------------------------------------------------------------------------------


def test_what_is_not_published_in_the_block_is_dropped(catalog: SqlCatalog, main: PyIceberg) -> None:
    with forked(catalog, "ingest", [LEADS], LOCAL) as fork:
        (ref,) = catalog.branch_refs()
        assert (ref.name, ref.owner, ref.message) == (fork.branch, current_process(), "")
    assert not catalog.branch_refs()


def test_a_branch_is_dropped_once_its_process_has_ended(catalog: SqlCatalog, main: PyIceberg, home: Path) -> None:
    work = (
        "from lakehouse.catalogs.sql import SqlCatalog, open_database\n"
        "from lakehouse.core.files import LOCAL\n"
        "from lakehouse.core.names import TableName\n"
        "from lakehouse.tables.fork import forked\n"
        f"catalog = SqlCatalog(open_database({str(home / 'catalog.db')!r}), 'file://{home}/warehouse')\n"
        "with forked(catalog, 'ingest', [TableName('crm', 'leads')], LOCAL):\n"
        "    print('forked', flush=True)\n"
        "    input()\n"
    )
    with subprocess.Popen([sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"forked\n"
        assert drop_abandoned(catalog, "ingest", LEADS) == []
        assert drop_abandoned(catalog, "maintain") == []
        other.kill()
    (name,) = (ref.name for ref in catalog.branch_refs())
    assert drop_abandoned(catalog, "ingest", LEADS) == [name]


def test_a_branch_of_another_host_stays_for_a_day(catalog: SqlCatalog, main: PyIceberg) -> None:
    elsewhere = BranchOwner("elsewhere", 1, "0")
    catalog.fork("ingest_other", [LEADS], elsewhere.sign(Commit("branch")))
    assert drop_abandoned(catalog, "ingest", LEADS) == []
    yesterday = datetime.now(UTC).replace(year=datetime.now(UTC).year - 1).isoformat()
    catalog.database.write(lambda db: db.execute("UPDATE lake_branches SET made_at = ?", (yesterday,)))
    assert drop_abandoned(catalog, "ingest", LEADS) == ["ingest_other"]


def test_a_branch_without_an_owner_is_nobodys_to_drop(catalog: SqlCatalog, main: PyIceberg) -> None:
    catalog.create_branch("maintain_mine", commit=Commit("branch", message="before the name was reserved"))
    assert drop_abandoned(catalog, "maintain") == []
