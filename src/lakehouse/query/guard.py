"""Decide whether a statement is allowed, for every engine and entry point.

The guard works with allow-lists on the parsed statement: kinds of statements, actions of ALTER, procedures, table properties and
table functions. A statement that it cannot classify is refused. No allowed statement deletes a file that a branch, a tag, a
kept run or a dropped table needs, reads files outside the lake, or runs code. docs/security.md lists what this protects.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from lakehouse.core.errors import QueryRejectedError, StatementRefusedError
from lakehouse.core.names import CATALOG
from lakehouse.core.properties import check_settable
from lakehouse.query import policy
from lakehouse.query.sql.errors import misspelled
from lakehouse.query.sql.tokens import Token, property_names, split_name

if TYPE_CHECKING:
    from sqlglot import exp

    from lakehouse.query.sql.ast import ParsedQuery

_PATH = re.compile(r"[/\\:*?.]")
_INGEST_HINT = "Bring files in with lake ingest."
_FUNCTION_HINT = "It could read files, run code or show settings."


def decide(tree: exp.Expr, text: str, tokens: Sequence[Token], dialect: str, by_ingest: bool = False) -> str:
    """Return the kind of an allowed statement: `read`, `write`, `drop`, `session` or `other` (describes something).

    Args:
        text: without comments; the positions of `tokens` are in it.
        by_ingest: an ingest wrote the statement, which may choose the location of its table.

    Raises:
        StatementRefusedError: the statement is not allowed.
    """
    from sqlglot import exp

    first = tokens[0].text
    if first == "explain":
        return _explained(text, tokens, dialect)
    if isinstance(tree, exp.Command | exp.Alter) or first in _BY_TOKENS:
        if first not in _BY_TOKENS or tokens[0].quoted:
            _check_spelling([token.text for token in tokens[:2]])
            raise _unknown(first)
        _check_tokens(tokens)
        return _BY_TOKENS[first](tokens, dialect)
    _check_nodes(tree, dialect)
    _check_words(tree, tokens)
    if isinstance(tree, exp.Create):
        return _created(tree, tokens, dialect, by_ingest)
    if isinstance(tree, exp.Drop):
        return _dropped(tree, tokens)
    return _by_class(tree, first, dialect)


def check_query(parsed: ParsedQuery) -> None:
    """Check a query that our own parser has read: its functions and the names of its tables.

    Raises:
        StatementRefusedError: it is not allowed.
    """
    for function in parsed.functions:
        if policy.REFUSED_FUNCTIONS.fullmatch(function):
            raise _refused(f"The function {function}", _FUNCTION_HINT)
    for function in parsed.table_functions:
        if function not in policy.TABLE_FUNCTIONS:
            raise _refused(f"The table function {function}", _INGEST_HINT)
    for table in parsed.tables:
        for part in table.parts:
            if _PATH.search(part):
                raise _refused(f"The name {part!r}, which is a path,", _INGEST_HINT)


def _by_class(tree: exp.Expr, first: str, dialect: str) -> str:
    from sqlglot import exp

    kind = next((kind for kind, classes in policy.kinds(dialect).items() if isinstance(tree, classes)), "")
    if isinstance(tree, exp.Refresh) and tree.args.get("kind") == "TABLE" and dialect == "spark":
        return "session"
    # sqlglot takes `LIST JARS` or `(SHOW TABLES)` for an expression or a table with an alias.
    if not kind or (kind == "read" and first not in policy.QUERY_STARTS):
        _check_spelling([first])
        raise _unknown(first)
    return kind


# ---- statements that sqlglot does not parse ----------------------------------------------------------------------


def _alter(tokens: Sequence[Token], dialect: str) -> str:
    if [token.text for token in tokens[1:2]] not in (["table"], ["view"]):
        _check_spelling([token.text for token in tokens[:2]])
        raise _unknown(" ".join(token.text for token in tokens[:2]))
    name, rest = split_name(tokens[2:])
    if dialect == "trino":
        _check_target(name)
    action = " ".join(token.text for token in rest[:4])
    if dialect == "trino" and action.startswith("execute "):
        _check_procedure(rest[1].text, policy.TRINO_ACTIONS)
        return "write"
    allowed = policy.ALTER_VIEW if tokens[1].text == "view" else policy.ALTER_TABLE
    if not allowed.match(action) or any(token.quoted for token in rest[:2]):
        raise _unknown(f"alter {tokens[1].text} … {' '.join(action.split()[:2])}")
    _check_properties(rest, dialect)
    return "write"


def _call(tokens: Sequence[Token], dialect: str) -> str:
    end = next((place for place, token in enumerate(tokens) if token.text == "("), len(tokens))
    name = tokens[end - 1]
    if dialect == "trino" and tokens[1].text != CATALOG and end > 3:
        raise _refused(f"CALL {tokens[1].text}.…", "Only procedures of the lake can be called.")
    _check_procedure(name.text, policy.PROCEDURES)
    return "other" if name.text in policy.READING_PROCEDURES else "write"


def _show(tokens: Sequence[Token], _dialect: str) -> str:
    if len(tokens) < 2 or tokens[1].text not in policy.SHOW:
        _check_spelling([token.text for token in tokens[:2]])
        raise _unknown(" ".join(token.text for token in tokens[:2]))
    return "other"


def _set(tokens: Sequence[Token], dialect: str) -> str:
    words = [token.text for token in tokens[1:]]
    if dialect != "spark":
        raise _refused("SET", "A statement has a session of its own in Trino.")
    if words[:2] == ["time", "zone"] or words[:1] in (["var"], ["variable"]):
        return "session"
    end = words.index("=") if "=" in words else len(words)
    name = "".join(words[:end])
    if not policy.SETTINGS.fullmatch(name) or any(token.quoted for token in tokens[1 : end + 1]):
        raise _refused(
            f"Setting {name or 'SET'}",
            "Settings of the lake and its Spark are in lake.toml ([spark.conf]); see lake config show.",
        )
    return "session"


def _reset(tokens: Sequence[Token], dialect: str) -> str:
    """RESET of a setting, or CLEAR CACHE."""
    name = "".join(token.text for token in tokens[1:])
    allowed = name == "cache" if tokens[0].text == "clear" else not name or policy.SETTINGS.fullmatch(name)
    if dialect != "spark" or not allowed:
        raise _unknown(tokens[0].text)
    return "session"


_BY_TOKENS = {"alter": _alter, "call": _call, "show": _show, "set": _set, "reset": _reset, "clear": _reset}


def _explained(text: str, tokens: Sequence[Token], dialect: str) -> str:
    """EXPLAIN shows the plan of an allowed statement; EXPLAIN ANALYZE also runs it."""
    from lakehouse.query.sql.tree import parse_tree

    place = 1
    while place < len(tokens) and tokens[place].text in policy.EXPLAIN_OPTIONS:
        place += 1
    if place == len(tokens) or tokens[place].text == "(":
        raise _unknown("explain (…)")
    start = tokens[place].start
    kind = decide(parse_tree(" " * start + text[start:], dialect), text, tokens[place:], dialect)
    if not any(token.text == "analyze" for token in tokens[1:place]):
        return "other"
    if kind == "drop":
        raise _unknown("explain analyze drop")
    return kind


def _check_tokens(tokens: Sequence[Token]) -> None:
    """Check what `_check_nodes` checks in statements that have a tree: SET VAR or a default value may run a query."""
    for token, after in pairwise(tokens):
        if after.text == "(" and token.kind == "name" and policy.REFUSED_FUNCTIONS.fullmatch(token.text):
            raise _refused(f"The function {token.text}", _FUNCTION_HINT)
        if token.kind == "name" and token.quoted and _PATH.search(token.text):
            raise _refused(f"The name {token.text!r}, which is a path,", _INGEST_HINT)


# ---- statements that sqlglot parses ------------------------------------------------------------------------------


def _check_nodes(tree: exp.Expr, dialect: str) -> None:
    """Check every part of a statement: no statement within another, no path as a table, no function that reads files."""
    from sqlglot import exp

    statements = policy.inner_statements()
    for node in tree.walk():
        if node is not tree and isinstance(node, statements) and not isinstance(node.parent, exp.When):
            raise _refused(f"{node.key.upper()} within another statement", policy.SEE)
        if isinstance(node, exp.Table):
            _check_table(node)
        elif isinstance(node, exp.Select | exp.SetOperation | exp.Lateral | exp.Values):
            _check_source(node)
        elif isinstance(node, exp.Func):
            _check_function(node)
    if dialect == "trino" and not isinstance(tree, exp.Query | exp.Describe):
        for target in _targets(tree):
            _check_target([part.name.lower() for part in target.parts], str(tree.args.get("kind")).upper())


def _targets(tree: exp.Expr) -> list[exp.Table]:
    from sqlglot import exp

    named = tree.args.get("tables") or [tree.args.get("this"), *tree.expressions]
    tables = [table.this if isinstance(table, exp.Schema) else table for table in named]
    return [table for table in tables if isinstance(table, exp.Table)]


def _check_target(parts: Sequence[str], kind: str = "TABLE") -> None:
    """Check that a name in Trino's SQL is one of the lake, on the branch of the statement."""
    in_catalog = 2 if kind in ("SCHEMA", "DATABASE") else 3
    if len(parts) >= in_catalog and parts[0] != CATALOG:
        raise _refused(
            f"Changing {'.'.join(parts)}, which is not a table of this branch,",
            "Choose a branch with --branch; change tables of other databases with their own tools.",
        )


