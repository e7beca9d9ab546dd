"""The request for a run, and the record of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.quality.model import Outcome


@dataclass(frozen=True)
class TableReport:
    """The changes of a run to one table."""

    table: str
    partitions: tuple[str, ...] = ()
    """The partitions it wrote; none for a table without partitions."""
    rows: int = 0
    rejected: int = 0
    snapshot: str = ""
    seconds: float = 0.0
    note: str = ""
    """Why the table was not written, if it was not."""


@dataclass(frozen=True)
class RunRecord:
    """The record of a run."""

    id: str
    pipeline: str
    state: str
    """running: in progress. nothing: no changes. published: on main. kept: finished, not published on request.
    dropped: its branch was dropped. blocked: a rule or check failed. failed: an error. killed: its process is gone."""
    branch: str
    started_at: str
    pid: int = 0
    process_started: str = ""
    """When the process started, as the system records it: a pid alone may belong to another process later."""
    ended_at: str = ""
    partitions: tuple[str, ...] = ()
    tables: tuple[TableReport, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    error: Mapping[str, Any] = field(default_factory=dict)
    author: str = ""
    message: str = ""
    started_from: str = ""
    """The hash of main when the branch was created."""
    commit: str = ""
    """The id of the publish in the log."""
    only: tuple[str, ...] = ()
    """The requested tables; none: all."""
    light: bool = False
    accept_code: bool = False

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables)

    @property
    def rejected(self) -> int:
        return sum(table.rejected for table in self.tables)


@dataclass(frozen=True)
class RunLogLine:
    """A line of the log of a run."""

    at: str
    source: str
    """`spark`, or the event of the lake's log that it is."""
    level: str
    text: str


#: The last line of a Python traceback.
_ERROR_LINE = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Warning)(?::|$)")


def reason(exc: BaseException) -> str:
    """An error that is not a LakeError, in one line; below it where it happened, if that is known."""
    lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
    first = f"{type(exc).__name__}: {lines[0]}" if lines else type(exc).__name__
    # Of a function that Spark called, the last line of the traceback says what is wrong.
    if "Traceback (most recent call last):" in str(exc):
        first = next((line for line in reversed(lines) if _ERROR_LINE.match(line)), first)
    return "\n".join([first, *getattr(exc, "__notes__", ())])
