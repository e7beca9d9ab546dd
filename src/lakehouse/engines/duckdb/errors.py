"""DuckDB's complaints in our words, with the place in the SQL that they point at."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from lakehouse.core.errors import DiskFullError, EngineError, QueryRejectedError

if TYPE_CHECKING:
    import duckdb

_POSITION = re.compile(r"^LINE (\d+): ", re.MULTILINE)


def with_place(cursor: duckdb.DuckDBPyConnection, sql: str, exc: Exception) -> Exception:
    """The same error with DuckDB's drawing of where it is, which it leaves out when it only binds a query."""
    import duckdb

    if "LINE " in str(exc):
        return exc
    try:
        cursor.execute(sql)
    except duckdb.Error as told:
        return told
    return exc


def translate(exc: Exception, sql: str) -> EngineError | DiskFullError:
    """What DuckDB complained of, in our words."""
    import duckdb

    text = str(exc)
    if isinstance(exc, duckdb.IOException) and "No space left" in text:
        return DiskFullError("The disk is full.", "Free some space; DuckDB spills into the lake's run folder.")
    if isinstance(exc, duckdb.OutOfMemoryException):
        return EngineError("DuckDB ran out of memory.", "Raise query.memory_limit or use: lake sql --engine spark")
    if isinstance(exc, duckdb.ParserException | duckdb.BinderException | duckdb.CatalogException):
        message, place = _place(text, sql)
        return QueryRejectedError(
            message, sql=sql, line=place[0] if place else None, column=place[1] if place else None
        )
    first = text.splitlines()[0] if text else type(exc).__name__
    if isinstance(exc, duckdb.DataError):
        return QueryRejectedError(first, "Spark may have other rules for such values: lake sql --engine spark", sql=sql)
    if isinstance(exc, duckdb.ProgrammingError | duckdb.NotSupportedError):
        return QueryRejectedError(first, sql=sql)
    return EngineError(f"DuckDB failed: {first}", "LAKE_DEBUG=1 shows more; lake sql --engine spark may manage.")


def _place(text: str, sql: str) -> tuple[str, tuple[int, int] | None]:
    """DuckDB's message without its drawing, and the line and column that the drawing points at."""
    head, found = text, _POSITION.search(text)
    if not found:
        return _one_line(head), None
    head, drawing = text[: found.start()], text[found.start() :]
    shown, caret = (drawing.split(os.linesep) + [""])[:2]
    line = int(found[1])
    # A long line is shown from its middle with "..." before it: find that piece in the statement again.
    column = len(caret) - len(found[0])
    piece = shown[len(found[0]) :]
    lines = sql.splitlines()
    if piece.startswith("...") and line <= len(lines):
        column += lines[line - 1].find(piece[3:].removesuffix("...")) - 3
    return _one_line(head), (line, max(column, 1))


def _one_line(text: str) -> str:
    without_kind = re.sub(r"^\w+ Error: ", "", text)
    return " ".join(without_kind.split()).removesuffix(".") + "."
