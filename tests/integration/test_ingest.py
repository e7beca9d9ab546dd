"""`lake ingest`: modes, repetition, layout and invalid input, with the real command and a real Spark."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Command
from tests.support.ingest_fixture import IngestFixture, both_formats, counts

from lakehouse.config.settings import Settings
from lakehouse.core.errors import LakeError, TableError

pytestmark = pytest.mark.spark


def work_folders(settings: Settings) -> list[str]:
    return [path.name for path in (settings.home / "run" / "ingest").glob("work-*")]


# ---- the command ------------------------------------------------------------------------------------------------


def test_the_first_command_that_a_newcomer_tries(command: Command, fixture: IngestFixture, tmp_path: Path) -> None:
    fixture.file("leads.csv", "id,Full Name,joined\n1,Ada,2026-01-31\n2,Bob,2026-02-01\n")
    arguments = ("ingest", "leads.csv", "--into", fixture.table, "--key", "id")
    first = command(*arguments, cwd=fixture.folder)
    assert (first.returncode, first.stderr) == (0, "")
    assert fixture.table in first.stdout and fixture.lake.history(fixture.table)[0].id in first.stdout
    second = command(*arguments, cwd=fixture.folder)
    assert second.returncode == 0
    assert f"leads.csv is already in {fixture.table}; --force ingests it again." in second.stderr
    assert len(fixture.lake.history(fixture.table)) == 1
    forced = command(*arguments, "--force", "-o", "json", cwd=fixture.folder)
    result = json.loads(forced.stdout)
    assert [{key: result[0][key] for key in result[0] if key != "snapshot"}] == [
        {
            "table": fixture.table,
            "mode": "upsert",
            "rows_read": 2,
            "inserted": 0,
            "updated": 0,
            "unchanged": 2,
            "rejected": 0,
            "superseded": 0,
            "files": ["leads.csv"],
            "skipped": [],
            "changes": [],
            "notes": [],
            "dry_run": False,
        }
    ]
    assert result[0]["snapshot"] == fixture.lake.history(fixture.table)[-1].id
    assert [row[1] for row in fixture.rows()] == ["Ada", "Bob"]


def test_a_no_op_reports_the_mode_it_would_have_had(fixture: IngestFixture) -> None:
    fixture.ingest("id\n1\n", key=("id",))
    assert fixture.ingest("id\n1\n", key=("id",)).mode == "upsert"


def test_a_dry_run_shows_the_plan_and_writes_nothing(
    command: Command, fixture: IngestFixture, shared_settings: Settings
) -> None:
    path = fixture.file("plan.csv", "Lead ID,Größe\n1,1.5\n2,2\n")
    result = command("ingest", str(path), "--into", fixture.table, "--key", "Lead ID", "--dry-run")
    assert result.returncode == 0
    assert "Lead ID" in result.stdout and "lead_id" in result.stdout and "double" in result.stdout
    assert "Nothing was written. Mode: upsert. Of 2 rows, these would be: 2 inserted, 0 updated" in result.stderr
    assert not fixture.exists()
    fixture.ingest("Lead ID\n1\n", "first.csv", key=("Lead ID",))
    path = fixture.file("plan.csv", "Lead ID,Größe\n1,1.5\n2,1\n2,2\n,3\n")
    report = fixture.lake.ingest(path, into=fixture.table, dry_run=True)
    assert (report.mode, report.changes, report.snapshot) == ("upsert", ("column added: größe double",), "")
    planned = (*counts(report), report.superseded)
    assert planned == (4, 1, 1, 0, 1, 1), "read, inserted, updated, unchanged, rejected, superseded"
    assert fixture.types() == {"lead_id": "bigint"}
    assert len(fixture.lake.history(fixture.table)) == 1
    assert work_folders(shared_settings) == []
    done = fixture.lake.ingest(path, into=fixture.table)
    assert (*counts(done), done.superseded) == planned, "the ingest does what the dry run said"


# ---- modes ------------------------------------------------------------------------------------------------------


@both_formats
def test_an_upsert_updates_inserts_and_leaves_alone(fixture: IngestFixture, table_format: str) -> None:
    first = fixture.ingest(
        "Lead ID,name,score\n1,Ann,10\n2,Bob,20\n,Nobody,5\n4,Dee,40\n",
        "first.csv",
        key=("Lead ID",),
        format=table_format,
    )
    assert counts(first) == (4, 3, 0, 0, 1)
    # In another order and case, with a new column; 2 changes nothing, 3 comes twice and its last row counts.
    second = fixture.ingest(
        "NAME,lead id,Score,Note\nBob,2,20,\nCy,3,30,x\nAnn,1,11,y\nCyd,3,31,z\n", "second.csv", key=("lead_id",)
    )
    assert (second.inserted, second.updated, second.unchanged, second.rejected) == (1, 1, 1, 0)
    assert second.changes == ("column added: note string",)
    # Without a column: kept where the row is updated, null where it is new. The table knows its key.
    third = fixture.ingest("lead_id,score\n1,12\n5,50\n2,20\n", "third.csv")
    assert (third.mode, *counts(third)) == ("upsert", 3, 1, 1, 1, 0)
    assert fixture.rows() == [
        (1, "Ann", 12, "y"),
        (2, "Bob", 20, None),
        (3, "Cyd", 31, "z"),
        (4, "Dee", 40, None),
        (5, None, 50, None),
    ]
    assert [column.comment for column in fixture.lake.describe(fixture.table).columns] == [
        "Lead ID",
        "name",
        "score",
        "Note",
    ]
    nothing_new = fixture.ingest("lead_id,score\n2,20\n4,40\n", "fourth.csv")
    assert counts(nothing_new) == (2, 0, 0, 2, 0)
    assert fixture.ingest("lead_id,score\n2,20\n4,40\n", "fourth.csv").skipped != ()
    assert fixture.lake.history(fixture.table)[-1].rows_total == 5
    rejected = fixture.rows("reason, file", f"{fixture.table}__rejected")
    assert rejected == [("null_key", str(fixture.folder / "first.csv"))]


def test_a_row_without_key_is_rejected_with_the_line_and_text_of_its_file(fixture: IngestFixture) -> None:
    fixture.ingest("id,name\n1,Ann\n,Nobody\n", key=("id",))
    line, raw = fixture.rows("line, raw", f"{fixture.table}__rejected")[0]
    assert line == 3
    assert "Nobody" in raw and "work-" not in raw


@both_formats
def test_append_adds_and_replace_leaves_only_the_new_rows(fixture: IngestFixture, table_format: str) -> None:
    assert counts(fixture.ingest("id,v\n1,a\n", "a.csv", format=table_format)) == (1, 1, 0, 0, 0)
    assert counts(fixture.ingest("id,v\n1,a\n2,b\n", "b.csv")) == (2, 2, 0, 0, 0)
    assert fixture.rows() == [(1, "a"), (1, "a"), (2, "b")]
    replaced = fixture.ingest("id,v\n9,z\n", "c.csv", mode="replace")
    assert (replaced.mode, *counts(replaced)) == ("replace", 1, 1, 0, 0, 0)
    assert fixture.rows() == [(9, "z")]
    assert [snapshot.rows_total for snapshot in fixture.lake.history(fixture.table)] == [1, 3, 1]
    assert fixture.lake.sql(
        f"SELECT count(*) FROM {fixture.table}", as_of=fixture.lake.history(fixture.table)[1].id
    ).rows() == [(3,)]


def test_replacing_with_an_earlier_file_again_restores_its_rows(fixture: IngestFixture) -> None:
    fixture.ingest("id\n1\n", "one.csv", mode="replace")
    fixture.ingest("id\n2\n", "two.csv", mode="replace")
    fixture.ingest("id\n1\n", "one.csv", mode="replace")
    assert fixture.rows("id, id") == [(1, 1)]


def test_a_file_that_was_rolled_back_can_be_ingested_again(fixture: IngestFixture) -> None:
    fixture.ingest("id\n1\n", "one.csv")
    fixture.ingest("id\n2\n", "two.csv")
    fixture.lake.rollback(fixture.table, fixture.lake.history(fixture.table)[0].id)
    assert fixture.ingest("id\n2\n", "two.csv").inserted == 1


@both_formats
def test_the_highest_value_of_an_order_column_wins_within_a_batch(fixture: IngestFixture, table_format: str) -> None:
    content = "id,part,v,n\n1,a,old,1\n1,a,new,3\n1,a,mid,2\n1,b,only,\n"
    report = fixture.ingest(content, key=("id", "part"), order_by="n", format=table_format)
    assert counts(report) == (4, 2, 0, 0, 0)
    assert fixture.rows("part, v") == [("a", "new"), ("b", "only")]
    assert fixture.lake.describe(fixture.table).key == ("id", "part")


@both_formats
def test_a_later_ingest_wins_whatever_its_order_column_says(fixture: IngestFixture, table_format: str) -> None:
    fixture.ingest("id,v,n\n1,a,10\n", "one.csv", key=("id",), order_by="n", format=table_format)
    assert fixture.ingest("id,v,n\n1,z,5\n", "two.csv", key=("id",), order_by="n").updated == 1
    assert fixture.rows() == [(1, "z", 5)]


@both_formats
def test_the_order_column_may_be_given_by_its_header(fixture: IngestFixture, table_format: str) -> None:
    fixture.ingest("id,v,Row N\n1,a,2\n1,b,1\n", key=("id",), order_by="Row N", format=table_format)
    assert fixture.rows("id, v") == [(1, "a")]


@pytest.mark.parametrize("option", [{"key": ("nope",)}, {"key": ("id",), "order_by": "nope"}], ids=["key", "order by"])
def test_an_unknown_column_is_refused_with_the_columns_there_are(
    fixture: IngestFixture, option: dict[str, Any]
) -> None:
    with pytest.raises(TableError, match="nope") as caught:
        fixture.ingest("id,Full Name\n1,a\n", **option)
    assert "id, full_name" in caught.value.hint
    assert not fixture.exists()


def test_an_upsert_into_rows_that_share_a_key_updates_them_all(fixture: IngestFixture) -> None:
    fixture.ingest("id,v\n1,a\n1,b\n2,c\n", "dup.csv")
    report = fixture.ingest("id,v\n1,z\n", "upsert.csv", key=("id",))
    assert report.unchanged == 0
    assert fixture.rows() == [(1, "z"), (1, "z"), (2, "c")]


def test_a_keyless_hudi_table_refuses_an_upsert_or_does_it(fixture: IngestFixture) -> None:
    fixture.ingest("id,v\n1,a\n", "one.csv", format="hudi")
    try:
        fixture.ingest("id,v\n1,z\n", "two.csv", key=("id",))
    except LakeError:
        assert fixture.rows() == [(1, "a")]
    else:
        assert fixture.rows() == [(1, "z")]


def test_an_upsert_without_a_key_says_how_to_name_one(fixture: IngestFixture) -> None:
    with pytest.raises(TableError, match="needs a key") as caught:
        fixture.ingest("id\n1\n", mode="upsert")
    assert "--key" in caught.value.hint


def test_a_table_of_the_other_format_is_refused(fixture: IngestFixture) -> None:
    fixture.ingest("id\n1\n", "one.csv")
    with pytest.raises(TableError, match="is an Iceberg table"):
        fixture.ingest("id\n2\n", "two.csv", format="hudi")
    assert fixture.rows("id, id") == [(1, 1)]


# ---- repetition -------------------------------------------------------------------------------------------------------


def test_a_folder_is_one_commit_and_takes_only_what_is_new(fixture: IngestFixture) -> None:
    for number in (1, 2, 3):
        fixture.file(f"drop/{number}.csv", f"id\n{number}\n")
    first = fixture.lake.ingest(fixture.folder / "drop", into=fixture.table)
    assert (len(first.files), first.inserted) == (3, 3)
    (snapshot,) = fixture.lake.history(fixture.table)
    hashes = [hashlib.sha256(f"id\n{number}\n".encode()).hexdigest() for number in (1, 2, 3)]
    assert snapshot.notes["sha256"].split(",") == hashes
    assert snapshot.notes["bytes"] == "15"
    assert snapshot.source == ", ".join(str(fixture.folder / "drop" / f"{number}.csv") for number in (1, 2, 3))
    fixture.file("drop/4.csv", "id\n4\n")
    fixture.file("drop/renamed.csv", "id\n1\n")
    second = fixture.lake.ingest(fixture.folder / "drop", into=fixture.table)
    assert second.files == (str(fixture.folder / "drop" / "4.csv"),)
    assert len(second.skipped) == 4
    assert fixture.rows("id, id") == [(1, 1), (2, 2), (3, 3), (4, 4)]


def test_the_same_content_twice_in_one_folder_counts_once(fixture: IngestFixture) -> None:
    fixture.file("drop/a.csv", "id\n1\n")
    fixture.file("drop/copy of a.csv", "id\n1\n")
    fixture.lake.ingest(fixture.folder / "drop", into=fixture.table)
    assert fixture.rows("id, id") == [(1, 1)]


@both_formats
def test_the_snapshot_records_the_source_of_its_rows(fixture: IngestFixture, table_format: str) -> None:
    report = fixture.ingest("id\n1\n", "one.csv", key=("id",), format=table_format)
    (snapshot,) = fixture.lake.history(fixture.table)
    assert (snapshot.id, snapshot.source) == (report.snapshot, str(fixture.folder / "one.csv"))
    assert (snapshot.notes["sha256"], snapshot.notes["bytes"]) == (hashlib.sha256(b"id\n1\n").hexdigest(), "5")


# ---- layout -----------------------------------------------------------------------------------------------------


def test_three_rows_are_one_small_file_per_partition(fixture: IngestFixture) -> None:
    content = "id,ts\n1,2026-01-01 10:00:00\n2,2026-01-01 11:00:00\n3,2026-01-02 11:00:00\n"
    fixture.ingest(content, partition_by="days(ts)", sort_by="id DESC")
    info = fixture.lake.describe(fixture.table)
    assert info.partitioning == ("days(ts)",)
    assert info.current is not None and info.current.files_total == 2
    first_day = fixture.lake.sql(f"SELECT id FROM {fixture.table} WHERE ts < '2026-01-02'", engine="duckdb").rows()
    assert first_day == [(2,), (1,)], "rows are sorted in their file"


def test_buckets_and_no_layout_give_few_files(fixture: IngestFixture) -> None:
    content = "id,ts\n" + "".join(f"{number},2026-01-0{1 + number % 2} 10:00:00\n" for number in range(40))
    fixture.ingest(content, partition_by="days(ts), bucket(4, id)")
    info = fixture.lake.describe(fixture.table)
    assert info.partitioning == ("days(ts)", "bucket(4, id)")
    assert info.current is not None and info.current.files_total == 8
    plain = fixture.table + "_plain"
    fixture.lake.ingest(fixture.folder / "in.csv", into=plain)
    current = fixture.lake.describe(plain).current
    assert current is not None and current.files_total == 1


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        pytest.param({"partition_by": "days(ts)", "format": "hudi"}, "transform", id="Hudi has no transforms"),
        pytest.param({"partition_by": "days(nope)"}, "nope", id="no such partition column"),
        pytest.param({"sort_by": "nope"}, "nope", id="no such sort column"),
        pytest.param({"partition_by": "days(id)"}, "bigint|long", id="Spark refuses the transform of a number"),
    ],
)
def test_an_invalid_layout_leaves_no_table_and_no_branch(
    fixture: IngestFixture, layout: dict[str, str], message: str
) -> None:
    before = fixture.lake.branches()
    with pytest.raises(LakeError, match=message):
        fixture.ingest("id,ts\n1,2026-01-01 10:00:00\n", **layout)
    assert not fixture.exists()
    assert fixture.lake.branches() == before


# ---- bad input --------------------------------------------------------------------------------------------------

Prepare = Callable[[Path], object]


@pytest.mark.parametrize(
    ("name", "prepare", "message"),
    [
        pytest.param("empty.csv", lambda path: path.write_bytes(b""), "empty", id="empty"),
        pytest.param("gone.csv", lambda path: None, "no file", id="missing"),
        pytest.param("folder", lambda path: path.mkdir(), "no data files", id="empty folder"),
        pytest.param("none-*.csv", lambda path: None, "No file matches", id="empty pattern"),
        pytest.param(
            "cut.csv.gz",
            lambda path: path.write_bytes(
                gzip.compress(b"id,v\n" + b"".join(b"%d,x\n" % n for n in range(5000)))[:-500]
            ),
            "cut.csv.gz",
            id="truncated gzip",
        ),
        pytest.param("photo.csv", lambda path: path.write_bytes(bytes(range(256)) * 40), "photo.csv", id="binary"),
        pytest.param(
            "array.json", lambda path: path.write_text('[{"id": 1}, {"id"\n'), "array.json", id="cut json array"
        ),
        pytest.param("fine.csv", lambda path: path.write_text("number,v\n1,a\n"), "There is no column id", id="no key"),
    ],
)
def test_bad_input_is_one_clear_line_and_no_table(
    command: Command, fixture: IngestFixture, name: str, prepare: Prepare, message: str
) -> None:
    fixture.folder.mkdir()
    prepare(fixture.folder / name)
    result = command("ingest", name, "--into", fixture.table, "--key", "id", cwd=fixture.folder)
    assert result.returncode in (1, 2)
    assert message in result.stderr.splitlines()[0]
    assert "Traceback" not in result.stderr and len(result.stderr.splitlines()) <= 2
    assert not fixture.exists() and not fixture.exists("__rejected")
