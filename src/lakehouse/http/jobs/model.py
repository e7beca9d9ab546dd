"""The record of a job."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import field
from typing import Any

from lakehouse.core.dataclass import dataclass

QUEUED, RUNNING, SUCCEEDED, FAILED, CANCELED = "queued", "running", "succeeded", "failed", "canceled"
ENDED = (SUCCEEDED, FAILED, CANCELED)


@dataclass(frozen=True)
class Job:
    """One job."""

    id: str
    kind: str
    """ingest, run, resume, maintain or verify."""
    owner: str
    """The id of the caller who started it."""
    state: str
    created_at: str
    request: dict[str, Any]
    started_at: str = ""
    ended_at: str = ""
    progress: str = ""
    """The last step."""
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    namespaces: tuple[str, ...] = field(default=())
    """The namespaces that it concerns."""
    branch: str = ""

    @classmethod
    def from_row(cls, row: sqlite3.Row) -> Job:
        """A stored record."""
        return cls(
            row["id"],
            row["kind"],
            row["owner"],
            row["state"],
            row["created_at"],
            json.loads(row["request"]),
            row["started_at"] or "",
            row["ended_at"] or "",
            row["progress"] or "",
            json.loads(row["result"]) if row["result"] else None,
            json.loads(row["error"]) if row["error"] else None,
            tuple(filter(None, row["namespaces"].split(","))),
            row["branch"],
        )

    def shown(self) -> dict[str, Any]:
        """What clients see: everything but how the server stores its files."""
        names = self.request.get("names", {})
        request = {name: value for name, value in self.request.items() if name not in ("folder", "names")}
        if names:
            request["sources"] = list(names.values())
        return {
            "id": self.id,
            "kind": self.kind,
            "state": self.state,
            "created_at": self.created_at,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "progress": self.progress,
            "request": request,
            "result": self.result,
            "error": self.error,
        }
