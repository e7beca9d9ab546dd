"""Runs of a small pipeline, end to end on a real Spark: what they write, what they leave alone, when they refuse."""

from __future__ import annotations

import pytest
from tests.support.sales_pipeline import lake_with, without_spark

from lakehouse.core.errors import BadSettingError, RunBlockedError, RunConflictError
from lakehouse.lake import Lake
from lakehouse.runs.recovery import resume_request

pytestmark = pytest.mark.spark

MONDAY, TUESDAY = "2026-01-05", "2026-01-06"


def rows(lake: Lake, sql: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in lake.sql(sql).rows()]


def test_all_tables_are_made_and_published_at_once(shop_of) -> None:
    lake, pipeline, _ = shop_of({MONDAY: "1,tea,10,1\n2,mate,5,1\n", TUESDAY: "3,tea,20,1\n"})
    record = lake.run(pipeline)
    assert record.state == "published"
    assert [table.rows for table in record.tables] == [3, 3, 2, 2]
    assert rows(lake, f"select cast(date as string), amount, sales from {pipeline.name}.gold order by 1") == [
        (MONDAY, 15, 2),
        (TUESDAY, 20, 1),
    ]
    assert rows(lake, f"select growth from {pipeline.name}.growth order by date") == [(None,), (5,)]


def test_a_second_run_finds_nothing_to_do(shop_of) -> None:
    lake, pipeline, _ = shop_of({MONDAY: "1,tea,10,1\n"})
    lake.run(pipeline)
    before = lake.history(f"{pipeline.name}.silver")
    again = without_spark(lake).run(pipeline)
    assert again.state == "nothing"
    assert {table.note for table in again.tables} == {"nothing new"}
    assert lake.history(f"{pipeline.name}.silver") == before


def test_asked_for_by_name_a_partition_is_made_again_with_the_same_rows(shop_of) -> None:
    lake, pipeline, _ = shop_of({MONDAY: "1,tea,10,1\n", TUESDAY: "2,tea,4,1\n"})
    lake.run(pipeline)
    again = lake.run(pipeline, MONDAY)
    assert again.state == "published"
    assert again.tables[0].partitions == (MONDAY,)
    assert rows(lake, f"select id, amount from {pipeline.name}.silver order by id") == [(1, 10), (2, 4)]
    assert rows(lake, f"select growth from {pipeline.name}.growth order by date") == [(None,), (-6,)]


def test_only_the_partitions_of_changed_files_are_made_again(shop_of) -> None:
    lake, pipeline, folder = shop_of({MONDAY: "1,tea,10,1\n", TUESDAY: "2,tea,4,1\n", "2026-01-09": "9,tea,1,1\n"})
    lake.run(pipeline)
    (folder / f"{MONDAY}.csv").write_text("1,tea,10,1\n1,tea,12,2\n")
    record = lake.run(pipeline)
    assert [table.partitions for table in record.tables] == [
        (MONDAY,),
        (MONDAY,),
        (MONDAY,),
        (MONDAY, TUESDAY),  # which looks back at Monday
    ]
    assert rows(lake, f"select amount from {pipeline.name}.silver where id = 1") == [(12,)]
    assert rows(lake, f"select growth from {pipeline.name}.growth order by date") == [(None,), (-8,), (None,)]


def test_bad_rows_are_quarantined_with_their_reasons_and_come_back_when_mended(shop_of) -> None:
    lake, pipeline, folder = shop_of({MONDAY: "1,tea,10,1\n,tea,-5,1\n3,?,1,1\n"})
    record = lake.run(pipeline)
    silver = next(table for table in record.tables if table.table.endswith(".silver"))
    assert (silver.rows, silver.rejected) == (2, 1)
    assert {(outcome.name, outcome.severity, outcome.broken) for outcome in record.outcomes if outcome.broken} == {
        ("id_not_null", "quarantine", 1),
        ("amount_at_least_0", "quarantine", 1),
        ("item_is_named", "warn", 1),
    }
    rejected = rows(lake, f"select reason, row from {pipeline.name}.silver__rejected")
    assert rejected[0][0] == "id_not_null, amount_at_least_0"
    assert '"amount":-5' in str(rejected[0][1])
    (folder / f"{MONDAY}.csv").write_text("1,tea,10,1\n2,tea,5,1\n3,?,1,1\n")
    lake.run(pipeline)
    assert rows(lake, f"select count(*) from {pipeline.name}.silver__rejected") == [(0,)]
    assert rows(lake, f"select count(*) from {pipeline.name}.silver") == [(3,)]