def _check_table(table: exp.Table) -> None:
    from sqlglot import exp

    if isinstance(table.this, exp.Func):
        function = table.this
        if function.name.lower() == "table" and len(function.expressions) == 1:  # Trino's TABLE(function(…))
            called = function.expressions[0]
            function = called.expression if isinstance(called, exp.Dot) else called
        name = _function_name(function)
        if name.lower() not in policy.TABLE_FUNCTIONS:
            raise _refused(f"The table function {name}", _INGEST_HINT)
        return
    for part in table.parts:
        if not isinstance(part, exp.Identifier) or _PATH.search(part.name):
            raise _refused(f"The name {part.name!r}, which is a path,", _INGEST_HINT)


def _check_source(node: exp.Expr) -> None:
    """Refuse what is no source of rows: sqlglot has read a word of SQL where Spark reads the name of a table."""
    from sqlglot import exp

    if isinstance(node, exp.Values):
        hides_name = isinstance(node.parent, exp.From | exp.Join) and node.find(exp.Column) is not None
    elif isinstance(node, exp.Lateral):
        hides_name = not isinstance(node.this, exp.Func | exp.Subquery)
    else:
        hides_name = isinstance(node.parent, exp.From | exp.Join) or (
            isinstance(node, exp.Select) and not node.expressions
        )
    if hides_name:
        raise _not_expected(node.key)


