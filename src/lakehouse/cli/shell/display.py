"""Show results: tables that fit the terminal, vertical rows where they do not, long ones through a pager, or a file."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from decimal import Decimal
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, TextIO

from lakehouse.cli.show import cell, note, write_rows
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BadSettingError
from lakehouse.core.jsonable import jsonable
from lakehouse.core.result import Row

#: Characters of a value that are shown: in a column of a table, and on the line of a vertical row.
CELL_WIDTH, VERTICAL_WIDTH = 60, 2_000
#: -S cuts long lines instead of wrapping them, -R shows colours, -F and -X leave a short text on the screen.
_PAGER = "less -SRFX"
_FORMATS = {".csv": "csv", ".json": "json", ".ndjson": "ndjson", ".jsonl": "ndjson", ".md": "markdown"}
#: How results can be shown.
MODES = ("table", "box", "markdown", "vertical", "csv", "json", "ndjson")
_LINE_WIDTH = 100
_BOLD, _DIM, _END = "\x1b[1m", "\x1b[2m", "\x1b[0m"


@dataclass
class Display:
    """Where and how results are shown."""

    output: str = "table"
    """One of MODES."""
    interactive: bool = False
    expanded: str = "auto"
    """Vertical rows: on, off, or auto for rows that are wider than the terminal."""
    pager: bool = True
    _file: TextIO | None = field(default=None, repr=False)
    _file_format: str = ""
    """One of MODES, by the suffix of the file; empty: as on the screen."""

    def rows(self, names: Sequence[str], rows: Sequence[Row]) -> None:
        """Show rows."""
        if not names:
            return
        if self._file is not None:
            write(names, rows, self._file_format or self.output, self._file)
            self._file.flush()
        elif self.interactive:
            self._show(names, rows)
        else:
            write(names, rows, self.output, sys.stdout)
            sys.stdout.flush()

    def _show(self, names: Sequence[str], rows: Sequence[Row]) -> None:
        width, height = shutil.get_terminal_size()
        if self.output == "table":
            lines = list(render(names, rows, width, self.expanded, colour=True))
        elif self.output == "vertical":
            lines = list(_vertical(names, rows, width, colour=True))
        else:
            text = StringIO()
            write(names, rows, self.output, text)
            lines = text.getvalue().splitlines()
        self._page(lines, width, height)

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
        self._file_format = _FORMATS.get(Path(file).suffix, "")

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


def write(names: Sequence[str], rows: Sequence[Row], mode: str, out: TextIO) -> None:
    """Write rows in one of MODES."""
    if mode in ("box", "markdown"):
        out.writelines(f"{line}\n" for line in (_box if mode == "box" else _markdown)(names, rows))
    elif mode == "vertical":
        out.writelines(f"{line}\n" for line in _vertical(names, rows, _LINE_WIDTH, colour=False))
    elif mode == "ndjson":
        objects = (dict(zip(names, map(jsonable, row), strict=True)) for row in rows)
        out.writelines(f"{json.dumps(row, ensure_ascii=False)}\n" for row in objects)
    else:
        write_rows(names, rows, mode, out)


def _box(names: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    heads, cells, widths, right = _layout(names, rows, CELL_WIDTH)

    def rule(left: str, cross: str, end: str) -> str:
        return left + cross.join("─" * (width + 2) for width in widths) + end

    yield rule("┌", "┬", "┐")
    yield "│ " + " │ ".join(_pad(head, width, False) for head, width in zip(heads, widths, strict=True)) + " │"
    yield rule("├", "┼", "┤")
    for row in cells:
        yield "│ " + " │ ".join(_pad(*cell) for cell in zip(row, widths, right, strict=True)) + " │"
    yield rule("└", "┴", "┘")


def _markdown(names: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    heads, cells, widths, right = _layout(names, rows, VERTICAL_WIDTH, {"|": "\\|"})
    yield "| " + " | ".join(_pad(head, width, False) for head, width in zip(heads, widths, strict=True)) + " |"
    yield (
        "|"
        + "|".join("-" * (width + 1) + ("-:"[is_number]) for width, is_number in zip(widths, right, strict=True))
        + "|"
    )
    for row in cells:
        yield "| " + " | ".join(_pad(*cell) for cell in zip(row, widths, right, strict=True)) + " |"


def _layout(
    names: Sequence[str], rows: Sequence[Row], most: int, escapes: Mapping[str, str] = MappingProxyType({})
) -> tuple[list[str], list[list[str]], list[int], list[bool]]:
    """The texts of the names and values, the width of each column, and whether it holds numbers."""

    def shown(text: str) -> str:
        text = safe(text, most)
        for letter, escaped in escapes.items():
            text = text.replace(letter, escaped)
        return text

    heads, cells = [shown(name) for name in names], [[shown(cell(value)) for value in row] for row in rows]
    widths = [max(map(text_width, column)) for column in zip(heads, *cells, strict=True)]
    return heads, cells, widths, [_is_numeric([row[place] for row in rows]) for place in range(len(names))]


def render(names: Sequence[str], rows: Sequence[Row], width: int, expanded: str, colour: bool) -> Iterator[str]:
    """The lines of a result for a terminal of a width."""
    heads, cells, widths, right = _layout(names, rows, CELL_WIDTH)
    is_wide = sum(widths) + 2 * (len(widths) - 1) > width
    if rows and (expanded == "on" or (expanded == "auto" and is_wide)):
        yield from _vertical(names, rows, width, colour)
        return
    bold, dim, end = (_BOLD, _DIM, _END) if colour else ("", "", "")
    yield bold + "  ".join(_pad(head, size, False) for head, size in zip(heads, widths, strict=True)).rstrip() + end
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
