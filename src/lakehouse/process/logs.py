"""Log files of child processes: rotation, and the line that explains a failure."""

from __future__ import annotations

import re
from pathlib import Path
from typing import IO

_MAX_BYTES = 20_000_000
_TAIL_BYTES = 50_000
_ERROR = re.compile(r"\bERROR\b|\bFATAL\b|Exception\b|\w*Error\b")
#: Frames of a Java stack trace, and the headline of a JVM that does not start: its reason is the line after.
_NO_REASON = ("at ", "... ", "Error occurred during initialization of VM")
_NO_OUTPUT = "it wrote nothing to its log."


def open_log(log: Path) -> IO[bytes]:
    """Open a log to append to; one that has grown too large is renamed to `.log.1` first."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log_size(log) > _MAX_BYTES:
        log.replace(log.with_suffix(".log.1"))
    return log.open("ab")


def log_size(log: Path) -> int:
    """The size in bytes: the offset at which later output begins."""
    return log.stat().st_size if log.is_file() else 0


def failure_line(log: Path, since: int = 0) -> str:
    """The last line after an offset that names an error, else the last line that is a sentence."""
    if not log.is_file():
        return _NO_OUTPUT
    with log.open("rb") as file:
        file.seek(max(since, log.stat().st_size - _TAIL_BYTES))
        lines = [line.strip() for line in file.read().decode(errors="replace").splitlines()]
    sentences = [line for line in lines if line.count(" ") >= 2 and not line.startswith(_NO_REASON)]
    errors = [line for line in sentences if _ERROR.search(line)]
    return (errors or sentences or [_NO_OUTPUT])[-1][:300]
