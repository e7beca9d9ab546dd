"""sqlglot's syntax tree of a statement."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lakehouse.core.errors import QueryRejectedError
from lakehouse.query.sql.errors import misspelled, no_statement

if TYPE_CHECKING:
    from sqlglot import exp

#: Iceberg's syntax; sqlglot mistakes it for Hive's DROP PARTITION (…) and fails at the missing parenthesis.
_DROP_FIELD = re.compile(r"alter\s+table\s+\S+\s+drop\s+partition\s+field\b", re.IGNORECASE)


def parse_tree(text: str, dialect: str) -> exp.Expr:
    """sqlglot's tree of exactly one statement; a Command for syntax that sqlglot does not know."""
    import logging

    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import ParseError

    if _DROP_FIELD.match(text):
        return exp.Command(this="alter", expression=text)
    # sqlglot warns of syntax that it does not know; the guard decides on its tokens.
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    try:
        trees = [tree for tree in sqlglot.parse(text, dialect=dialect) if tree and not isinstance(tree, exp.Semicolon)]
    except ParseError as exc:
        error = exc.errors[0]
        # sqlglot counts to the end of the offending word.
        column = error["col"] - len(error["highlight"] or "x") + 1
        message = str(error["description"]).split("<class")[0].strip().rstrip(".") + "."
        near = f" near {error['highlight']!r}" if error["highlight"] else ""
        meant = misspelled(text.lower().split()[:2])
        hint = f"Did you mean {meant}?" if meant else ""
        raise QueryRejectedError(
            message.rstrip(".") + near + ".", hint, sql=text, line=error["line"], column=column
        ) from exc
    except RecursionError as exc:
        raise QueryRejectedError(
            "The statement is nested too deeply.", "Split it with common table expressions."
        ) from exc
    if not trees:
        raise no_statement()
    if len(trees) != 1 or isinstance(trees[0], exp.Block):
        raise QueryRejectedError("Only one statement at a time is supported.", "Run them separately.", sql=text)
    return trees[0]
