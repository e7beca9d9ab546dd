"""DROP TABLE in SQL is the same soft drop as `lake drop`: no SQL statement deletes files."""

from __future__ import annotations

from lakehouse.core.errors import NotSupportedError
from lakehouse.core.result import Explain, ListedRows, Result
from lakehouse.core.statement import Statement
from lakehouse.query.tables import Tables


def drop_softly(statement: Statement, tables: Tables) -> Result:
    """Run a DROP TABLE statement."""
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
