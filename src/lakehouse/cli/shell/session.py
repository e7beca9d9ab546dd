"""The state of a shell: the lake, its branch, the moment it is read at, and what was set."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.cli.shell.display import Display
from lakehouse.cli.shell.parser import Sql, Statement, substitute
from lakehouse.cli.shell.running import RunningStatement
from lakehouse.cli.show import printed_rows
from lakehouse.core.dataclass import dataclass
from lakehouse.core.names import MAIN
from lakehouse.core.result import Result, Row

if TYPE_CHECKING:
    from lakehouse.client import RemoteLake
    from lakehouse.lake import Lake

#: Rows of one result that an interactive shell fetches; `\\set limit N` changes it, and 0 fetches all.
_ROWS = 1_000
LIMIT = "limit"


@dataclass
class Session:
    """One shell on one lake."""

    root: Lake | RemoteLake
    """The lake on main."""
    label: str
    """The name of the lake in the prompt."""
    display: Display
    branch: str = MAIN
    as_of: str = ""
    """Read every table as of this WHEN."""
    engine: str = ""
    timing: bool = False
    variables: dict[str, str] = field(default_factory=dict)
    last: Statement | None = None
    """The last statement that read or wrote the lake, for `\\watch` and `\\e`."""
    edited: str = ""
    """The text that the next prompt begins with: `\\e` sets it."""
    typed: str = ""
    """The line of the command that runs, with its quotes."""
    queries_file: Path | None = None
    """Where named queries are stored."""
    questions: list[str] = field(default_factory=list)
    """The questions of `ask` that were answered, to which the next one may refer."""
    ended: bool = False
    _lake: Lake | RemoteLake | None = field(default=None, repr=False)

    @property
    def lake(self) -> Lake | RemoteLake:
        """The lake on the session's branch."""
        return self.root if self._lake is None else self._lake

    def switch(self, branch: str) -> None:
        """Continue on another branch; raises NoSuchBranchError."""
        self._lake = None if branch == MAIN else self.root.branch(branch)
        self.branch = branch

    @property
    def limit(self) -> int | None:
        """Maximum number of rows to fetch; None: all."""
        given = self.variables.get(LIMIT, "")
        if given.isdigit():
            return int(given) or None
        return _ROWS if self.display.interactive else None

    def sql(self, statement: Sql) -> None:
        """Run a SQL statement and show its rows."""
        text = substitute(statement.text, self.variables)
        self.read(lambda limit: self.lake.sql(text, engine=self.engine or None, as_of=self.as_of, limit=limit))

    def read(self, fetch: Callable[[int | None], Result], whole: bool = False) -> None:
        """Show the rows of a result, which is fetched with a limit on its rows.

        Args:
            whole: show all rows, whatever the limit.
        """
        started, limit = time.monotonic(), None if whole else self.limit

        def work() -> tuple[Result, list[Row]]:
            result = fetch(None if limit is None else limit + 1)
            return result, printed_rows(result)

        result, rows = RunningStatement(work).result() if self.display.interactive else work()
        seconds = time.monotonic() - started
        self.display.rows(result.names, rows if limit is None else rows[:limit])
        cut = limit is not None and len(rows) > limit
        if cut:
            self.display.note(f"Only the first {limit} rows are shown; \\set limit N shows more, 0 shows all.")
        if changes := str(result.changes):
            self.display.note(f"{changes} · {result.engine}{self._time(seconds)}")
        elif self.display.interactive and result.names:
            count = f"{limit}+ rows" if cut else f"{len(rows)} row{'s' * (len(rows) != 1)}"
            self.display.note(f"{count} · {result.engine}{self._time(seconds)}")
        elif self.display.interactive:
            self.display.note(f"Done · {result.engine}{self._time(seconds)}")
        elif self.timing:
            self.display.note(f"{seconds:.3f} s")

    def _time(self, seconds: float) -> str:
        return f" · {seconds:.2f} s" if self.timing else ""
