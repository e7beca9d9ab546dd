"""One SQL statement, understood just enough: is it a read, which tables does it use, and where in the text.

The dialect is Spark's. Spark gets the user's own text with only the table names exchanged, so whatever Spark knows
works. DuckDB gets the statement carried over by sqlglot, except for plain ones, which mean the same in both: those
skip sqlglot, whose import alone would take as long as the rest of the query (measured in bench/start.py).
"""

from __future__ import annotations

import re

from lakehouse.core.errors import QueryRejectedError
from lakehouse.serve.sql.model import Statement, TableUse
from lakehouse.serve.sql.plain import parse_plain

__all__ = ["Statement", "TableUse", "parse"]

#: Spark and Trino users also write FOR VERSION AS OF; sqlglot only reads it without the FOR.
_FOR_AS_OF = re.compile(r"\b(for\s+(?:system_)?)((?:version|timestamp|time)\s+as\s+of)\b", re.IGNORECASE)


def parse(text: str) -> Statement:
    """Understand a statement, or say where it is wrong."""
    text = _FOR_AS_OF.sub(lambda found: " " * len(found[1]) + found[2], text.strip().removesuffix(";").rstrip())
    if not text:
        raise QueryRejectedError("There is no statement.", 'Try: lake sql "select 1"')
    if plain := parse_plain(text):
        return plain
    from lakehouse.serve.sql.parsed import parse_with_sqlglot

    return parse_with_sqlglot(text)
