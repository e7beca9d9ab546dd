"""Where in the user's code a table's build failed: table, function, file, line, and the lines around it."""

from __future__ import annotations

import linecache
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lakehouse.core.errors import LakeError, PipelineError
from lakehouse.runs.model import reason

_LINES_AROUND = 2
_NOT_THE_USERS = (sys.prefix, sys.base_prefix, str(Path(__file__).parents[2]), "<")
#: Folders of installed packages, which need not be below sys.prefix: those of the user, of PYTHONPATH, of another environment.
_INSTALLED = {"site-packages", "dist-packages"}
#: A frame in the text of an error: Spark's Python workers hand over their traceback as text.
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>\S+)')


@contextmanager
def user_code_errors(pipeline: str, run_id: str) -> Iterator[None]:
    """Raise an error of a transformation, source or check as a PipelineError that says where it is."""
    try:
        yield
    except LakeError:
        raise
    except Exception as exc:
        hint = f"lake runs{f' show {run_id}' if run_id else ''}; LAKE_DEBUG=1 shows the whole trace."
        raise PipelineError(f"The run of {pipeline} failed: {reason(exc)}", hint) from exc


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
    called = [(frame.filename, frame.lineno or 0, frame.name) for frame in traceback.extract_tb(exc.__traceback__)]
    called += [(frame["file"], int(frame["line"]), frame["name"]) for frame in _FRAME.finditer(str(exc))]
    frames = [frame for frame in called if _is_the_users(frame[0])]
    while hasattr(function, "func"):
        function = function.func
    code = getattr(function, "__code__", None)
    own = (code.co_filename, code.co_firstlineno, code.co_name) if code else ("", 0, str(function))
    file, line, name = frames[-1] if frames else own
    return "\n".join([f"{table}: {name} in {file}, line {line}", *_lines(file, line)])


def _is_the_users(file: str) -> bool:
    return not file.startswith(_NOT_THE_USERS) and _INSTALLED.isdisjoint(Path(file).parts)


def _lines(file: str, line: int) -> Iterator[str]:
    """The lines around a line of a file."""
    for number in range(max(line - _LINES_AROUND, 1), line + _LINES_AROUND + 1):
        if text := linecache.getline(file, number).rstrip():
            yield f"{'>' if number == line else ' '} {number:4} | {text}"
