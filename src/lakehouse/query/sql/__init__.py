"""Parse a SQL statement just enough: its kind, the tables it uses, and their positions in the text.

The dialect is Spark's. Spark gets the user's text with only the table names replaced, so everything that Spark supports
works. DuckDB gets sqlglot's translation, except for plain statements, which mean the same in both: those skip sqlglot,
whose import takes as long as the rest of a cold query (bench/start.py).
"""

from __future__ import annotations

import re
from collections.abc import Collection

from lakehouse.core.statement import Statement
from lakehouse.query.sql.errors import no_statement
from lakehouse.query.sql.plain import parse_plain

#: String literals, quoted names and comments, which stay as they are, or one of Spark's spellings of AS OF.
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
    text = _AS_OF.sub(_normalize_as_of, text.strip().removesuffix(";").rstrip())
    if not text:
        raise no_statement()
    if plain := parse_plain(text):
        return plain
    from lakehouse.query.sql.parsed import parse_with_sqlglot

    return parse_with_sqlglot(text, local)


def _normalize_as_of(found: re.Match[str]) -> str:
    """`VERSION` or `TIMESTAMP` without FOR, padded to the same length so that positions stay valid."""
    what = found["what"]
    if what is None:
        return found[0]
    word = "version" if what.lower().endswith("version") else "timestamp"
    return re.sub(r"\S", " ", found["for"] or "") + word.rjust(len(what))
