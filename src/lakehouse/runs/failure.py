"""Where in the user's code a table's build failed: table, function, file, line, and the lines around it."""

from __future__ import annotations

import linecache
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lakehouse.core.errors import LakeError

_LINES_AROUND = 2
_NOT_THE_USERS = (sys.prefix, sys.base_prefix, str(Path(__file__).parents[2]), "<")


@contextmanager
def located(table: str, function: Any) -> Iterator[None]:
    """Add to an error of the user's code where it came from.

    Args:
        function: the function that builds the table. Spark computes rows later than the function runs, so an error may have no frame of it.
    """
    try:
        yield
    except LakeError:
        raise
    except Exception as exc:
        if not getattr(exc, "__notes__", None):
            exc.add_note(_place(exc, table, function))
        raise


def _place(exc: Exception, table: str, function: Any) -> str:
    frames = [
        (frame.filename, frame.lineno or 0, frame.name)
        for frame in traceback.extract_tb(exc.__traceback__)
        if not frame.filename.startswith(_NOT_THE_USERS)
    ]
    while hasattr(function, "func"):
        function = function.func
    code = getattr(function, "__code__", None)
    own = (code.co_filename, code.co_firstlineno, code.co_name) if code else ("", 0, str(function))
    file, line, name = frames[-1] if frames else own
    return "\n".join([f"{table}: {name} in {file}, line {line}", *_lines(file, line)])


def _lines(file: str, line: int) -> Iterator[str]:
    """The lines around a line of a file."""
    for number in range(max(line - _LINES_AROUND, 1), line + _LINES_AROUND + 1):
        if text := linecache.getline(file, number).rstrip():
            yield f"{'>' if number == line else ' '} {number:4} | {text}"
