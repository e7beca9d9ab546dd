"""DuckDB's errors as LakeErrors, with their position in the SQL."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from lakehouse.core.errors import (
    DiskFullError,
    EngineError,
    LakeError,
    NeedsSparkError,
    QueryRejectedError,
    StatementCanceledError,
)

if TYPE_CHECKING:
    import duckdb

#: The message with which a translated query ends itself.
NEEDS_SPARK = "lakehouse: only Spark answers this"
_POSITION = re.compile(r"^LINE (\d+): ", re.MULTILINE)


def with_position(cursor: duckdb.DuckDBPyConnection, sql: str, exc: Exception) -> Exception:
    """The same error with the marked line, which DuckDB leaves out when it only binds a query."""
    import duckdb

    if "LINE " in str(exc):
        return exc
    try:
        cursor.execute(sql)
    except duckdb.Error as positioned:
        return positioned
    return exc


def translate(exc: Exception, sql: str) -> LakeError:
    """The LakeError for an error of DuckDB."""
    import duckdb

    text = str(exc)
    if isinstance(exc, duckdb.InterruptException):
        return StatementCanceledError("The statement was canceled.")
    if isinstance(exc, duckdb.IOException) and "No space left" in text:
        return DiskFullError("The disk is full.", "Free some space; DuckDB spills into the lake's run folder.")
    if isinstance(exc, duckdb.OutOfMemoryException):
        return EngineError("DuckDB ran out of memory.", "Raise query.memory_limit or use: lake sql --engine spark")
    if isinstance(exc, duckdb.ParserException | duckdb.BinderException | duckdb.CatalogException):
        message, line, column = _parse(text, sql)
        return QueryRejectedError(message, sql=sql, line=line, column=column)
    first = text.splitlines()[0] if text else type(exc).__name__
    if isinstance(exc, duckdb.DataError):
        return QueryRejectedError(first, "Spark may have other rules for such values: lake sql --engine spark", sql=sql)
    if isinstance(exc, duckdb.ProgrammingError | duckdb.NotSupportedError):
        return QueryRejectedError(first, sql=sql)
    return EngineError(f"DuckDB failed: {first}", "LAKE_DEBUG=1 shows more; lake sql --engine spark may work.")


ONLY_SPARK_HINT = "Use --engine auto or --engine spark."


def only_spark_answers(exc: Exception, sql: str) -> LakeError:
    """The error of a translated query: NeedsSparkError for whatever Spark may answer."""
    import duckdb

    error = translate(exc, sql)
    if isinstance(exc, duckdb.InterruptException | duckdb.IOException) or isinstance(error, DiskFullError):
        return error
    reason = str(exc).splitlines()[0] if str(exc) else type(exc).__name__
    if NEEDS_SPARK in reason:
        reason = "a value that only Spark answers"
    return NeedsSparkError(f"DuckDB does not answer this as Spark does: {reason.rstrip('.')}.", ONLY_SPARK_HINT)


def _parse(text: str, sql: str) -> tuple[str, int | None, int | None]:
    """DuckDB's message without its marked line, and the line and column that the mark points at."""
    position = _POSITION.search(text)
    if not position:
        return _one_line(text), None, None
    excerpt, caret = (text[position.start() :].split(os.linesep) + [""])[:2]
    line = int(position[1])
    column = len(caret) - len(position[0])
    # A long line is shown from its middle, with "..." before it: find that piece in the statement.
    piece = excerpt[len(position[0]) :]
    lines = sql.splitlines()
    if piece.startswith("...") and line <= len(lines):
        column += lines[line - 1].find(piece[3:].removesuffix("...")) - 3
    return _one_line(text[: position.start()]), line, max(column, 1)


def _one_line(text: str) -> str:
    without_class = re.sub(r"^\w+ Error: ", "", text)
    return " ".join(without_class.split()).removesuffix(".") + "."
