"""Parse a SQL statement just enough: its kind, the tables it uses, and their positions in the text.

The dialect is Spark's. A query that DuckDB may answer is parsed by select_parser.py, without sqlglot, whose import takes as
long as the rest of a cold query (bench/start.py). Everything else is parsed with sqlglot, where the guard decides on it.
Spark gets the user's text with only the table names replaced, so everything that Spark supports works.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from lakehouse.core.names import CATALOG, TableName
from lakehouse.core.statement import Statement, TableUse
from lakehouse.query.sql.ast import Table
from lakehouse.query.sql.errors import no_statement
from lakehouse.query.sql.lexer import NotParsedError
from lakehouse.query.sql.select_parser import parse_query

#: String literals, quoted names and comments, which stay as they are, or one of Spark's spellings of AS OF.
_AS_OF = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/"""
    r"|(?P<for>\bfor\s+)?\b(?P<what>(?:system_)?version|system_time|timestamp)(?=\s+as\s+of\b)",
    re.IGNORECASE | re.DOTALL,
)
#: Other names may be paths; the guard decides on those.
_PLAIN_NAME = re.compile(r"[^/\\\\:*?.]+")


def parse(text: str, local: Collection[str] = (), dialect: str = "spark", by_ingest: bool = False) -> Statement:
    """Parse a statement.

    Args:
        local: names that are not tables of the lake.
        dialect: `spark`, or that of an engine with SQL of its own.
        by_ingest: an ingest wrote the statement, which may choose the location of its table.
    """
    if dialect != "spark":
        from lakehouse.query.sql.parsed import parse_with_sqlglot

        return parse_with_sqlglot(text, local, dialect)
    text = _AS_OF.sub(_normalize_as_of, text.strip().removesuffix(";").rstrip())
    if not text:
        raise no_statement()
    untranslated = ""
    if not local and not by_ingest:
        try:
            return _parse_query(text)
        except NotParsedError as exc:
            untranslated = str(exc)
    from lakehouse.query.sql.parsed import parse_with_sqlglot

    return replace(parse_with_sqlglot(text, local, by_ingest=by_ingest), untranslated=untranslated)


def _parse_query(text: str) -> Statement:
    """A query, on which the guard has decided."""
    from lakehouse.query.guard import check_query

    parsed = parse_query(text)
    check_query(parsed)
    return Statement(parsed.text.rstrip(), "read", tuple(map(_use, parsed.tables)), tree=parsed)


def _use(table: Table) -> TableUse:
    parts = table.parts[1:] if len(table.parts) == 3 and table.parts[0].lower() == CATALOG else table.parts
    if len(parts) > 2 or not all(_PLAIN_NAME.fullmatch(part) for part in parts):
        raise NotParsedError(f"the table {'.'.join(parts)}")
    return TableUse(TableName.parse(".".join(parts)), table.start, table.end, table.as_of, alias=table.alias)


def _normalize_as_of(match: re.Match[str]) -> str:
    """`VERSION` or `TIMESTAMP` without FOR, padded to the same length so that positions stay valid."""
    what = match["what"]
    if what is None:
        return match[0]
    word = "version" if what.lower().endswith("version") else "timestamp"
    return re.sub(r"\S", " ", match["for"] or "") + word.rjust(len(what))
