"""Output of the commands: tables, JSON and CSV on stdout; notes, spinners and progress bars on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, TextIO

from lakehouse.core.files import size_text
from lakehouse.core.jsonable import csv_line, jsonable
from lakehouse.core.result import Result, Row
from lakehouse.core.tables import Snapshot

_MAX_CELL_WIDTH = 60
_MAX_TABLE_WIDTH = 100_000


def show_rows(names: Sequence[str], rows: Sequence[Sequence[Any]], output: str, title: str = "") -> None:
    """Print rows to stdout in an output format: table, json or csv."""
    if output == "table" and not names:
        note("Done.")
    elif output == "table" and sys.stdout.isatty():
        _rich_table(names, rows, title)
    else:
        write_rows(names, rows, output, sys.stdout)


def write_rows(names: Sequence[str], rows: Sequence[Sequence[Any]], output: str, out: TextIO) -> None:
    """Write rows in an output format: table (plain text), json or csv."""
    if output == "json":
        _json(names, rows, out)
    elif output == "csv":
        _csv(names, rows, out)
    else:
        _plain_table(names, rows, out)


def printed_rows(result: Result) -> list[Row]:
    """The rows of a statement as they are printed."""
    from lakehouse.core.python_values import with_short_floats

    return with_short_floats(result.columns, result.rows())


def show_result(result: Result, output: str) -> None:
    """Print the rows of a statement to stdout as json or csv, with the encoders of the service."""
    from lakehouse.core.encoding import encoder, pieces_of

    encode = encoder({"json": "json_array"}.get(output, output))
    schema, batches = result.stream()
    sys.stdout.write(encode.begin(result.columns, schema).decode())
    for batch in batches:
        for piece in pieces_of(batch):
            sys.stdout.write(encode.rows(piece).decode())
    sys.stdout.write(encode.end({}).decode())


def note(text: str) -> None:
    """Print a line for the user to stderr, apart from the result."""
    dim, end = ("\x1b[2m", "\x1b[0m") if sys.stderr.isatty() else ("", "")
    sys.stderr.write(f"{dim}{text}{end}\n")


def relative_paths(text: str) -> str:
    """Replace absolute paths below the working folder with relative ones, which a person can read and type."""
    import re

    folder = str(Path.cwd()).rstrip("/")
    return re.sub(rf"(?<!\S){re.escape(folder)}/", "", text)


@contextmanager
def show_status(text: str) -> Iterator[Callable[[str], None] | None]:
    """Show a spinner with a text while the block runs, on a terminal only; yield a function that changes the text."""
    if not sys.stderr.isatty():
        yield None
        return
    from lakehouse.cli.progress import described

    with described(text) as change:
        if change is not None:
            yield change
            return
    from rich.console import Console

    with Console(stderr=True).status(text + "…") as status:
        yield lambda new_text: status.update(new_text + "…")


@contextmanager
def show_step(text: str) -> Iterator[None]:
    """Print a line when work of minutes begins and its duration when it ends; show a spinner in between."""
    from time import monotonic

    note(f"{text}…")
    begin = monotonic()
    with show_status(text):
        yield
    note(f"  done in {monotonic() - begin:.0f} s")


@contextmanager
def show_download_lines(text: str) -> Iterator[Callable[[int, int], None]]:
    """Print a line for every tenth of a download; yield a function of (bytes received, bytes in total)."""
    printed = -1

    def show(received: int, total: int) -> None:
        nonlocal printed
        tenth = 10 * received // max(total, 1)
        if tenth > printed:
            printed = tenth
            note(f"{text}: {size_text(received)} of {size_text(total)}")

    yield show


@contextmanager
def show_download(text: str) -> Iterator[Any]:
    """Show a progress bar while the block runs, on a terminal only; yield a function of (bytes received, bytes in total)."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    bar = Progress(
        TextColumn(text),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task(text, total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)


def cell(value: Any) -> str:
    """Format a value for a table."""
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        # Microseconds are shown only if there are any; snapshot times have milliseconds.
        timespec = "auto" if value.microsecond % 1000 or not value.microsecond else "milliseconds"
        utc = value if value.tzinfo is None else value.astimezone(UTC)
        return utc.isoformat(sep=" ", timespec=timespec).replace("+00:00", "Z")
    if isinstance(value, dict | list):
        import json

        return json.dumps(jsonable(value), ensure_ascii=False)
    if isinstance(value, tuple):
        return ", ".join(str(part) for part in value)
    return str(value)


def snapshot_row(snapshot: Snapshot, source: str, current: str) -> tuple[Any, ...]:
    """A snapshot for a list of them.

    Args:
        current: what marks the current one, if no branch or tag does.
    """
    changes = (snapshot.operation, snapshot.rows_added, snapshot.rows_removed, snapshot.rows_total)
    refs = ", ".join(snapshot.refs) or (current if snapshot.is_current else "")
    return (snapshot.id, snapshot.at, *changes, source, refs)


def _json(names: Sequence[str], rows: Sequence[Sequence[Any]], out: TextIO) -> None:
    import json

    from lakehouse.core.encoding import unique

    keys = unique(names)
    objects = [dict(zip(keys, map(jsonable, row), strict=True)) for row in rows]
    out.write("[" + ",\n ".join(json.dumps(row, ensure_ascii=False) for row in objects) + "]\n")


def _csv(names: Sequence[str], rows: Sequence[Sequence[Any]], out: TextIO) -> None:
    for line in (names, *rows):
        # The lists in what commands show are tuples, which read better as text.
        out.write(csv_line(cell(value) if isinstance(value, tuple) else value for value in line))


def _rich_table(names: Sequence[str], rows: Sequence[Sequence[Any]], title: str) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left", title_style="bold")
    for position, name in enumerate(names):
        numeric = all(isinstance(row[position], int | float | Decimal) or row[position] is None for row in rows)
        table.add_column(
            name, justify="right" if numeric and rows else "left", overflow="fold", max_width=_MAX_CELL_WIDTH
        )
    for row in rows:
        table.add_row(*(Text(cell(value), style="dim" if value is None else "") for value in row))
    console = Console()
    # A row stays on one line, even if it is wider than the terminal: an id that is split over two lines cannot be copied.
    full_width = console.measure(table, options=console.options.update(max_width=_MAX_TABLE_WIDTH)).maximum
    Console(width=max(full_width, console.width)).print(table)


def _plain_table(names: Sequence[str], rows: Sequence[Sequence[Any]], out: TextIO) -> None:
    cells = [[_shorten(cell(value)) for value in row] for row in rows]
    widths = [max(len(text) for text in column) for column in zip(names, *cells, strict=True)]
    out.write("  ".join(name.ljust(width) for name, width in zip(names, widths, strict=True)).rstrip() + "\n")
    out.write("  ".join("-" * width for width in widths) + "\n")
    for row in cells:
        out.write("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() + "\n")


def _shorten(text: str) -> str:
    one_line = text.replace("\n", "\\n")
    return one_line if len(one_line) <= _MAX_CELL_WIDTH else one_line[: _MAX_CELL_WIDTH - 1] + "…"
