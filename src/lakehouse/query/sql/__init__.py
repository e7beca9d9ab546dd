"""One SQL statement, understood just enough: is it a read, which tables does it use, and where in the text.

The dialect is Spark's. Spark gets the user's own text with only the table names exchanged, so whatever Spark knows
works. DuckDB gets the statement carried over by sqlglot, except for plain ones, which mean the same in both: those
skip sqlglot, whose import alone would take as long as the rest of the query (measured in bench/start.py).
"""

from __future__ import annotations

import re
from collections.abc import Collection

from lakehouse.core.statement import Statement
from lakehouse.query.sql.errors import no_statement
from lakehouse.query.sql.plain import parse_plain

#: Texts, quoted names and comments, which are left alone, or one of Spark's spellings of AS OF.
_AS_OF = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/"""
    r"|(?P<for>\bfor\s+)?\b(?P<what>(?:system_)?version|system_time|timestamp)(?=\s+as\s+of\b)",
    re.IGNORECASE | re.DOTALL,
)


def parse(text: str, local: Collection[str] = (), dialect: str = "spark") -> Statement:
    """Parse a statement.

    Args:
        local: names that are not tables of the lake.
        dialect: any but Spark's is left to its engine, unparsed.
    """
    if dialect != "spark":
        return Statement(text, "foreign")
    text = _AS_OF.sub(_as_sqlglot_reads_it, text.strip().removesuffix(";").rstrip())
    if not text:
        raise no_statement()
    if plain := parse_plain(text):
        return plain
    from lakehouse.query.sql.parsed import parse_with_sqlglot

    return parse_with_sqlglot(text, local)


def _as_sqlglot_reads_it(found: re.Match[str]) -> str:
    """`VERSION` or `TIMESTAMP` without FOR, as long as what it replaces so that all places stay where they are."""
    what = found["what"]
    if what is None:
        return found[0]
    word = "version" if what.lower().endswith("version") else "timestamp"
    return re.sub(r"\S", " ", found["for"] or "") + word.rjust(len(what))
