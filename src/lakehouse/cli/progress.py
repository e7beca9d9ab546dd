"""Progress of long operations on stderr: a bar with amount and time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from lakehouse.core.files import size_text
from lakehouse.core.progress import Amount, listening

#: An operation shows its progress when it has taken this long.
AFTER_S = 2.0
#: The time between two plain lines.
_LINE_S = 10.0
_PERCENT = 100

#: The bar that is on the terminal. A second one, or a spinner, would write over it.
_shown: list[_Bar] = []


@contextmanager
def show_progress(text: str) -> Iterator[Callable[[str], None] | None]:
    """Show how far the operations in the block are; yields a function that changes the text, None without a terminal."""
    if not sys.stderr.isatty():
        with listening(_Lines(text)):
            yield None
        return
    with _Bar(text) as bar, listening(bar):
        yield bar.describe


@contextmanager
def described(text: str) -> Iterator[Callable[[str], None] | None]:
    """Change the text of the bar on the terminal while the block runs; yields None if there is no bar."""
    if not _shown:
        yield None
        return
    bar, before = _shown[-1], _shown[-1].text
    bar.describe(text)
    try:
        yield bar.describe
    finally:
        bar.describe(before)


def amount_text(amount: Amount) -> str:
    """An amount for people: `1.2 MB of 3.0 MB`, `3 of 8 tables`."""
    if amount.unit == "bytes":
        return f"{size_text(amount.done)} of {size_text(amount.total)}"
    return f"{amount.done:,} of {amount.total:,} {amount.unit}"


class Estimate:
    """The time that is left, from the time that the part which is done has taken."""

    def __init__(self) -> None:
        self._begin, self._first, self._of = monotonic(), 0, (0, "")

    def left(self, amount: Amount) -> str:
        """The time left, such as `12 s left`; empty if it cannot be known yet."""
        if (amount.total, amount.unit) != self._of:  # another part of the operation
            self._begin, self._first, self._of = monotonic(), amount.done, (amount.total, amount.unit)
        done = amount.done - self._first
        if done <= 0:
            return ""
        seconds = (monotonic() - self._begin) * (amount.total - amount.done) / done
        return f"{seconds:.0f} s left" if seconds < 2 * 60 else f"{seconds / 60:.0f} min left"


class _Lines:
    """Plain lines: for logs."""

    def __init__(self, text: str) -> None:
        self._text, self._due, self._estimate = text, monotonic() + AFTER_S, Estimate()

    def __call__(self, amount: Amount) -> None:
        left = self._estimate.left(amount)
        if monotonic() < self._due or not 0 < amount.done < amount.total:
            return
        self._due = monotonic() + _LINE_S
        percent = _PERCENT * amount.done // amount.total
        parts = [f"{self._text}: {percent} % ({amount_text(amount)})", left]
        sys.stderr.write(", ".join(filter(None, parts)) + "\n")


class _Bar:
    """A spinner, which becomes a bar when the operation reports an amount and has taken some seconds."""

    def __init__(self, text: str) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn

        self.text, self._begin, self._estimate = text, monotonic(), Estimate()
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.fields[amount]}"))
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task(f"{text}…", total=None, amount="")

    def __enter__(self) -> _Bar:
        self._progress.start()
        _shown.append(self)
        return self

    def __exit__(self, *error: Any) -> None:
        _shown.remove(self)
        self._progress.stop()

    def describe(self, text: str) -> None:
        self.text = text
        self._progress.update(self._task, description=f"{text}…")

    def __call__(self, amount: Amount) -> None:
        left = self._estimate.left(amount)
        if monotonic() - self._begin < AFTER_S or not amount.total:
            return
        share = min(amount.done / amount.total, 1.0)
        parts = (_drawn(share), f"{_PERCENT * share:.0f} %", amount_text(amount), left)
        self._progress.update(self._task, amount="  ".join(filter(None, parts)))


def _drawn(share: float, width: int = 20) -> str:
    """A bar of characters."""
    filled = round(width * share)
    return "━" * filled + "[dim]" + "━" * (width - filled) + "[/]"
