"""What is asked of a run, and what is kept of it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from lakehouse.quality.model import Outcome

#: running: not over. nothing: there was nothing new. published: it is on main. kept: asked not to publish.
#: dropped: its branch was dropped.
#: blocked: a rule or check said no. failed: something broke. killed: its process is gone.
STATES = ("running", "nothing", "published", "kept", "dropped", "blocked", "failed", "killed")


@dataclass(frozen=True)
class TableReport:
    """What a run did to one table."""

    table: str
    partitions: tuple[str, ...] = ()
    """The partitions it wrote; none for a table that has no such."""
    rows: int = 0
    rejected: int = 0
    snapshot: str = ""
    seconds: float = 0.0
    note: str = ""
    """Why nothing was done, if nothing was."""


@dataclass(frozen=True)
class RunRecord:
    """All that is known of a run afterwards."""

    id: str
    pipeline: str
    state: str
    branch: str
    started_at: str
    pid: int = 0
    ended_at: str = ""
    partitions: tuple[str, ...] = ()
    tables: tuple[TableReport, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    error: Mapping[str, Any] = field(default_factory=dict)
    author: str = ""
    message: str = ""
    started_from: str = ""
    """The hash of what main was when the branch was made."""
    commit: str = ""
    """The log's entry of the publish."""
    only: tuple[str, ...] = ()
    """The tables that were asked for; none: all."""
    light: bool = False

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables)

    @property
    def rejected(self) -> int:
        return sum(table.rejected for table in self.tables)


def reason(exc: BaseException) -> str:
    """What an error that is none of ours says, in one line."""
    lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
    return f"{type(exc).__name__}: {lines[0]}" if lines else type(exc).__name__


def new_run_id() -> str:
    """Sorts by time, and no two runs have the same."""
    return datetime.now(UTC).strftime("%Y%m%d_%H%M%S_") + secrets.token_hex(3)
