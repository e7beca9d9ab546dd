"""What people do with branches, tags and the log, put together from a lake's parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lakehouse.core.ports import CanBranch
from lakehouse.core.refs import Change
from lakehouse.engines.duckdb import DuckDB
from lakehouse.formats.iceberg import IcebergTables
from lakehouse.runs.branches import Branches
from lakehouse.runs.history import Log
from lakehouse.runs.log import RunLog
from lakehouse.runs.publish import Publisher
from lakehouse.serve.branch_diff import tell_changes


@dataclass(frozen=True)
class Refs:
    """The branches, tags and log of a lake, and the way to publish."""

    catalog: CanBranch
    iceberg: IcebergTables
    duckdb: DuckDB
    runs: RunLog
    author: str = ""
    """Who is written down with what is done."""
    hook: Sequence[str] = ()
    protected: Sequence[str] = ()

    @cached_property
    def publisher(self) -> Publisher:
        return Publisher(self.catalog, self._told, self.hook, self.protected)

    @cached_property
    def branches(self) -> Branches:
        return Branches(self.catalog, self.publisher, self.runs, self.iceberg, self.duckdb, self.author)

    @cached_property
    def log(self) -> Log:
        return Log(self.catalog, self.iceberg, self.publisher, self.author)

    def _told(self, changes: Sequence[Change]) -> list[dict[str, Any]]:
        return [change.as_dict() for change in tell_changes(self.iceberg, changes)]