def _check_words(tree: exp.Expr, tokens: Sequence[Token]) -> None:
    """Refuse words that sqlglot reads as the start of a clause and Spark as the name of a table.

    sqlglot forgives a comma in front of a clause. Behind VALUES, Spark takes a single word for an alias, behind LATERAL for a table.
    """
    from sqlglot import exp

    clauses = [
        word
        for comma, word in pairwise(tokens)
        if comma.text == "," and word.text in policy.CLAUSES and not comma.quoted and not word.quoted
    ]
    if clauses:
        names = {name.meta.get("start") for name in tree.find_all(exp.Identifier)}
        for clause in clauses:
            if clause.start not in names:
                raise _not_expected(clause.text)
    for place, (before, word) in enumerate(pairwise(tokens)):
        if before.text not in ("from", "join", ",") or word.text not in ("values", "lateral"):
            continue
        if not before.quoted and not word.quoted and _may_be_alias(tokens[place + 2 : place + 4]):
            raise _not_expected(word.text)


def _may_be_alias(tokens: Sequence[Token]) -> bool:
    """Whether there is a single word, and not what a call, a literal with its type or an operator starts with."""
    if not tokens or tokens[0].quoted or not tokens[0].text.isidentifier() or tokens[0].text in policy.PREFIXES:
        return False
    return len(tokens) == 1 or not (tokens[1].text == "(" or tokens[1].kind in ("string", "number"))


def _check_function(function: exp.Func) -> None:
    from sqlglot import exp

    name = _function_name(function)
    if isinstance(function, exp.ReadCSV | exp.ReadParquet) or policy.REFUSED_FUNCTIONS.fullmatch(name.lower()):
        raise _refused(f"The function {name}", _FUNCTION_HINT)


