"""Translate a statement for DuckDB, or say what sends it to Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any

from lakehouse.core.errors import QueryRejectedError
from lakehouse.core.names import CATALOG
from lakehouse.core.statement import Statement, TableUse, Translation
from lakehouse.core.tables import Column, Scan
from lakehouse.query.sql.ast import ParsedQuery
from lakehouse.query.sql.lexer import NotParsedError
from lakehouse.query.sql.select_parser import parse_query
from lakehouse.query.translate.functions import is_known
from lakehouse.query.translate.queries import Queries
from lakehouse.query.translate.relations import SourceTable
from lakehouse.query.translate.scope import UnknownColumnError
from lakehouse.query.translate.types import NotTranslatedError

#: Longer SQL would take DuckDB long to plan: 0.3 s for 44,000 characters, 3.7 s for 239,000. The longest of TPC-DS has 27,000.
_LONGEST = 100_000
_MOST_SUGGESTIONS = 5


def translate(statement: Statement, scans: Mapping[TableUse, Scan], parameters: Mapping[str, Any]) -> Translation:
    """Translate a query.

    Args:
        parameters: values of the markers `:name`.

    Raises:
        NotTranslatedError: it has a part whose answer is not shown to be Spark's.
        QueryRejectedError: it names a column that no table has.
    """
    if not isinstance(statement.tree, ParsedQuery):
        raise NotTranslatedError(statement.untranslated or "its syntax")
    tables = {
        use.start: SourceTable(view_name(use), (CATALOG, use.name.namespace, use.name.table), scan.columns)
        for use, scan in scans.items()
    }
    views = {view_name(use): scan for use, scan in scans.items()}
    return _translate(statement.tree, tables, views, parameters)


def translate_over(sql: str, scans: Mapping[str, Scan]) -> Translation:
    """Translate a query over tables that it names by one word each.

    Raises:
        NotTranslatedError: it has a part whose answer is not shown to be Spark's.
        QueryRejectedError: it names a column that no table has.
    """
    try:
        parsed = parse_query(sql)
    except NotParsedError as exc:
        raise NotTranslatedError(str(exc)) from exc
    named = {table.start: table.parts[0] for table in parsed.tables if table.parts[0] in scans}
    tables = {start: SourceTable(name, (name,), scans[name].columns) for start, name in named.items()}
    return _translate(parsed, tables, scans, {})


def _translate(
    parsed: ParsedQuery, tables: Mapping[int, SourceTable], views: Mapping[str, Scan], parameters: Mapping[str, Any]
) -> Translation:
    for function in (*parsed.functions, *parsed.table_functions):
        if not is_known(function):
            raise NotTranslatedError(f"the function {function}")
    queries = Queries(tables, parameters)
    try:
        rows = queries.translate(parsed.query)
    except UnknownColumnError as exc:
        raise _unknown_column(exc, parsed.text) from exc
    except RecursionError as exc:
        raise NotTranslatedError("deep nesting") from exc
    if len(rows.sql) > _LONGEST:
        raise NotTranslatedError("the length of the statement")
    columns = tuple(Column(value.name, str(value.type)) for value in rows.columns)
    bound = {name: parameters[name] for name in sorted(queries.bound)}
    return Translation(rows.sql, columns, views, may_fail(rows.sql), bound)


def view_name(use: TableUse) -> str:
    """The name of a table's view, which no user can write."""
    return f"{use.name}@{use.as_of}" if use.as_of else str(use.name)


def _unknown_column(error: UnknownColumnError, text: str) -> QueryRejectedError:
    """Spark's message, with the columns that are nearest to the name."""
    name = ".".join(error.name.parts)
    last = error.name.parts[-1].lower()
    nearest = sorted(
        dict.fromkeys(error.candidates),
        key=lambda candidate: -SequenceMatcher(None, candidate.rpartition(".")[2].lower(), last).ratio(),
    )
    suggestions = ", ".join(candidate.removeprefix(f"{CATALOG}.") for candidate in nearest[:_MOST_SUGGESTIONS])
    before = text[: error.name.start]
    return QueryRejectedError(
        f"A column or function parameter with name {name} cannot be resolved.",
        f"Did you mean one of these? {suggestions}" if suggestions else "",
        sql=text,
        line=before.count("\n") + 1,
        column=error.name.start - (before.rfind("\n") + 1) + 1,
    )


_PIECES = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|(?P<call>[A-Za-z_]+)\(|(?P<operator>[-+*/%])")
#: Functions that give a result for every value.
_TOTAL = {
    "count",
    "min",
    "max",
    "coalesce",
    "nullif",
    "struct_extract",
    "starts_with",
    "ends_with",
    "contains",
    "length",
}
_TOTAL |= {"isnan", "strlen", "unnest", "row_number", "rank", "dense_rank", "first", "last", "in", "and", "or", "on"}


def may_fail(sql: str) -> bool:
    """Whether DuckDB may fail on some values, after which Spark runs the statement: no row may be handed out before."""
    for piece in _PIECES.finditer(sql):
        if piece["operator"] or (piece["call"] and piece["call"].lower() not in _TOTAL):
            # `count(*)` is the one star that multiplies nothing.
            if piece["operator"] == "*" and sql[piece.start() - 1 : piece.end() + 1] == "(*)":
                continue
            return True
    return False
