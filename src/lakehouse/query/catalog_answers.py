"""Statements that the catalog answers without an engine: what each looks like, and its answer."""

from __future__ import annotations

import re

from lakehouse.core.errors import NotSupportedError
from lakehouse.core.result import Explain, ListedRows, Result
from lakehouse.core.statement import Statement
from lakehouse.core.tables import Column
from lakehouse.tables.directory import Tables

#: SHOW TABLES without a namespace, which Spark refuses in a catalog of namespaces.
_SHOW_TABLES = re.compile(r"show\s+tables", re.IGNORECASE)
#: Another engine that was asked for by name shows the tables that it sees.
_OF_THE_LAKE = ("auto", "spark")


def answer_of_catalog(statement: Statement, tables: Tables, engine: str) -> Result | None:
    """The answer to a statement; None if an engine runs it.

    Args:
        engine: the requested one, or `auto`.
    """
    if statement.kind == "drop":
        return _drop_softly(statement, tables)
    if engine in _OF_THE_LAKE and _SHOW_TABLES.fullmatch(statement.text):
        return _list_tables(tables)
    return None


def _drop_softly(statement: Statement, tables: Tables) -> Result:
    """DROP TABLE is the same soft drop as `lake drop`: no SQL statement deletes files."""
    tree = statement.tree
    assert tree is not None
    if tree.args.get("purge"):
        raise NotSupportedError(
            "PURGE would delete files for good.", "Omit it: lake undrop can then restore the table."
        )
    for use in statement.uses:
        if tree.args.get("exists") and tables.find(use.name) is None:
            continue
        tables.drop(use.name)
    return Result((), ListedRows([], []), Explain("catalog", "a drop only moves the table's catalog entry"))


def _list_tables(tables: Tables) -> Result:
    """The tables of all namespaces."""
    columns = (Column("namespace", "string"), Column("tableName", "string"), Column("isTemporary", "boolean"))
    rows = [(name.namespace, name.table, False) for name, _ in tables.all()]
    listed = ListedRows([column.name for column in columns], rows)
    return Result(columns, listed, Explain("catalog", "the list of tables is in the catalog"))