def _function_name(function: exp.Func) -> str:
    from sqlglot import exp

    return function.name if isinstance(function, exp.Anonymous) else function.sql_name()


def _created(tree: exp.Create, tokens: Sequence[Token], dialect: str, by_ingest: bool) -> str:
    from sqlglot import exp

    kind = str(tree.args.get("kind")).upper()
    if kind not in policy.CREATABLE:
        raise _unknown(f"create {kind.lower()}")
    allowed = (exp.FileFormatProperty, exp.PartitionedByProperty, exp.PartitionedByBucket, exp.PartitionByTruncate,
               exp.SchemaCommentProperty, exp.TemporaryProperty,
               exp.SqlSecurityProperty, exp.ViewAttributeProperty)  # fmt: skip
    for part in (prop for prop in tree.find_all(exp.Property) if type(prop) is not exp.Property):
        if not isinstance(part, allowed) and not (by_ingest and isinstance(part, exp.LocationProperty)):
            raise _refused(
                f"CREATE {kind} with {part.sql(dialect)[:60]!r}", "The lake chooses where a table is stored."
            )
    temporary = tree.find(exp.TemporaryProperty) is not None
    if temporary and (kind != "VIEW" or tree.expression is None):
        raise _refused("A temporary table", "Use a temporary view: create temporary view NAME as select …")
    if ("stored", "as") in pairwise(token.text for token in tokens):
        raise _refused("STORED AS", "Choose the table's format: USING iceberg or USING hudi.")
    _check_properties(tokens, dialect)
    return "session" if temporary else "write"


def _dropped(tree: exp.Drop, tokens: Sequence[Token]) -> str:
    kind = str(tree.args.get("kind")).upper()
    if kind not in policy.CREATABLE:
        raise _unknown(f"drop {kind.lower()}")
    if tree.args.get("materialized"):
        raise _unknown("drop materialized view")
    if any(token.text == "cascade" for token in tokens):
        raise _refused(f"DROP {kind} … CASCADE", "Drop its tables one by one: lake undrop can then restore each.")
    return "drop" if kind == "TABLE" else "write"


def _check_properties(tokens: Sequence[Token], dialect: str) -> None:
    """Check the names in `TBLPROPERTIES ('a' = 'b', …)` and `OPTIONS (…)`; in Trino in `PROPERTIES a = b` and `WITH (a = b)`."""
    lists = ("with", "properties") if dialect == "trino" else ("tblproperties", "options", "dbproperties")
    for place, token in enumerate(tokens):
        if token.quoted or token.text not in lists:
            continue
        opened = [token.text for token in tokens[place + 1 : place + 2]] == ["("]
        if not opened and token.text == "with":
            continue
        names = property_names(tokens[place + 1 + opened :])
        if dialect == "spark":
            check_settable(names)
        elif refused := [name for name in names if name not in policy.TRINO_PROPERTIES]:
            raise _refused(
                f"The table property {refused[0]}", f"Allowed: {', '.join(sorted(policy.TRINO_PROPERTIES))}."
            )


# ---- refusals ----------------------------------------------------------------------------------------------------


def _check_procedure(name: str, allowed: set[str]) -> None:
    if name in policy.MAINTENANCE:
        raise _refused(
            f"{name}",
            "It could delete files that branches, tags, kept runs and dropped tables still need; the lake keeps them.",
        )
    if name not in allowed:
        raise _refused(f"The procedure {name}", f"Allowed: {', '.join(sorted(allowed))}.")


def _check_spelling(words: Sequence[str]) -> None:
    """Raise QueryRejectedError for a typing error: it is none of the statements that are refused."""
    meant = misspelled(words)
    if meant:
        given = " ".join(words[: len(meant.split())]).upper()
        raise QueryRejectedError(f"There is no statement {given}.", f"Did you mean {meant}?")


def _not_expected(word: str) -> QueryRejectedError:
    return QueryRejectedError(
        f"{word.upper()} is not expected here.", f"If it is a name, write it in backquotes: `{word}`"
    )


def _unknown(what: str) -> StatementRefusedError:
    return _refused(f"{what.upper()}", policy.SEE)


def _refused(what: str, hint: str) -> StatementRefusedError:
    return StatementRefusedError(f"{what} is not allowed in the lake.", hint)
