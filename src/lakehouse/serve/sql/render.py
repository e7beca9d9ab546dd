"""What an engine gets of a statement, and where its complaint about that points in what the user wrote."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lakehouse.core.errors import QueryRejectedError
from lakehouse.serve.sql.model import Statement, TableUse


def for_spark(statement: Statement, names: Mapping[int, str]) -> str:
    """The user's text with the tables at the given places called otherwise."""
    text = statement.text
    for use in sorted(statement.uses, key=lambda use: use.start, reverse=True):
        text = text[: use.start] + names[use.start] + text[use.end :]
    return text


def for_duckdb(statement: Statement, names: Mapping[int, str]) -> str:
    """The statement in DuckDB's dialect; the tables at the given places are called otherwise."""
    if statement.tree is None:
        return statement.text
    from lakehouse.serve.sql.parsed import tables_of

    tree: Any = statement.tree.copy()
    # The copy lists its tables in the same order as the original did.
    for table, use in zip(tables_of(tree), statement.uses, strict=True):
        _rename(table, names.get(use.start, ""), use)
    # Quoted, because DuckDB has keywords that are fine as names in Spark; it ignores case even so.
    return str(tree.sql(dialect="duckdb", identify=True))


def _rename(table: Any, name: str, use: TableUse) -> None:
    from sqlglot import exp

    table.set("version", None)
    table.set("catalog", None)
    if name:
        # Still known by the table's own name, which columns may be qualified with.
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(use.name.table, quoted=True)))
        table.set("db", None)
        table.set("this", exp.to_identifier(name, quoted=True))
    elif not table.args.get("db"):
        table.set("db", exp.to_identifier(use.name.namespace, quoted=True))


def pointed_back(error: QueryRejectedError, statement: Statement) -> QueryRejectedError:
    """The same complaint, pointing into the user's own text instead of what the engine was given."""
    if error.sql == statement.text or not error.pointer():
        return error
    assert error.line and error.column
    given = error.sql.splitlines()[error.line - 1]
    found = re.compile(r"[\w$]+").search(given, error.column - 1)
    message = error.message.rsplit(" (line ", 1)[0]
    word = found[0] if found else ""
    place = re.search(rf"\b{re.escape(word)}\b", statement.text, re.IGNORECASE) if word else None
    if place is None:
        return QueryRejectedError(message, error.hint, sql=statement.text)
    before = statement.text[: place.start()]
    line, column = before.count("\n") + 1, place.start() - (before.rfind("\n") + 1) + 1
    return QueryRejectedError(message, error.hint, sql=statement.text, line=line, column=column)
