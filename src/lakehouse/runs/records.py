"""The runs that there were: one small file each, written whole."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from lakehouse.core.errors import NoSuchRunError
from lakehouse.core.names import nearest
from lakehouse.quality.model import Outcome
from lakehouse.runs.model import RunRecord, TableReport

T = TypeVar("T")


class RunLog:
    """The records of a lake's runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(self, record: RunRecord) -> RunRecord:
        """Write a record down, complete or not at all."""
        self._folder.mkdir(parents=True, exist_ok=True)
        written = self._folder / f".{record.id}.{os.getpid()}"
        written.write_text(json.dumps(asdict(record), indent=1))
        written.replace(self._folder / f"{record.id}.json")
        return record

    def find(self, run: str) -> RunRecord | None:
        file = self._folder / f"{run}.json"
        return _seen(_read(file)) if file.is_file() else None

    def get(self, run: str) -> RunRecord:
        """A run by its id, or by the beginning of it if that is clear."""
        names = [file.stem for file in self._folder.glob("*.json")]
        matching = [name for name in names if name == run] or [name for name in names if name.startswith(run)]
        if len(matching) != 1:
            near = ", ".join(matching or nearest(run, names)) or "none yet"
            raise NoSuchRunError(f"There is no run {run!r}.", f"Nearest: {near}. All of them: lake runs")
        return _seen(_read(self._folder / f"{matching[0]}.json"))

    def all(self) -> list[RunRecord]:
        """Every run, the newest first."""
        found = [_seen(_read(file)) for file in self._folder.glob("*.json")]
        return sorted(found, key=lambda record: (record.started_at, record.id), reverse=True)


def _read(file: Path) -> RunRecord:
    told: dict[str, Any] = json.loads(file.read_text())
    tables = tuple(_made(TableReport, table) for table in told.pop("tables"))
    outcomes = tuple(_made(Outcome, outcome) for outcome in told.pop("outcomes"))
    return _made(RunRecord, {**told, "tables": tables, "outcomes": outcomes})


def _made(kind: type[T], told: dict[str, Any]) -> T:
    """What was written down, by this version or another: facts that only the other knows are left away."""
    known = {part.name for part in fields(kind)}  # type: ignore[arg-type] # T is one of the three above
    return kind(
        **{key: tuple(value) if isinstance(value, list) else value for key, value in told.items() if key in known}
    )


def _seen(record: RunRecord) -> RunRecord:
    """A run whose process has gone without a word was killed."""
    gone = record.state == "running" and not _alive(record.pid)
    return replace(record, state="killed") if gone else record


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