def test_a_blocking_rule_leaves_everything_as_it_was_and_keeps_the_branch(shop_of) -> None:
    lake, pipeline, folder = shop_of({MONDAY: "1,tea,10,1\n"})
    lake.run(pipeline)
    (folder / f"{TUESDAY}.csv").write_text("2,forbidden,1,1\n")
    with pytest.raises(RunBlockedError, match="not_forbidden"):
        lake.run(pipeline)
    assert rows(lake, f"select count(*) from {pipeline.name}.bronze") == [(1,)]
    record = lake.runs()[0]
    assert record.state == "blocked"
    assert "not_forbidden" in str(record.error["message"])
    (shown,) = [row for outcome in record.outcomes if outcome.blocks for row in outcome.rows]
    assert '"item":"forbidden"' in shown, "the rows that failed can be looked at"
    on_branch = lake._components.tables.on(record.branch).formats["iceberg"]
    assert on_branch.describe(pipeline.table(f"{pipeline.name}.bronze").table_name).current.rows_total == 2
    (folder / f"{TUESDAY}.csv").write_text("2,allowed,1,1\n")
    assert lake.run(pipeline).state == "published"


def test_a_blocked_run_goes_on_where_it_was_and_checks_again(shop_of) -> None:
    lake, pipeline, folder = shop_of({MONDAY: "1,tea,10,1\n2,forbidden,1,1\n"})
    with pytest.raises(RunBlockedError):
        lake.run(pipeline)
    halted = lake.runs()[0]
    assert [table.table for table in halted.tables] == [f"{pipeline.name}.bronze"]
    runner = lake._components.runner()
    with pytest.raises(RunBlockedError, match="not_forbidden"):
        runner.run(pipeline, resume_request(halted))
    (folder / f"{MONDAY}.csv").write_text("1,tea,10,1\n2,allowed,1,1\n")
    done = runner.run(pipeline, resume_request(lake.run_record(halted.id)))
    assert (done.state, done.id) == ("published", halted.id)
    assert rows(lake, f"select item from {pipeline.name}.silver order by id") == [("tea",), ("allowed",)]
    snapshot = lake.history(f"{pipeline.name}.silver")[-1]
    assert snapshot.notes["run"] == halted.id and snapshot.notes["author"]


def test_unpublished_work_is_seen_only_on_its_branch(shop_of) -> None:
    lake, pipeline, _ = shop_of({MONDAY: "1,tea,10,1\n"})
    record = lake.run(pipeline, publish=False)
    assert record.state == "kept"
    assert not any(str(info.name).startswith(f"{pipeline.name}.") for info in lake.tables())
    assert lake.sql(f"select amount from {pipeline.name}.silver", branch=record.branch).rows() == [(10,)]
    assert lake.refs.branches.merge(record.branch).entry
    assert lake.run_record(record.id).state == "published"
    assert rows(lake, f"select amount from {pipeline.name}.silver") == [(10,)]
    assert record.branch not in lake.branches()


def test_unpublished_work_that_others_overtook_stays_on_its_branch(shop_of) -> None:
    lake, pipeline, _ = shop_of({MONDAY: "1,tea,10,1\n"})
    lake.run(pipeline)
    record = lake.run(pipeline, MONDAY, publish=False)
    lake.sql(f"alter table {pipeline.name}.silver set tblproperties ('x' = '1')")
    with pytest.raises(RunConflictError, match=record.id):
        lake.refs.branches.merge(record.branch)
    assert record.branch in lake.branches()
    lake.refs.branches.drop(record.branch)
    assert lake.run_record(record.id).state == "dropped"
    assert record.branch not in lake.branches()


def test_a_run_that_others_overtook_is_done_again_on_their_state(shop_of) -> None:
    lake, pipeline, _ = shop_of({MONDAY: "1,tea,10,1\n"})
    lake.run(pipeline)
    overtaken = []

    def overtake(text: str) -> None:
        if text == "Publishing" and not overtaken:
            overtaken.append(text)
            lake.sql(f"alter table {pipeline.name}.bronze set tblproperties ('x' = '1')")

    record = lake.run(pipeline, MONDAY, progress=overtake)
    assert overtaken
    assert record.state == "published"
    assert lake.describe(f"{pipeline.name}.bronze").properties["x"] == "1"


def test_a_run_with_a_known_id_is_done_once(shop_of) -> None:
    lake, pipeline, folder = shop_of({MONDAY: "1,tea,10,1\n"})
    name = f"once_{pipeline.name[:20]}"
    first = lake.run(pipeline, id=name)
    (folder / f"{TUESDAY}.csv").write_text("2,tea,4,1\n")
    assert lake.run(pipeline, id=name) == first


def test_a_setting_that_the_pipeline_does_not_know_is_refused(shop_of) -> None:
    lake, pipeline, _ = shop_of({MONDAY: "1,tea,10,1\n"})
    with pytest.raises(BadSettingError, match="pth") as caught:
        lake_with(lake, {pipeline.name: {"pth": "x"}}).run(pipeline)
    assert "path" in caught.value.hint
