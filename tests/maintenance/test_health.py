"""Health: a score from metadata alone, with reasons; figures for monitoring; the cache."""

from __future__ import annotations

import os
import shutil
import time

from tests.support.damaged_tables import (
    T,
    append,
    create,
    damaged,
    data_files,
    delete_by_position,
    maintainer,
    many_tables,
    opened,
    orphan_of,
)

from lakehouse.copies.findings import UNREACHABLE
from lakehouse.core.files import LOCAL, file_uri, local_path
from lakehouse.core.metadata_file import load_metadata
from lakehouse.core.requests import MaintainRequest
from lakehouse.lake import Lake
from lakehouse.maintenance.layout import layout_of
from lakehouse.maintenance.metrics import exposition


def test_a_fresh_table_has_the_full_score(lake: Lake) -> None:
    create(lake)
    assert lake.health(T)[0].score == 100
    append(lake, range(10))
    assert lake.health(T)[0].score == 100 and lake.health(T)[0].reasons == ()


def test_each_damage_has_its_reason_and_lowers_the_score(lake: Lake) -> None:
    create(lake)
    append(lake, range(10))
    delete_by_position(lake, [1])
    health = lake.health(T)[0]
    assert [(reason.what, reason.action) for reason in health.reasons] == [
        ("delete_files", "compact")
    ] and health.rows == 9
    for number in range(5):
        append(lake, [100 + number])
    worse = lake.health(T)[0]
    assert {reason.what for reason in worse.reasons} == {"delete_files", "small_files"} and worse.score < health.score
    late = maintainer(lake, 60, keep_snapshots=1).health().tables()[0]
    assert "snapshots" in {reason.what for reason in late.reasons} and late.score < worse.score


def test_the_score_needs_nothing_but_the_metadata_file(lake: Lake) -> None:
    damaged(lake, 6)
    expected = lake.health(T)
    for path in (lake.folder / "warehouse").rglob("*"):
        if path.suffix in (".avro", ".parquet"):
            path.unlink()
    assert lake.health(T) == expected


def test_a_table_that_cannot_be_read_does_not_hide_the_others(lake: Lake) -> None:
    damaged(lake, 1)
    create(lake, "shop.broken")
    local_path(opened(lake, "shop.broken").metadata_location).unlink()
    tables = {health.table: health for health in lake.health()}
    assert tables["shop.broken"].score == 0 and tables["shop.broken"].problem and tables[T].score == 100


def test_deep_health_tells_which_bytes_are_held_by_what(lake: Lake) -> None:
    damaged(lake, 3)
    lake.refs.branches.create("exp")
    append(lake, range(100), branch="exp")
    file = orphan_of(lake, b"x" * 5000)
    os.utime(file, (1, 1))
    lake.maintain(only=["remove_files"])  # finds it, and waits
    health = lake.health(T, deep=True)[0]
    assert health.deep["bytes"]["unreachable"] == 5000 and health.deep["branches"]["exp"] > 0
    assert health.deep["manifests"] == 3 and "unreachable" in {reason.what for reason in health.reasons}


def test_a_file_that_was_written_twice_is_counted(lake: Lake) -> None:
    damaged(lake, 3)
    assert (lake.health()[0].unnamed_files, lake.health()[0].reasons) == (0, ())
    file = data_files(lake)[0]
    shutil.copy(file, file.with_name(f"again-{file.name}"))
    health = lake.health()[0]
    assert (health.unnamed_files, health.unnamed_bytes) == (1, file.stat().st_size)
    assert [(reason.what, reason.action) for reason in health.reasons] == [("unnamed", "remove_files")]
    assert f'lake_table_unnamed_files{{table="{T}",format="iceberg"}} 1' in exposition([health])
    deep = [finding.where for finding in lake.verify(deep=True).findings if finding.kind == UNREACHABLE]
    assert deep == [file_uri(file.with_name(f"again-{file.name}"))]
    assert not lake.verify().findings, "a writer may be about to commit it"


def test_what_other_refs_and_old_snapshots_name_is_not_unnamed(lake: Lake) -> None:
    damaged(lake, 6)
    lake.refs.branches.create("exp")
    append(lake, range(10), branch="exp")
    lake.refs.branches.create_tag("v1")
    delete_by_position(lake, [1])
    lake.maintain(T)
    maintainer(lake, 60, keep_snapshots=1).run(MaintainRequest(only=("expire",)))
    append(lake, [7])
    assert lake.health()[0].unnamed_files == 0
    lake.refs.branches.drop("exp")
    assert lake.health()[0].unnamed_files == 1


def test_figures_are_in_the_format_of_prometheus(lake: Lake) -> None:
    damaged(lake, 2)
    text = exposition(lake.health())
    assert "# TYPE lake_table_score gauge" in text
    assert f'lake_table_files{{table="{T}",format="iceberg"}} 2' in text


def test_a_thousand_tables_take_moments(lake: Lake) -> None:
    many_tables(lake, 1000)
    begin = time.process_time()
    assert len(lake.health()) == 1001
    assert time.process_time() - begin < 2, "bench/maintain.py measures it exactly"


def test_the_layout_knows_how_many_files_the_last_compaction_left(lake: Lake) -> None:
    damaged(lake, 6)
    lake.maintain(T)
    append(lake, [7])
    layout = layout_of(load_metadata(opened(lake).metadata_location, LOCAL), 0)
    assert (layout.data_files, layout.min_files, layout.is_exact) == (2, 1, True)
