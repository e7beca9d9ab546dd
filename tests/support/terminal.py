"""LakeShell in a real terminal (a pseudo-terminal and an emulated screen)."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import TracebackType

import pexpect
import pyte

LAKE = str(Path(sys.executable).parent / "lake")
PROMPT = " main>"
UP, RIGHT, TAB, CTRL_C, CTRL_D, CTRL_R = "\x1b[A", "\x1b[C", "\t", "\x03", "\x04", "\x12"
#: After this, what was expected will not come; on an idle machine it comes within a second.
LIMIT_S = 120.0
_QUIET_S = 0.06
#: After this, a shell that prints without end is not read any further.
_MOST_S = 3.0


class Terminal:
    """A shell and its screen. `text` is what a person would see, with what has scrolled away."""

    def __init__(self, home: Path, folder: Path, columns: int = 80, env: dict[str, str] | None = None) -> None:
        environment = {
            **os.environ,
            "LAKE_HOME": str(home),
            "LAKE_SHELL__HISTORY": str(folder / "history"),
            "TERM": "xterm-256color",
            "PROMPT_TOOLKIT_NO_CPR": "1",  # the emulator does not answer where its cursor is
            "PAGER": "cat",
            "COLUMNS": "",  # a terminal has its own size, also where pytest was started with one
            "LINES": "",
            **(env or {}),
        }
        self.screen = pyte.HistoryScreen(columns, 30, history=10_000, ratio=1.0)
        self._stream = pyte.Stream(self.screen)
        self._above: list[str] = []
        self.recorded: list[tuple[float, str]] = []
        """What the shell printed, and when."""
        self.process = pexpect.spawn(
            LAKE,
            ["shell"],
            env=environment,
            dimensions=(30, columns),
            encoding="utf-8",
            cwd=str(folder),
            timeout=LIMIT_S,
        )

    def __enter__(self) -> Terminal:
        self.wait(PROMPT)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.process.close(force=True)
        except pexpect.ExceptionPexpect:  # it waits 0.1 s for what it has killed, and a busy machine takes longer
            self.process.wait()

    @property
    def text(self) -> str:
        # Lines that have scrolled away do not change any more.
        for line in islice(self.screen.history.top, len(self._above), None):
            self._above.append("".join(line[x].data for x in range(self.screen.columns)).rstrip())
        return "\n".join([*self._above, *(line.rstrip() for line in self.screen.display)])

    def read(self, seconds: float = _QUIET_S) -> None:
        """Take in what the shell prints, until it has been quiet for a moment."""
        deadline = time.monotonic() + _MOST_S
        while time.monotonic() < deadline:
            try:
                printed = self.process.read_nonblocking(65_536, timeout=seconds)
            except (pexpect.TIMEOUT, pexpect.EOF):
                return
            self.recorded.append((time.monotonic(), printed))
            self._stream.feed(printed)

    def wait(self, text: str, seconds: float = LIMIT_S, after: int = 0) -> str:
        """Wait until a text is on the screen, beyond the first `after` characters; returns what is there."""
        self.until(lambda: text in self.text[after:], seconds, repr(text))
        return self.text[after:]

    def until(self, condition: Callable[[], bool], seconds: float = LIMIT_S, what: str = "what was expected") -> None:
        """Read what the shell prints until a condition holds."""
        deadline = time.monotonic() + seconds
        while True:
            self.read(0.05)
            if condition():
                return
            assert time.monotonic() < deadline, f"{what} did not appear in {seconds} s:\n{self.text}"

    def send(self, keys: str) -> None:
        """Press keys."""
        self.process.send(keys)

    def run(self, line: str, until: str = "", seconds: float = LIMIT_S) -> str:
        """Type a line and Enter; returns what appears up to the next prompt, or up to a text."""
        self.read()
        before = len(self.text.rstrip())
        self.send(line)
        self.read()
        self.send("\r")
        if until:
            return self.wait(until, seconds, before)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.read()
            shown = self.text.rstrip()
            if len(shown) > before + len(line) and shown.endswith(">"):
                return shown[before:]
        raise AssertionError(f"no prompt after {line!r} in {seconds} s:\n{self.text}")

    def is_alive(self) -> bool:
        return bool(self.process.isalive())


@contextmanager
def shell(home: Path, folder: Path, columns: int = 80, **env: str) -> Iterator[Terminal]:
    """A shell on a lake, closed at the end."""
    with Terminal(home, folder, columns, env) as terminal:
        yield terminal
