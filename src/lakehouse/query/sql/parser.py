"""Parse a SQL statement just enough: its kind, the tables it uses, and their positions in the text.

The dialect is Spark's. Spark gets the user's text with only the table names replaced, so everything that Spark supports
works. DuckDB gets sqlglot's translation, except for plain statements, which mean the same in both, character by
character: those skip sqlglot, whose import takes as long as the rest of a cold query (bench/start.py). Only what the
lists below contain is plain, so an incomplete list costs time but never changes a result.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from lakehouse.core.errors import QueryRejectedError
from lakehouse.core.names import TableName
from lakehouse.core.statement import Statement, TableUse
from lakehouse.engines.duckdb import OWN_NAMESPACES
from lakehouse.query.sql.errors import no_statement

#: String literals, quoted names and comments, which stay as they are, or one of Spark's spellings of AS OF.
_AS_OF = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/"""
    r"|(?P<for>\bfor\s+)?\b(?P<what>(?:system_)?version|system_time|timestamp)(?=\s+as\s+of\b)",
    re.IGNORECASE | re.DOTALL,
)
#: No comments, and no `<=>`, which is a distance operator in DuckDB.
_TOKEN = re.compile(
    r"\s*(?:(?P<word>[a-z_][a-z0-9_]*)|(?P<number>\d+(?:\.\d+)?)(?![a-z0-9_.])|(?P<text>'[^'\\]*')"
    r"|(?P<sign><>|<=(?!>)|<(?!=)|>=|!=|-(?!-)|[=>+*,().]))",
    re.IGNORECASE | re.ASCII,
)
#: Functions with the same result in Spark and DuckDB, except for the gaps in tests/query/test_dialect.py.
_FUNCTIONS = {"count", "sum", "min", "max", "avg", "coalesce", "lower", "upper", "abs"}
_BEFORE_PARENTHESIS = {"in", "and", "or", "not", "on", "where", "select", "by", "having", "from", "join", "when"}
_AFTER_TABLE = set(
    "where group order having limit join left right full inner outer cross on union intersect except".split()
)
_CLAUSES = {"select", "from", "where", "group", "having", "order", "limit"}
_KEYWORDS = (
    _BEFORE_PARENTHESIS
    | _AFTER_TABLE
    | _CLAUSES
    | set("is null like between case then else end as asc desc distinct true false".split())
)
#: Words with a different meaning in one of the two, or that a token list cannot handle; on the last lines those that
#: DuckDB reserves or evaluates, although they may name a column.
_NOT_PLAIN = set(
    "with div rlike regexp lateral pivot unpivot date timestamp time interval version tablesample qualify cluster"
    " distribute sort transform values table cast try_cast filter over window within rollup cube grouping minus"
    " natural semi anti exists any all some array map struct escape using offset fetch explain describe show call"
    " insert update delete merge create drop alter truncate set use reset refresh cache replace overwrite into"
    " current_date current_timestamp current_user extract position substring trim overlay unnest sets default"
    " system_version system_time analyse analyze asymmetric asof authorization binary both check collate"
    " collation column columns concurrently constraint deferrable do for foreign freeze generated glob ilike"
    " initially isnull lambda leading notnull only overlaps pivot_longer pivot_wider placing positional primary"
    " references returning similar summarize symmetric to trailing unique unpack variadic verbose"
    " current_catalog current_role current_schema current_time localtime localtimestamp session_user user".split()
)
_LONGEST_NUMBER = 18
"""Digits that fit into a BIGINT; a longer number is a decimal in Spark and a HUGEINT in DuckDB."""


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
    if plain := parse_plain(text):
        return plain
    from lakehouse.query.sql.parsed import parse_with_sqlglot

    return parse_with_sqlglot(text, local, by_ingest=by_ingest)


def parse_again(statement: Statement) -> Statement | None:
    """A plain statement parsed with sqlglot; None if it was already, or if sqlglot rejects it or finds other tables."""
    if statement.tree is not None:
        return None
    from lakehouse.query.sql.parsed import parse_with_sqlglot

    try:
        parsed = parse_with_sqlglot(statement.text)
    except QueryRejectedError:
        return None
    # Rights were checked on the statement, so this one must be the same.
    same = parsed.kind == statement.kind and {use.name for use in parsed.uses} == {use.name for use in statement.uses}
    return parsed if same else None


