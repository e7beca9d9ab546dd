"""The log of a run: which lines of the lake's log and of Spark's are its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse.events.lines import RotatingLines
from lakehouse.lake import Lake
from lakehouse.lake.run_log import MOST_SPARK_LINES, run_log
from lakehouse.runs.model import RunRecord

RECORD = RunRecord("mine", "sales", "published", "", "2026-01-14T09:00:00+00:00", ended_at="2026-01-14T09:00:05+00:00")
SPARK = """a line before any time
2026-01-14T08:59:59.900Z WARN Before: too early
2026-01-14T09:00:01.500Z ERROR Executor: it broke
java.lang.RuntimeException: it broke
\tat somewhere
2026-01-14T09:00:05.700Z WARN After: in the last second
2026-01-14T09:00:06.100Z WARN After: too late
"""


def written(folder: Path, *lines: dict[str, object]) -> RotatingLines:
    log = RotatingLines(folder / "lake.jsonl", 300)
    for line in lines:
        log.write({"level": "info", "event": "run_step", **line})
    return log


def test_steps_and_lines_of_spark_are_in_the_order_of_their_times(tmp_path: Path) -> None:
    (tmp_path / "spark.log").write_text(SPARK)
    own = written(
        tmp_path,
        {"at": "2026-01-14T09:00:00+00:00", "run": "mine", "text": "sales.raw"},
        {"at": "2026-01-14T09:00:01+00:00", "run": "yours", "text": "sees mine"},
        {"at": "2026-01-14T09:00:05+00:00", "run": "mine", "event": "run_ended", "rows": 7, "state": "published"},
    )
    assert (tmp_path / "lake.jsonl.1").is_file(), "the lines are in several files"
    assert [(line.source, line.level, line.text) for line in run_log(RECORD, own, tmp_path / "spark.log")] == [
        ("run_step", "info", "sales.raw"),
        ("spark", "error", "Executor: it broke"),
        ("spark", "error", "java.lang.RuntimeException: it broke"),
        ("spark", "error", "\tat somewhere"),
        ("run_ended", "info", "rows=7 state=published"),
        ("spark", "warn", "After: in the last second"),
    ]


def test_the_newest_lines_of_a_chatty_spark_are_kept(tmp_path: Path) -> None:
    (tmp_path / "spark.log").write_text("".join(f"2026-01-14T09:00:01.000Z WARN Loop: {n}\n" for n in range(1500)))
    lines = run_log(RECORD, written(tmp_path), tmp_path / "spark.log")
    assert len(lines) == MOST_SPARK_LINES
    assert lines[-1].text == "Loop: 1499"


def test_a_lake_without_logs_has_no_lines(tmp_path: Path) -> None:
    assert run_log(RECORD, written(tmp_path), tmp_path / "spark.log") == []


@pytest.mark.spark
def test_a_run_on_spark_has_its_warnings(shared_lake: Lake) -> None:
    def work(spark, branch):  # type: ignore[no-untyped-def]
        spark.sql("select sum(id) over (order by id) from range(3)").collect()

    record = shared_lake.transact("warned", work)
    lines = shared_lake.run_log(record.id)
    assert [line.source for line in lines if line.source in ("run_started", "run_ended")] == [
        "run_started",
        "run_ended",
    ]
    assert any("No Partition Defined for Window operation" in line.text for line in lines if line.source == "spark")
