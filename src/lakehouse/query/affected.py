"""Count the rows that a statement changed, as its commit states them. What is not known for certain is left out."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from lakehouse.core.errors import LakeError
from lakehouse.core.format import CountsChanges, TableFormat
from lakehouse.core.names import TableName
from lakehouse.core.result import Result, RowChanges
from lakehouse.core.statement import Statement
from lakehouse.tables.directory import Tables

_UPDATE = frozenset({"update"})
#: What sqlglot's classes of statements do to rows of tables that exist; MERGE does what its clauses say.
_EFFECTS = {"Insert": {"insert"}, "Update": _UPDATE, "Delete": {"delete"}, "TruncateTable": {"delete"}}


def with_changes(
    statement: Statement, tables: Tables, marks: bool, run: Callable[[str], Result], count: Callable[[str], int]
) -> Result:
    """Run a statement that writes once, and count the rows that it changed.

    Args:
        marks: the engine notes a mark in the commit.
        run: runs it with such a mark, or with none. A count that the engine returns is kept.
        count: runs a query for a number on the same engine.
    """
    effects = effects_of(statement.tree)
    target = next((use.name for use in statement.uses if use.is_target), None)
    table_format = tables.find(target) if effects and target is not None else None
    if target is None or not isinstance(table_format, CountsChanges):
        return run("")
    before, mark = _current(table_format, target), os.urandom(16).hex() if marks else ""
    result = run(mark)
    if result.changes == RowChanges():
        # The statement has been committed: what fails here must not look like its failure.
        with suppress(LakeError):
            result.changes = table_format.changes_since(target, before, effects, result.engine, mark)
            if result.changes.updated is None and effects == _UPDATE:
                result.changes = counted_update(result.changes, statement.tree, target, before, count)
    return result


def effects_of(tree: Any) -> frozenset[str]:
    """What a statement may do to rows: `insert`, `update`, `delete`, and `overwrite`; nothing for other statements."""
    kind = type(tree).__name__
    if kind == "Merge":
        actions = [when.args["then"] for when in tree.args["whens"].expressions]
        return frozenset(type(then).__name__.lower().replace("var", "delete") for then in actions)
    effects = _EFFECTS.get(kind, set())
    return frozenset(effects | {"overwrite"}) if kind == "Insert" and tree.args.get("overwrite") else frozenset(effects)


def _current(table_format: TableFormat, table: TableName) -> str:
    current = table_format.describe(table).current
    return current.id if current else ""


def counted_update(
    changes: RowChanges, tree: Any, table: TableName, before: str, count: Callable[[str], int]
) -> RowChanges:
    """With the rows that an UPDATE replaced: whole files were copied, so its rows are counted as of before its commit."""
    if changes == RowChanges() or not _is_repeatable(tree.args.get("where")):
        return changes
    alias = f" AS `{tree.this.alias}`" if tree.this.alias else ""
    where = tree.args["where"].sql(dialect="spark") if tree.args.get("where") else ""
    updated = count(f"SELECT count(*) FROM `{table.namespace}`.`{table.table}` VERSION AS OF '{before}'{alias} {where}")
    return replace(changes, total=updated, updated=updated)


def _is_repeatable(where: Any) -> bool:
    """Whether a condition is true for the same rows whenever it is asked: it reads no clock, no other table, no unknown function."""
    from sqlglot import exp

    plain = (exp.Where, exp.Connector, exp.Binary, exp.Unary, exp.Predicate, exp.Tuple)
    values = (exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Boolean, exp.Placeholder, exp.Cast, exp.DataType)
    functions = (exp.Lower, exp.Upper, exp.Coalesce)
    nodes = where.walk() if where is not None else ()
    return all(isinstance(node, plain + values + functions) and not isinstance(node, exp.Query) for node in nodes)
