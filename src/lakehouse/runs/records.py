"""Run records: one JSON file each, replaced atomically."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lakehouse.core.errors import NoSuchRunError
from lakehouse.core.names import nearest
from lakehouse.process.files import write_whole
from lakehouse.process.pids import start_time
from lakehouse.quality.model import Outcome
from lakehouse.runs.model import RunRecord, TableReport

if TYPE_CHECKING:
    from lakehouse.tables.report import QualityRun

T = TypeVar("T")


class RunLog:
    """The records of a lake's runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(self, record: RunRecord) -> RunRecord:
        """Write a record, complete or not at all."""
        write_whole(self._folder / f"{record.id}.json", json.dumps(asdict(record), indent=1))
        return record

    def find(self, run: str) -> RunRecord | None:
        file = self._folder / f"{run}.json"
        return _with_liveness(_read(file)) if file.is_file() else None

    def get(self, run: str) -> RunRecord:
        """A run by its id or a unique prefix of it."""
        names = [file.stem for file in self._folder.glob("*.json")]
        matching = [name for name in names if name == run] or [name for name in names if name.startswith(run)]
        if len(matching) != 1:
            near = ", ".join(matching or nearest(run, names))
            hint = f"Did you mean {near}? " if near else ""
            raise NoSuchRunError(f"There is no run {run!r}.", f"{hint}All of them: lake runs")
        return _with_liveness(_read(self._folder / f"{matching[0]}.json"))

    def all(self) -> list[RunRecord]:
        """Every run, newest first."""
        records = [_with_liveness(_read(file)) for file in self._folder.glob("*.json")]
        return sorted(records, key=lambda record: (record.started_at, record.id), reverse=True)


def _read(file: Path) -> RunRecord:
    data: dict[str, Any] = json.loads(file.read_text())
    tables = tuple(_parse(TableReport, table) for table in data.pop("tables"))
    outcomes = tuple(_parse(Outcome, _upgraded(outcome)) for outcome in data.pop("outcomes"))
    return _parse(RunRecord, {**data, "tables": tables, "outcomes": outcomes})


def _upgraded(outcome: dict[str, Any]) -> dict[str, Any]:
    """An outcome in today's fields: older releases called `detail` `told`."""
    return {"detail": outcome.get("told", ""), **outcome}


def _parse(kind: type[T], data: dict[str, Any]) -> T:
    """A record of this release or another; fields that this release does not know are ignored."""
    known = {part.name for part in fields(kind)}  # type: ignore[arg-type] # T is one of the three above
    return kind(
        **{key: tuple(value) if isinstance(value, list) else value for key, value in data.items() if key in known}
    )


def _with_liveness(record: RunRecord) -> RunRecord:
    """A running run whose process is gone was killed."""
    gone = record.state == "running" and not _alive(record.pid, record.process_started)
    return replace(record, state="killed") if gone else record


def _alive(pid: int, started: str) -> bool:
    """Whether the process still runs; a record of an older release has only its pid."""
    if started:
        return start_time(pid) == started
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def quality_runs(records: Sequence[RunRecord], table: str) -> list[QualityRun]:
    """What the rules and checks of a table found in each run, oldest first."""
    from lakehouse.tables.report import QualityRun

    runs = []
    for record in reversed(records):
        built = next((report for report in record.tables if report.table == table), None)
        outcomes = tuple(outcome for outcome in record.outcomes if outcome.table == table)
        if outcomes or (built and built.rows + built.rejected):
            rows, rejected = (built.rows, built.rejected) if built else (0, 0)
            runs.append(QualityRun(record.id, record.started_at, record.state, rows, rejected, outcomes))
    return runs
