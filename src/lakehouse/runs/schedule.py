"""Build independent tables concurrently: the last task of one leaves cores idle that another can use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

from lakehouse.pipelines.model import FilesTable, Table

#: More tables at once only share the same cores and memory.
MAX_CONCURRENT = 3
_JOIN_INTERVAL_S = 0.2


def independent_batches(tables: Iterable[Table | FilesTable]) -> list[list[Table | FilesTable]]:
    """The tables in their declared order; neighbours that do not read one another form a batch."""
    batches: list[list[Table | FilesTable]] = []
    for table in tables:
        last = batches[-1] if batches else []
        if _can_join(table, last):
            last.append(table)
        else:
            batches.append([table])
    return batches


def _can_join(table: Table | FilesTable, others: Sequence[Table | FilesTable]) -> bool:
    if not isinstance(table, Table) or not 0 < len(others) < MAX_CONCURRENT:
        return False
    names = {other.name for other in others}
    return all(isinstance(other, Table) for other in others) and not names & set(table.upstream)


def run_concurrently(tasks: Sequence[Callable[[], None]], cancel: Callable[[], None]) -> None:
    """Run each task in a thread of its own; raise the first failure when all have ended.

    Args:
        cancel: called if this thread is interrupted, so that the tasks end soon.
    """
    failures: list[BaseException] = []

    def run(task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as exc:  # noqa: BLE001 - raised in the waiting thread
            failures.append(exc)

    threads = [threading.Thread(target=run, args=(task,), daemon=True) for task in tasks]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(_JOIN_INTERVAL_S)
    except BaseException:
        cancel()
        raise
    if failures:
        raise failures[0]
