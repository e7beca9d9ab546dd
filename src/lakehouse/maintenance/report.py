"""What a maintenance did, or would do."""

from __future__ import annotations

from dataclasses import asdict, field
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.maintenance.sweep import SweepReport


@dataclass(frozen=True)
class Action:
    """One step for one table."""

    table: str
    action: str
    """compact, rewrite_manifests, expire, forget, cluster."""
    state: str
    """planned: by a dry run. done. skipped: left alone, with the reason. failed: an error; the table is as it was."""
    detail: str = ""
    """What was done, or why it was not."""
    engine: str = ""
    """local or spark."""
    files_before: int = 0
    files_after: int = 0
    bytes: int = 0
    """Bytes of the files that were rewritten."""
    snapshots: int = 0
    """Snapshots that expired."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class MaintenanceReport:
    """What was done to all tables, and which files were removed."""

    actions: tuple[Action, ...] = ()
    sweep: SweepReport = field(default_factory=SweepReport)
    dry_run: bool = False

    @property
    def failed(self) -> bool:
        return any(action.state == "failed" for action in self.actions)

    def as_dict(self) -> dict[str, Any]:
        return {"dry_run": self.dry_run, "actions": [action.as_dict() for action in self.actions], **asdict(self.sweep)}
