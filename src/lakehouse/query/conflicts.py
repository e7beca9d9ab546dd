"""Try a statement again that lost a race: others committed to its table between its first read and its commit.

Such a statement has written nothing, so it is run anew on the new rows. A long statement would lose to short ones again and
again, so from its second attempt on it holds the lock of the table, for which ingests and the other losers wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from lakehouse.core.cancel import pause
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import CommitConflictError, EngineError
from lakehouse.core.requests import QueryRequest
from lakehouse.core.result import Result
from lakehouse.core.statement import Statement
from lakehouse.process.files import locked_within, table_lock
from lakehouse.query.affected import effects_of


@dataclass(frozen=True)
class ConflictRetries:
    """How often and how long statements are tried again."""

    folder: Path
    """The folder with the locks of tables."""
    attempts: int = 10
    seconds: float = 120.0
    """After this time no new attempt begins."""
    turn_s: float = 15.0
    """The longest wait for a table's lock: an ingest holds it from its start, and most of its time is no conflict."""
    first_pause_s: float = 0.05
    longest_pause_s: float = 2.0

    def run(self, statement: Statement, request: QueryRequest, work: Callable[[], Result]) -> Result:
        """Run the statement; CommitConflictError if others were faster in every attempt.

        Args:
            work: runs the whole statement once. It raises CommitConflictError only if nothing was committed.
        """
        try:
            return work()
        except CommitConflictError:
            # An ingest repeats more than its statement; what changes rows is one commit, of all its rows or none.
            if request.ingest_into or not effects_of(statement.tree):
                raise
        return self._again(statement, work)

    def _again(self, statement: Statement, work: Callable[[], Result]) -> Result:
        started, attempt = time.monotonic(), 1
        while attempt < self.attempts and time.monotonic() - started < self.seconds:
            self._pause(attempt)
            attempt += 1
            with self._turn(statement):
                try:
                    return work()
                except CommitConflictError:
                    continue
        target = next((str(use.name) for use in statement.uses if use.is_target), "the table")
        raise CommitConflictError(
            f"Other writers changed {target} during all {attempt} attempts of the statement.",
            "Nothing was written. Run it again when fewer writers are active.",
        )

    def _pause(self, attempt: int) -> None:
        import random  # not for the statements that meet nobody

        longest = min(self.first_pause_s * 2**attempt, self.longest_pause_s)
        if not pause(random.uniform(0, longest)):  # noqa: S311 - losers must not meet again, nothing is secret
            raise EngineError("The statement was canceled; nothing was committed.")

    def _turn(self, statement: Statement) -> AbstractContextManager[bool]:
        target = next(use.name for use in statement.uses if use.is_target)
        self.folder.mkdir(parents=True, exist_ok=True)
        return locked_within(table_lock(self.folder, target), self.turn_s)
