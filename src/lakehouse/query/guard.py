"""Reject statements that would delete shared files or reach from a branch into main."""

from __future__ import annotations

import re

from lakehouse.core.errors import NotSupportedError
from lakehouse.core.names import CATALOG, MAIN
from lakehouse.core.statement import Statement
from lakehouse.query.tables import Tables

#: Iceberg procedures that delete files without checking the other branches of a table.
_DELETES = re.compile(r"\s*call\b.*?\b(expire_snapshots|remove_orphan_files)\b", re.IGNORECASE | re.DOTALL)
_CHANGES = re.compile(r"\s*(call|alter|create|drop|truncate|repair|load)\b", re.IGNORECASE)
_TEXT = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_LONGEST_STATEMENT = 300
_MAIN = re.compile(rf"(?<![\w.`])`?{CATALOG}`?\s*\.", re.IGNORECASE)


def check_allowed(statement: Statement, tables: Tables, writes: bool = False) -> None:
    """Raise if a statement is not allowed; the hint names the alternative.

    Args:
        writes: the rows of the statement are written somewhere, although it only reads.
    """
    _reject_file_deletion(statement)
    if tables.branch != MAIN:
        _reject_views_on_branch(statement, tables)
    if writes or _changes_tables(statement):
        tables.check_writable()


def _reject_file_deletion(statement: Statement) -> None:
    """Branches, tags, dropped tables and kept runs share files, which Spark's procedures do not check."""
    found = _DELETES.match(statement.text) if statement.kind == "other" else None
    if found:
        raise NotSupportedError(
            f"{found[1].lower()} would delete files that branches, tags and kept runs may still need.",
            "Files stay until maintenance removes unreachable ones. To compact a table: rewrite_data_files.",
        )


def _reject_views_on_branch(statement: Statement, tables: Tables) -> None:
    """A view stores the catalog name of its tables, so it reads main from every branch."""
    creates = statement.kind == "write" and str(getattr(statement.tree, "args", {}).get("kind")).upper() == "VIEW"
    used = [use.name for use in statement.uses if tables.find(use.name) is None and tables.is_view(use.name)]
    if creates or used:
        what = str(used[0]) if used else "A view"
        raise NotSupportedError(
            f"{what} would read main's tables instead of those of {tables.branch}.",
            "On a branch, write out the view's query; create the view on main after the merge.",
        )


def _changes_tables(statement: Statement) -> bool:
    """Whether a statement may change tables."""
    return statement.kind in ("write", "drop") or (
        statement.kind == "other" and _CHANGES.match(statement.text) is not None
    )


def statement_shape(sql: str) -> str:
    """A statement without its string literals, for the log."""
    shape = " ".join(_TEXT.sub("'…'", sql).split())
    return shape if len(shape) <= _LONGEST_STATEMENT else shape[:_LONGEST_STATEMENT] + "…"


def redirect_to_branch(statement: Statement, sql: str, branch: str) -> str:
    """Replace main's catalog name by the branch's in a statement whose table names we do not parse."""
    if not branch or statement.uses or statement.kind == "read":
        return sql
    return _MAIN.sub(f"{branch}.", sql)
