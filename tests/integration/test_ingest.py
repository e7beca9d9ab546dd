"""`lake ingest`: modes, once, layout and bad input, with the real command and a real Spark. Schema: its own file."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Command
from tests.desk import Desk, both_formats, counts

from lakehouse.config.settings import Settings
from lakehouse.core.errors import LakeError, TableError

pytestmark = pytest.mark.spark


def work_folders(settings: Settings) -> list[str]:
    return [path.name for path in (settings.home / "run" / "ingest").glob("work-*")]


# ---- the command ------------------------------------------------------------------------------------------------


def test_the_first_command_that_a_newcomer_tries(command: Command, desk: Desk, tmp_path: Path) -> None:
    desk.file("leads.csv", "id,Full Name,joined\n1,Ada,2026-01-31\n2,Bob,2026-02-01\n")
    arguments = ("ingest", "leads.csv", "--into", desk.table, "--key", "id")
    first = command(*arguments, cwd=desk.folder)
    assert (first.returncode, first.stderr) == (0, "")
    assert desk.table in first.stdout and desk.lake.history(desk.table)[0].id in first.stdout
    second = command(*arguments, cwd=desk.folder)
    assert second.returncode == 0
    assert f"leads.csv is already in {desk.table}; --force ingests it again." in second.stderr
    assert len(desk.lake.history(desk.table)) == 1
    forced = command(*arguments, "--force", "-o", "json", cwd=desk.folder)
    told = json.loads(forced.stdout)
    assert [{key: told[0][key] for key in told[0] if key != "snapshot"}] == [
        {
            "table": desk.table,
            "mode": "upsert",
            "rows_read": 2,
            "inserted": 0,
            "updated": 0,
            "unchanged": 2,
            "rejected": 0,
            "files": ["leads.csv"],
            "skipped": [],
            "changes": [],
            "notes": [],
            "dry_run": False,
        }
    ]
    assert told[0]["snapshot"] == desk.lake.history(desk.table)[-1].id
    assert [row[1] for row in desk.rows()] == ["Ada", "Bob"]


def test_a_no_op_tells_the_mode_it_would_have_had(desk: Desk) -> None:
    desk.ingest("id\n1\n", key=("id",))
    assert desk.ingest("id\n1\n", key=("id",)).mode == "upsert"


def test_a_dry_run_shows_the_plan_and_writes_nothing(command: Command, desk: Desk, shared_settings: Settings) -> None:
    path = desk.file("plan.csv", "Lead ID,Größe\n1,1.5\n2,2\n")
    told = command("ingest", str(path), "--into", desk.table, "--key", "Lead ID", "--dry-run")
    assert told.returncode == 0
    assert "Lead ID" in told.stdout and "lead_id" in told.stdout and "double" in told.stdout
    assert "Nothing was written" in told.stderr
    assert not desk.exists()
    desk.ingest("Lead ID\n1\n", "first.csv", key=("Lead ID",))
    report = desk.lake.ingest(path, into=desk.table, dry_run=True)
    assert (report.mode, report.changes, report.snapshot) == ("upsert", ("column added: grosse double",), "")
    assert desk.types() == {"lead_id": "bigint"}
    assert len(desk.lake.history(desk.table)) == 1
    assert work_folders(shared_settings) == []


# ---- modes ------------------------------------------------------------------------------------------------------


@both_formats
def test_an_upsert_updates_inserts_and_leaves_alone(desk: Desk, table_format: str) -> None:
    first = desk.ingest(
        "Lead ID,name,score\n1,Ann,10\n2,Bob,20\n,Nobody,5\n4,Dee,40\n",
        "first.csv",
        key=("Lead ID",),
        format=table_format,
    )
    assert counts(first) == (4, 3, 0, 0, 1)
    # In another order and case, with a new column; 2 changes nothing, 3 comes twice and its last row counts.
    second = desk.ingest(
        "NAME,lead id,Score,Note\nBob,2,20,\nCy,3,30,x\nAnn,1,11,y\nCyd,3,31,z\n", "second.csv", key=("lead_id",)
    )
    assert (second.inserted, second.updated, second.unchanged, second.rejected) == (1, 1, 1, 0)
    assert second.changes == ("column added: note string",)
    # Without a column: kept where the row is updated, null where it is new. The table knows its key.
    third = desk.ingest("lead_id,score\n1,12\n5,50\n2,20\n", "third.csv")
    assert (third.mode, *counts(third)) == ("upsert", 3, 1, 1, 1, 0)
    assert desk.rows() == [
        (1, "Ann", 12, "y"),
        (2, "Bob", 20, None),
        (3, "Cyd", 31, "z"),
        (4, "Dee", 40, None),
        (5, None, 50, None),
    ]
    assert [column.comment for column in desk.lake.describe(desk.table).columns] == ["Lead ID", "name", "score", "Note"]
    nothing_new = desk.ingest("lead_id,score\n2,20\n4,40\n", "fourth.csv")
    assert counts(nothing_new) == (2, 0, 0, 2, 0)
    assert desk.ingest("lead_id,score\n2,20\n4,40\n", "fourth.csv").skipped != ()
    assert desk.lake.history(desk.table)[-1].rows_total == 5
    rejected = desk.rows("reason, file", f"{desk.table}__rejected")
    assert rejected == [("null_key", str(desk.folder / "first.csv"))]


def test_a_null_key_is_told_by_the_line_and_the_text_of_its_file(desk: Desk) -> None:
    desk.ingest("id,name\n1,Ann\n,Nobody\n", key=("id",))
    line, raw = desk.rows("line, raw", f"{desk.table}__rejected")[0]
    assert line == 3
    assert "Nobody" in raw and "work-" not in raw


@both_formats
def test_append_adds_and_replace_leaves_only_the_new_rows(desk: Desk, table_format: str) -> None:
    assert counts(desk.ingest("id,v\n1,a\n", "a.csv", format=table_format)) == (1, 1, 0, 0, 0)
    assert counts(desk.ingest("id,v\n1,a\n2,b\n", "b.csv")) == (2, 2, 0, 0, 0)
    assert desk.rows() == [(1, "a"), (1, "a"), (2, "b")]
    replaced = desk.ingest("id,v\n9,z\n", "c.csv", mode="replace")
    assert (replaced.mode, *counts(replaced)) == ("replace", 1, 1, 0, 0, 0)
    assert desk.rows() == [(9, "z")]
    assert [snapshot.rows_total for snapshot in desk.lake.history(desk.table)] == [1, 3, 1]
    assert desk.lake.sql(f"SELECT count(*) FROM {desk.table}", as_of=desk.lake.history(desk.table)[1].id).rows() == [
        (3,)
    ]


def test_replacing_with_an_earlier_file_again_brings_its_rows_back(desk: Desk) -> None:
    desk.ingest("id\n1\n", "one.csv", mode="replace")
    desk.ingest("id\n2\n", "two.csv", mode="replace")
    desk.ingest("id\n1\n", "one.csv", mode="replace")
    assert desk.rows("id, id") == [(1, 1)]


def test_a_file_that_was_rolled_back_can_come_again(desk: Desk) -> None:
    desk.ingest("id\n1\n", "one.csv")
    desk.ingest("id\n2\n", "two.csv")
    desk.lake.rollback(desk.table, desk.lake.history(desk.table)[0].id)
    assert desk.ingest("id\n2\n", "two.csv").inserted == 1


@both_formats
def test_the_highest_value_of_an_order_column_wins_within_a_batch(desk: Desk, table_format: str) -> None:
    content = "id,part,v,n\n1,a,old,1\n1,a,new,3\n1,a,mid,2\n1,b,only,\n"
    report = desk.ingest(content, key=("id", "part"), order_by="n", format=table_format)
    assert counts(report) == (4, 2, 0, 0, 0)
    assert desk.rows("part, v") == [("a", "new"), ("b", "only")]
    assert desk.lake.describe(desk.table).key == ("id", "part")


@both_formats
def test_a_later_ingest_wins_whatever_its_order_column_says(desk: Desk, table_format: str) -> None:
    desk.ingest("id,v,n\n1,a,10\n", "one.csv", key=("id",), order_by="n", format=table_format)
    assert desk.ingest("id,v,n\n1,z,5\n", "two.csv", key=("id",), order_by="n").updated == 1
    assert desk.rows() == [(1, "z", 5)]


@both_formats
def test_the_order_column_may_be_given_by_its_header(desk: Desk, table_format: str) -> None:
    desk.ingest("id,v,Row N\n1,a,2\n1,b,1\n", key=("id",), order_by="Row N", format=table_format)
    assert desk.rows("id, v") == [(1, "a")]


@pytest.mark.parametrize("option", [{"key": ("nope",)}, {"key": ("id",), "order_by": "nope"}], ids=["key", "order by"])
def test_an_unknown_column_is_refused_with_the_columns_there_are(desk: Desk, option: dict[str, Any]) -> None:
    with pytest.raises(TableError, match="nope") as caught:
        desk.ingest("id,Full Name\n1,a\n", **option)
    assert "id, full_name" in caught.value.hint
    assert not desk.exists()


def test_an_upsert_into_rows_that_share_a_key_updates_them_all(desk: Desk) -> None:
    desk.ingest("id,v\n1,a\n1,b\n2,c\n", "dup.csv")
    report = desk.ingest("id,v\n1,z\n", "upsert.csv", key=("id",))
    assert report.unchanged == 0
    assert desk.rows() == [(1, "z"), (1, "z"), (2, "c")]


def test_a_keyless_hudi_table_refuses_an_upsert_or_does_it(desk: Desk) -> None:
    desk.ingest("id,v\n1,a\n", "one.csv", format="hudi")
    try:
        desk.ingest("id,v\n1,z\n", "two.csv", key=("id",))
    except LakeError:
        assert desk.rows() == [(1, "a")]
    else:
        assert desk.rows() == [(1, "z")]


def test_an_upsert_without_a_key_says_how_to_name_one(desk: Desk) -> None:
    with pytest.raises(TableError, match="needs a key") as caught:
        desk.ingest("id\n1\n", mode="upsert")
    assert "--key" in caught.value.hint


def test_a_table_of_the_other_format_is_refused(desk: Desk) -> None:
    desk.ingest("id\n1\n", "one.csv")
    with pytest.raises(TableError, match="is a iceberg table|is an iceberg table"):
        desk.ingest("id\n2\n", "two.csv", format="hudi")
    assert desk.rows("id, id") == [(1, 1)]


# ---- once -------------------------------------------------------------------------------------------------------


def test_a_folder_is_one_commit_and_takes_only_what_is_new(desk: Desk) -> None:
    for number in (1, 2, 3):
        desk.file(f"drop/{number}.csv", f"id\n{number}\n")
    first = desk.lake.ingest(desk.folder / "drop", into=desk.table)
    assert (len(first.files), first.inserted) == (3, 3)
    (snapshot,) = desk.lake.history(desk.table)
    hashes = [hashlib.sha256(f"id\n{number}\n".encode()).hexdigest() for number in (1, 2, 3)]
    assert snapshot.notes["sha256"].split(",") == hashes
    assert snapshot.notes["bytes"] == "15"
    assert snapshot.source == ", ".join(str(desk.folder / "drop" / f"{number}.csv") for number in (1, 2, 3))
    desk.file("drop/4.csv", "id\n4\n")
    desk.file("drop/renamed.csv", "id\n1\n")
    second = desk.lake.ingest(desk.folder / "drop", into=desk.table)
    assert second.files == (str(desk.folder / "drop" / "4.csv"),)
    assert len(second.skipped) == 4
    assert desk.rows("id, id") == [(1, 1), (2, 2), (3, 3), (4, 4)]


def test_the_same_content_twice_in_one_folder_counts_once(desk: Desk) -> None:
    desk.file("drop/a.csv", "id\n1\n")
    desk.file("drop/copy of a.csv", "id\n1\n")
    desk.lake.ingest(desk.folder / "drop", into=desk.table)
    assert desk.rows("id, id") == [(1, 1)]


@both_formats
def test_the_snapshot_carries_where_the_rows_came_from(desk: Desk, table_format: str) -> None:
    report = desk.ingest("id\n1\n", "one.csv", key=("id",), format=table_format)
    (snapshot,) = desk.lake.history(desk.table)
    assert (snapshot.id, snapshot.source) == (report.snapshot, str(desk.folder / "one.csv"))
    assert (snapshot.notes["sha256"], snapshot.notes["bytes"]) == (hashlib.sha256(b"id\n1\n").hexdigest(), "5")


# ---- layout -----------------------------------------------------------------------------------------------------


def test_three_rows_make_one_small_file_per_partition(desk: Desk) -> None:
    content = "id,ts\n1,2026-01-01 10:00:00\n2,2026-01-01 11:00:00\n3,2026-01-02 11:00:00\n"
    desk.ingest(content, partition_by="days(ts)", sort_by="id DESC")
    info = desk.lake.describe(desk.table)
    assert info.partitioning == ("days(ts)",)
    assert info.current is not None and info.current.files_total == 2
    first_day = desk.lake.sql(f"SELECT id FROM {desk.table} WHERE ts < '2026-01-02'", engine="duckdb").rows()
    assert first_day == [(2,), (1,)], "rows are sorted in their file"


def test_buckets_and_no_layout_at_all_make_few_files(desk: Desk) -> None:
    content = "id,ts\n" + "".join(f"{number},2026-01-0{1 + number % 2} 10:00:00\n" for number in range(40))
    desk.ingest(content, partition_by="days(ts), bucket(4, id)")
    info = desk.lake.describe(desk.table)
    assert info.partitioning == ("days(ts)", "bucket(4, id)")
    assert info.current is not None and info.current.files_total == 8
    plain = desk.table + "_plain"
    desk.lake.ingest(desk.folder / "in.csv", into=plain)
    current = desk.lake.describe(plain).current
    assert current is not None and current.files_total == 1


@pytest.mark.parametrize("table_format", ["iceberg", "hudi"])
def test_a_partition_that_makes_no_sense_is_asked_wrongly(desk: Desk, table_format: str) -> None:
    # Hudi has no transforms; neither has anybody a column that is not there.
    expression = "days(ts)" if table_format == "hudi" else "days(nope)"
    with pytest.raises(LakeError, match="transform|nope"):
        desk.ingest("id,ts\n1,2026-01-01 10:00:00\n", format=table_format, partition_by=expression)
    assert not desk.exists()


# ---- bad input --------------------------------------------------------------------------------------------------

Spoil = Callable[[Path], object]


@pytest.mark.parametrize(
    ("name", "spoil", "said"),
    [
        pytest.param("empty.csv", lambda path: path.write_bytes(b""), "empty", id="empty"),
        pytest.param("head.csv", lambda path: path.write_text("id,v\n"), "head.csv", id="header only"),
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
        pytest.param("array.json", lambda path: path.write_text('[{"id": 1}]\n'), "array.json", id="json array"),
        pytest.param("fine.csv", lambda path: path.write_text("number,v\n1,a\n"), "id is not a column", id="no key"),
    ],
)
def test_bad_input_is_one_clear_line_and_no_table(
    command: Command, desk: Desk, name: str, spoil: Spoil, said: str
) -> None:
    desk.folder.mkdir()
    spoil(desk.folder / name)
    told = command("ingest", name, "--into", desk.table, "--key", "id", cwd=desk.folder)
    assert told.returncode in (1, 2)
    assert said in told.stderr.splitlines()[0]
    assert "Traceback" not in told.stderr and len(told.stderr.splitlines()) <= 2
    assert not desk.exists() and not desk.exists("__rejected")
