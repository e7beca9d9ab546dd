"""Which modules of ours a command crosses: those in which one of our functions runs, in the order of the first call.

python -m tests.support.call_trace cli/sql.py:sql sql "select 1"     # prints the modules as one line of JSON after the output
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import lakehouse

_FOLDER = str(lakehouse.__file__).removesuffix("__init__.py")
#: The code of a function has it; that of a class body has not.
_IS_FUNCTION = 0x1
#: Opening the lake, which every command does alike: a property of lakehouse/cli/context.py.
_OPENING = "Context.lake"


class Trace:
    """Records modules from the first call of a function on.

    Not recorded: what runs while a module is imported or the lake is opened, threads that began before, methods that
    `dataclass` generates, and `core/`, which holds values and protocols.
    """

    def __init__(self, begin: str) -> None:
        """
        Args:
            begin: where the path begins, as `cli/sql.py:sql`.
        """
        self._begin, self._begun = begin, False
        self._skipped = threading.local()
        self.modules: list[str] = []

    @contextmanager
    def recording(self, threads: bool = False) -> Iterator[Trace]:
        """Record this thread and the threads that it starts: all of them, or those after `begin`."""
        sys.setprofile(self._profile)
        if threads:
            threading.setprofile(self._profile)
        try:
            yield self
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]

    def _profile(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if code.co_name == "<module>" or code.co_qualname == _OPENING:
            step = {"call": 1, "return": -1}.get(event, 0)
            self._skipped.depth = getattr(self._skipped, "depth", 0) + step
        elif event == "call" and code.co_filename.startswith(_FOLDER):
            self._record(code, code.co_filename.removeprefix(_FOLDER))

    def _record(self, code: CodeType, module: str) -> None:
        if f"{module}:{code.co_qualname}" == self._begin and not self._begun:
            self._begun = True
            threading.setprofile(self._profile)
        skipped = getattr(self._skipped, "depth", 0) or module.startswith("core/") or module in self.modules
        if self._begun and not skipped and code.co_flags & _IS_FUNCTION:
            self.modules.append(module)


def trace_lake(begin: str, *arguments: str, folder: Path, home: Path) -> list[str]:
    """The modules that `lake ARGUMENTS` crosses in a process of its own, as the real command."""
    root = Path(__file__).parents[2]
    path = os.pathsep.join([_FOLDER.removesuffix("lakehouse/"), str(root), str(folder)])
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.call_trace", begin, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "LAKE_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    modules: list[str] = json.loads(done.stdout.splitlines()[-1])
    return modules


def main(begin: str, arguments: list[str]) -> Any:
    """Run `lake` as its script does and print the modules; returns the exit code."""
    from lakehouse.cli import main as lake

    sys.argv = ["lake", *arguments]
    trace, code = Trace(begin), None
    with trace.recording():
        try:
            lake()
        except SystemExit as exc:
            code = exc.code
    sys.stdout.write(json.dumps(trace.modules) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
