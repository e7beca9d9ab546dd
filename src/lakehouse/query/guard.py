"""What a statement must not do: delete files that branches share, or reach from a branch into main."""

from __future__ import annotations

import re

from lakehouse.core.errors import NotSupportedError
from lakehouse.core.names import CATALOG, MAIN
from lakehouse.core.statement import Statement
from lakehouse.query.tables import Tables

#: Iceberg's procedures that delete files. They ask only the table they are called for, not its other branches.
_DELETES = re.compile(r"\s*call\b.*?\b(expire_snapshots|remove_orphan_files)\b", re.IGNORECASE | re.DOTALL)
_CHANGES = re.compile(r"\s*(call|alter|create|drop|truncate|repair|load)\b", re.IGNORECASE)
_TEXT = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_LONGEST_STATEMENT = 300
_MAIN = re.compile(rf"(?<![\w.`])`?{CATALOG}`?\s*\.", re.IGNORECASE)


def check_allowed(statement: Statement, tables: Tables, writes: bool = False) -> None:
    """Refuse what would harm others, with what to do instead.

    Args:
        writes: the statement's rows are written somewhere, though it only reads.
    """
    _refuse_deleting_files(statement)
    if tables.branch != MAIN:
        _refuse_views(statement, tables)
    if writes or _changes_tables(statement):
        tables.refuse_if_protected()


def _refuse_deleting_files(statement: Statement) -> None:
    """Files are shared by branches, tags, dropped tables and kept runs, none of which Spark would ask."""
    found = _DELETES.match(statement.text) if statement.kind == "other" else None
    if found:
        raise NotSupportedError(
            f"{found[1].lower()} would delete files that branches, tags and kept runs may still need.",
            "Files stay until maintenance removes those that nothing leads to. To make a table faster: rewrite_data_files.",
        )


def _refuse_views(statement: Statement, tables: Tables) -> None:
    """A view keeps the name of the catalog that its tables are of: it would read main from every branch."""
    made = statement.kind == "write" and str(getattr(statement.tree, "args", {}).get("kind")).upper() == "VIEW"
    named = [use.name for use in statement.uses if tables.find(use.name) is None and tables.is_view(use.name)]
    if made or named:
        what = str(named[0]) if named else "A view"
        raise NotSupportedError(
            f"{what} would read main's tables, and not those of {tables.branch}.",
            "On a branch, write the view's query out; make the view on main once the branch is merged.",
        )


def _changes_tables(statement: Statement) -> bool:
    """Whether a statement may change what others see."""
    return statement.kind in ("write", "drop") or (
        statement.kind == "other" and _CHANGES.match(statement.text) is not None
    )


def without_texts(sql: str) -> str:
    """A statement as the log keeps it: its shape, and nobody's data."""
    shape = " ".join(_TEXT.sub("'…'", sql).split())
    return shape if len(shape) <= _LONGEST_STATEMENT else shape[:_LONGEST_STATEMENT] + "…"


def kept_on_branch(statement: Statement, sql: str, branch: str) -> str:
    """A statement of Spark's own with main's catalog name exchanged for the branch's: its names are not known to us."""
    if not branch or statement.uses or statement.kind == "read":
        return sql
    return _MAIN.sub(f"{branch}.", sql)
