"""Tables that do not need each other are made at the same time: one's last task leaves cores idle that another can use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

from lakehouse.pipelines.model import FilesTable, Table

#: More would only share the same cores and the same memory.
AT_ONCE = 3
_LOOK_EVERY_S = 0.2


def topological_batches(tables: Iterable[Table | FilesTable]) -> list[list[Table | FilesTable]]:
    """The tables in their order, those next to each other together that do not read one another."""
    found: list[list[Table | FilesTable]] = []
    for table in tables:
        last = found[-1] if found else []
        if _can_join(table, last):
            last.append(table)
        else:
            found.append([table])
    return found


def _can_join(table: Table | FilesTable, others: Sequence[Table | FilesTable]) -> bool:
    if not isinstance(table, Table) or not 0 < len(others) < AT_ONCE:
        return False
    names = {other.name for other in others}
    return all(isinstance(other, Table) for other in others) and not names & set(table.upstream)


def run_concurrently(work: Sequence[Callable[[], None]], give_up: Callable[[], None]) -> None:
    """Do all of it, each in a thread of its own; the first failure is raised when all have ended.

    Args:
        give_up: called if this thread is interrupted, so that the others end soon.
    """
    failures: list[BaseException] = []

    def do(each: Callable[[], None]) -> None:
        try:
            each()
        except BaseException as exc:  # noqa: BLE001 - carried over to the thread that waits, where it is raised
            failures.append(exc)

    threads = [threading.Thread(target=do, args=(each,), daemon=True) for each in work]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(_LOOK_EVERY_S)
    except BaseException:
        give_up()
        raise
    if failures:
        raise failures[0]
