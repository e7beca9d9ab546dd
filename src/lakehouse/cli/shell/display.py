"""Show results: tables that fit the terminal, vertical rows where they do not, long ones through a pager, or a file."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, TextIO

from lakehouse.cli.show import cell, note, write_rows
from lakehouse.core.errors import BadSettingError
from lakehouse.core.result import Row

#: Characters of a value that are shown: in a column of a table, and on the line of a vertical row.
CELL_WIDTH, VERTICAL_WIDTH = 60, 2_000
#: -S cuts long lines instead of wrapping them, -R shows colours, -F and -X leave a short text on the screen.
_PAGER = "less -SRFX"
_FORMATS = {".csv": "csv", ".json": "json"}
_BOLD, _DIM, _END = "\x1b[1m", "\x1b[2m", "\x1b[0m"


@dataclass
class Display:
    """Where and how results are shown."""

    output: str = "table"
    """Format of results that do not go to a terminal: table, json or csv."""
    interactive: bool = False
    expanded: str = "auto"
    """Vertical rows: on, off, or auto for rows that are wider than the terminal."""
    pager: bool = True
    _file: TextIO | None = field(default=None, repr=False)
    _file_format: str = "table"

    def rows(self, names: Sequence[str], rows: Sequence[Row]) -> None:
        """Show rows."""
        if not names:
            return
        if self._file is not None:
            write_rows(names, rows, self._file_format, self._file)
            self._file.flush()
        elif self.interactive:
            width, height = shutil.get_terminal_size()
            self._page(list(render(names, rows, width, self.expanded, colour=True)), width, height)
        else:
            write_rows(names, rows, self.output, sys.stdout)
            sys.stdout.flush()

    def note(self, text: str) -> None:
        """Show a line that is not part of a result."""
        note(text)

    def open(self, file: str) -> None:
        """Send results to a file: CSV or JSON by its suffix, else plain tables."""
        self.close()
        try:
            # Stays open until `\\o` names another file or the shell ends.
            self._file = Path(file).expanduser().open("w")  # noqa: SIM115 - see above
        except OSError as exc:
            raise BadSettingError(f"{file} cannot be written: {exc.strerror}.", "\\o FILE, or \\o alone") from exc
        self._file_format = _FORMATS.get(Path(file).suffix, "table")

    def close(self) -> None:
        """Send results to the screen again."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def _page(self, lines: list[str], width: int, height: int) -> None:
        fits = len(lines) < height - 2 and all(_shown_width(line) <= width for line in lines)
        text = "\n".join(lines) + "\n"
        if fits or not self.pager or not _show_in_pager(text):
            sys.stdout.write(text)
            sys.stdout.flush()


def render(names: Sequence[str], rows: Sequence[Row], width: int, expanded: str, colour: bool) -> Iterator[str]:
    """The lines of a result for a terminal of a width."""
    cells = [[safe(cell(value), CELL_WIDTH) for value in row] for row in rows]
    widths = [max(map(text_width, column)) for column in zip(map(safe, names), *cells, strict=True)]
    is_wide = sum(widths) + 2 * (len(widths) - 1) > width
    if rows and (expanded == "on" or (expanded == "auto" and is_wide)):
        yield from _vertical(names, rows, width, colour)
        return
    bold, dim, end = (_BOLD, _DIM, _END) if colour else ("", "", "")
    right = [_is_numeric([row[position] for row in rows]) for position in range(len(names))]
    yield (
        bold + "  ".join(_pad(safe(name), size, False) for name, size in zip(names, widths, strict=True)).rstrip() + end
    )
    yield dim + "  ".join("─" * size for size in widths) + end
    for row in cells:
        yield "  ".join(_pad(*cell) for cell in zip(row, widths, right, strict=True)).rstrip()


def _vertical(names: Sequence[str], rows: Sequence[Row], width: int, colour: bool) -> Iterator[str]:
    bold, dim, end = (_BOLD, _DIM, _END) if colour else ("", "", "")
    longest = max(text_width(safe(name)) for name in names)
    for number, row in enumerate(rows, start=1):
        yield f"{dim}{f'── row {number} '.ljust(min(width, longest + 30), '─')}{end}"
        for name, value in zip(names, row, strict=True):
            room = max(width - longest - 3, 20)
            text = safe(cell(value), VERTICAL_WIDTH)
            pieces = [text[start : start + room] for start in range(0, len(text), room)] or [""]
            yield f"{bold}{_pad(safe(name), longest, False)}{end} │ {pieces[0]}"
            yield from (f"{' ' * longest} │ {piece}" for piece in pieces[1:])


def safe(text: str, most: int = CELL_WIDTH) -> str:
    """A text on one line without control characters, which could change the terminal, cut to a length."""
    cut = text if len(text) <= most else f"{text[: most - 1]}…"
    if cut.isprintable():
        return cut
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in cut)


def text_width(text: str) -> int:
    """Columns of the terminal that a text takes: an East Asian character takes two."""
    if text.isascii():
        return len(text)
    from prompt_toolkit.utils import get_cwidth

    return get_cwidth(text)


def _shown_width(line: str) -> int:
    for code in (_BOLD, _DIM, _END):
        line = line.replace(code, "")
    return text_width(line)


def _pad(text: str, width: int, right: bool) -> str:
    space = " " * (width - text_width(text))
    return space + text if right else text + space


def _is_numeric(values: Sequence[Any]) -> bool:
    return bool(values) and all(
        value is None or (isinstance(value, int | float | Decimal) and not isinstance(value, bool)) for value in values
    )


def _show_in_pager(text: str) -> bool:
    """Show a text in $PAGER, which may have options; False if there is no such program."""
    command = shlex.split(os.environ.get("PAGER") or _PAGER)
    if not command or shutil.which(command[0]) is None:
        return False
    # Ctrl-C in the pager is the pager's: it must not stop the shell.
    with suppress(KeyboardInterrupt, BrokenPipeError):
        subprocess.run(command, input=text, text=True, check=False)
    return True
