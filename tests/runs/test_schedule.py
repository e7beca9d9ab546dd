"""Which tables are built concurrently, and what happens when one fails or the run is interrupted."""

from __future__ import annotations

import threading

import pytest

from lakehouse.pipelines import Source, Table
from lakehouse.pipelines.model import FilesTable
from lakehouse.runs.schedule import MAX_CONCURRENT, independent_batches, run_concurrently


def table(name: str, *inputs: str | Source) -> Table:
    return Table(name, lambda *frames: frames[0], inputs=inputs)


def names(*tables: Table | FilesTable) -> list[list[str]]:
    return [[table.name for table in batch] for batch in independent_batches(tables)]


SOURCE = Source("raw.sales", lambda reading: None)  # type: ignore[arg-type, return-value]


def test_a_table_comes_after_those_that_it_reads() -> None:
    bronze, silver = table("bronze.sales", SOURCE), table("silver.sales", "bronze.sales")
    days, hours = table("gold.days", "silver.sales"), table("gold.hours", "silver.sales")
    growth = table("gold.growth", "gold.days")
    assert names(bronze, silver, days, hours, growth) == [
        ["bronze.sales"],
        ["silver.sales"],
        ["gold.days", "gold.hours"],
        ["gold.growth"],
    ]


def test_not_too_many_at_once() -> None:
    batches = names(*(table(f"gold.t{number}", "silver.sales") for number in range(MAX_CONCURRENT + 1)))
    assert [len(batch) for batch in batches] == [MAX_CONCURRENT, 1]


def test_watched_folders_are_read_one_after_the_other() -> None:
    folders = [FilesTable(f"crm.leads{number}", folder="path") for number in range(2)]
    assert names(*folders, table("gold.t", "silver.x")) == [["crm.leads0"], ["crm.leads1"], ["gold.t"]]


def test_all_is_done_and_the_first_failure_is_raised() -> None:
    done: list[str] = []
    met = threading.Barrier(2, timeout=60)

    def works() -> None:
        met.wait()  # both are under way at the same time
        done.append("works")

    def fails() -> None:
        met.wait()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run_concurrently([works, fails], lambda: done.append("gave up"))
    assert done == ["works"]


def test_interrupted_it_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    enough = threading.Event()

    def interrupted(self: threading.Thread, timeout: float | None = None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_concurrently([lambda: enough.wait(10) and None, lambda: None], enough.set)
    assert enough.is_set()
