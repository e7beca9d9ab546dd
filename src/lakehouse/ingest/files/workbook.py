"""Read a sheet of a workbook (Excel, OpenDocument) as lines of JSON, which keep its text, numbers and dates apart."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from lakehouse.core.errors import DamagedFileError, EmptyFileError, NotInstalledError, UnknownChoiceError
from lakehouse.core.requests import ReadOptions
from lakehouse.ingest.files.discover import SourceFile, nothing_below


def write_sheet(file: SourceFile, settings: ReadOptions, into: Path) -> int:
    """Write the rows of a sheet, by default the first one, as objects; returns their number."""
    name, others, rows = _open_sheet(file, settings.sheet, settings.skip_rows)
    header, first = settings.header is not False, next(rows, None)
    if first is None and settings.skip_rows:
        raise nothing_below(f"The sheet {name} of {file.name}", "rows", settings.skip_rows, file)
    if first is None:
        hint = f"Choose another: --sheet NAME, one of: {', '.join(others)}" if others else "It has no other sheet."
        raise EmptyFileError(f"{file.name} has no values in its sheet {name}.", hint, file=file.name)
    keys = _keys(first if header else [""] * len(first))
    count = 0
    with into.open("w", encoding="utf-8") as out:
        for row in rows if header else (first, *rows):
            out.write(json.dumps(dict(zip(keys, map(_value, row), strict=False)), ensure_ascii=False) + "\n")
            count += 1
    return count


def _open_sheet(file: SourceFile, sheet: str, skipped: int) -> tuple[str, list[str], Iterator[Sequence[Any]]]:
    """The name of a sheet, by default the first one, those of the others, and its rows below those skipped that have a value."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError as exc:
        raise NotInstalledError("python-calamine, which reads workbooks", "excel") from exc
    try:
        with CalamineWorkbook.from_path(file.path) as book:
            if sheet and sheet not in book.sheet_names:
                raise UnknownChoiceError("sheet", sheet, book.sheet_names)
            name = sheet or next(iter(book.sheet_names), "")
            others = [other for other in book.sheet_names if other != name]
            cells = book.get_sheet_by_name(name)
            above = cells.start[0] if cells.start else 0  # empty rows above the first value, which are not read
            rows = cells.to_python()[max(0, skipped - above) :]
    except CalamineError as exc:
        raise DamagedFileError(
            f"{file.name} cannot be read: {exc}", "Open it and save it again, or save the sheet as CSV.", file=file.name
        ) from exc
    return name, others, (row for row in rows if any(value != "" for value in row))


def _keys(headers: Sequence[Any]) -> list[str]:
    """Different names of the columns: an object has each key once."""
    keys: dict[str, None] = {}
    for number, header in enumerate(headers, start=1):
        key = name = str(_value(header) or "").strip() or f"column_{number}"
        repeated = 2
        while key in keys:
            key, repeated = f"{name}_{repeated}", repeated + 1
        keys[key] = None
    return list(keys)


def _value(value: Any) -> Any:
    """A cell as JSON; every number of a workbook is a floating-point number."""
    match value:
        case "":
            return None
        case float() if value.is_integer() and abs(value) < 2**53:
            return int(value)
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
    return value