def _normalize_as_of(match: re.Match[str]) -> str:
    """`VERSION` or `TIMESTAMP` without FOR, padded to the same length so that positions stay valid."""
    what = match["what"]
    if what is None:
        return match[0]
    word = "version" if what.lower().endswith("version") else "timestamp"
    return re.sub(r"\S", " ", match["for"] or "") + word.rjust(len(what))


@dataclass(frozen=True)
class _Token:
    text: str
    start: int
    kind: str


_END = _Token("", -1, "end")


def parse_plain(text: str) -> Statement | None:
    """The parsed statement if it is plain; else None."""
    tokens = _tokens(text)
    if not tokens or tokens[0].text != "select":
        return None
    if not all(map(_is_plain, [_END, *tokens], tokens, [*tokens[1:], _END])) or not _has_plain_lists(tokens):
        return None
    uses: list[TableUse] = []
    for place, token in enumerate(tokens, start=1):
        if token.text in {"from", "join"} and not _opens_query(tokens, place):
            use = _table([*tokens[place : place + 5], *[_END] * 5])
            if use is None:
                return None
            uses.append(use)
    return Statement(text, "read", tuple(uses))


def _tokens(text: str) -> list[_Token]:
    """Tokenize the text; empty if any token is not plain."""
    tokens: list[_Token] = []
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            return []
        kind = str(token.lastgroup)
        tokens.append(_Token(token[kind].lower(), token.start(kind), kind))
        position = token.end()
    return tokens


def _is_plain(before: _Token, token: _Token, after: _Token) -> bool:
    if token.kind == "number":
        return len(token.text) <= _LONGEST_NUMBER
    if token.kind == "text":
        # Not `'a' 'b'`, nor `'it''s'`, nor a prefix as in `x'ff'`, nor an alias in quotes.
        return before.kind == "sign" or before.text in _KEYWORDS - {"as"}
    if token.kind == "sign":
        return True
    if token.text in _KEYWORDS:
        is_name = before.text in {"as", "."} or after.text == "."
        return not is_name and (after.text != "(" or token.text in _BEFORE_PARENTHESIS) and _is_usual(token, after)
    return token.text not in _NOT_PLAIN and (after.text != "(" or token.text in _FUNCTIONS)


def _is_usual(token: _Token, after: _Token) -> bool:
    """Not `is distinct from`, whose FROM names no table, nor DuckDB's own `distinct on`."""
    return token.text != "distinct" or after.text not in {"from", "on"}


def _has_plain_lists(tokens: list[_Token]) -> bool:
    """Whether parentheses match, every CASE has its END, and commas occur only in lists that both engines support.

    Excluded are `from a, b`, whose tables only a parser finds, and `(a, b)`, which is a row.
    """
    within = [""]
    for before, token in zip([_END, *tokens], tokens, strict=False):
        if token.text in _CLAUSES:
            within[-1] = token.text
        elif token.text == "(":
            within.append("list" if before.text in _FUNCTIONS | {"in"} else "row")
        elif token.text == ")":
            within.pop()
        if not within or (token.text == "," and within[-1] in {"from", "row"}):
            return False
    words = [token.text for token in tokens]
    return len(within) == 1 and words.count("case") == words.count("end")


def _opens_query(tokens: list[_Token], place: int) -> bool:
    return [token.text for token in tokens[place : place + 2]] == ["(", "select"]


def _table(tokens: list[_Token]) -> TableUse | None:
    """`namespace.table` with an optional alias at the start of these tokens."""
    namespace, dot, table, after, named = tokens[:5]
    if (namespace.kind, dot.text, table.kind) != ("word", ".", "word") or after.text in {".", "("}:
        return None
    if namespace.text in OWN_NAMESPACES:
        return None
    name = TableName.parse(f"{namespace.text}.{table.text}")
    alias = named if after.text == "as" else after
    is_alias = alias.kind == "word" and alias.text not in _AFTER_TABLE
    return TableUse(name, namespace.start, table.start + len(table.text), alias=alias.text if is_alias else "")
