"""The log of a run: its own lines of the lake's log, and what Spark logged in the meantime."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from lakehouse.events.lines import RotatingLines
from lakehouse.runs.model import RunLogLine, RunRecord

#: Spark may log more; the end says most.
MOST_SPARK_LINES = 1000
#: The part of Spark's log that is searched, from its end.
_SEARCHED_BYTES = 16 << 20
#: A run that was killed has no end: Spark's lines until this long after its last own one are shown.
_AFTER_KILL = timedelta(minutes=1)
_SPARK_LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) ([A-Z]+) (.*)")
_TITLES = ("at", "level", "event", "run")


def run_log(record: RunRecord, own: RotatingLines, spark: Path) -> list[RunLogLine]:
    """The lines of a run, oldest first."""
    lines = list(_own_lines(record.id, own))
    return sorted(
        [*lines, *_spark_lines(spark, *_period(record, lines))], key=lambda line: datetime.fromisoformat(line.at)
    )


def _own_lines(run: str, log: RotatingLines) -> Iterator[RunLogLine]:
    marker = json.dumps(run)
    for text in log.lines():
        # Most lines are of other runs, and parsing is dear.
        if marker not in text:
            continue
        facts: dict[str, Any] = json.loads(text)
        if facts["run"] == run:
            yield RunLogLine(facts["at"], facts["event"], facts["level"], _in_words(facts))


def _in_words(facts: dict[str, Any]) -> str:
    """The facts of a line besides those that have a field of their own."""
    if "text" in facts:
        return str(facts["text"])
    return " ".join(f"{name}={value}" for name, value in facts.items() if name not in _TITLES and value not in ("", []))


def _period(record: RunRecord, own: list[RunLogLine]) -> tuple[datetime, datetime]:
    start = datetime.fromisoformat(record.started_at)
    if record.ended_at:
        return start, datetime.fromisoformat(record.ended_at) + timedelta(seconds=1)  # both are whole seconds
    if record.state == "running":
        return start, datetime.now(UTC)
    return start, max([start, *(datetime.fromisoformat(line.at) for line in own)]) + _AFTER_KILL


def _spark_lines(log: Path, start: datetime, end: datetime) -> list[RunLogLine]:
    """The newest lines of a period. What follows a line without a time of its own, as a stack trace does, belongs to it."""
    if not log.is_file():
        return []
    with log.open("rb") as content:
        content.seek(max(0, log.stat().st_size - _SEARCHED_BYTES))
        text = content.read().decode(errors="replace")
    lines = deque[RunLogLine](maxlen=MOST_SPARK_LINES)
    at, level = "", ""
    for line in text.splitlines():
        if stamped := _SPARK_LINE.match(line):
            at, level, line = stamped[1], stamped[2].lower(), stamped[3]
        if at and start <= datetime.fromisoformat(at) <= end:
            lines.append(RunLogLine(at, "spark", level, line))
    return list(lines)
