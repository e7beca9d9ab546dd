"""One SQL statement, understood just enough: is it a read, which tables does it use, and where in the text.

The dialect is Spark's. Spark gets the user's own text with only the table names exchanged, so whatever Spark knows
works. DuckDB gets the statement carried over by sqlglot, except for plain ones, which mean the same in both: those
skip sqlglot, whose import alone would take as long as the whole query (measured in bench/start.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakehouse.core.errors import QueryRejectedError
from lakehouse.core.names import CATALOG, TableName

if TYPE_CHECKING:
    from sqlglot import exp

METADATA_TABLES = {
    "snapshots", "history", "files", "manifests", "partitions", "refs", "entries", "metadata_log_entries",
    "all_data_files", "all_files", "all_manifests", "all_entries", "data_files", "delete_files", "position_deletes",
}  # fmt: skip


@dataclass(frozen=True)
class TableUse:
    """A table where a statement names it. `start` and `end` span the name and its AS OF clause in the text."""

    name: TableName
    start: int
    end: int
    as_of: str = ""
    metadata_table: str = ""
    alias: str = ""
    is_target: bool = False


@dataclass(frozen=True)
class Statement:
    """A parsed statement."""

    text: str
    kind: str
    """`read`, `write` (rows or tables change), `drop` (of tables), `session` (SET, …), `other` (Spark's own)."""
    uses: tuple[TableUse, ...] = ()
    creates: str = ""
    """The format of the table that the statement creates: `iceberg`, `hudi`, or nothing."""
    tree: exp.Expression | None = None
    """Not there for plain statements, which need no translation."""


def parse(text: str) -> Statement:
    """Understand a statement, or say where it is wrong."""
    text = _FOR_AS_OF.sub(lambda found: " " * len(found[1]) + found[2], text.strip().removesuffix(";").rstrip())
    if not text:
        raise QueryRejectedError("There is no statement.", 'Try: lake sql "select 1"')
    return _plain(text) or _parsed(text)


#: Spark and Trino users also write FOR VERSION AS OF; sqlglot only reads it without the FOR.
_FOR_AS_OF = re.compile(r"\b(for\s+(?:system_)?)((?:version|timestamp|time)\s+as\s+of)\b", re.IGNORECASE)

# ---- plain statements ---------------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"\s*(?:(?P<word>[a-z_][a-z0-9_]*)|(?P<number>\d+(?:\.\d+)?)(?![a-z0-9_.])|(?P<text>'[^'\\]*')"
    r"|(?P<sign><>|<=|>=|!=|[=<>+\-*,().]))",
    re.IGNORECASE,
)
#: Functions that Spark and DuckDB agree on for every input.
_SHARED_FUNCTIONS = {"count", "sum", "min", "max", "avg", "coalesce", "lower", "upper", "abs"}
_BEFORE_PARENTHESIS = {"in", "and", "or", "not", "on", "where", "select", "by", "having", "from", "join", "as", "when"}
_AFTER_TABLE = set("where group order having limit join left right full inner outer cross on union intersect except".split())
#: Words that one of the two reads differently, or that need more understanding than a list of tokens gives.
_NOT_PLAIN = set(
    "with div rlike regexp lateral pivot unpivot date timestamp time interval version tablesample qualify cluster"
    " distribute sort transform values table cast try_cast filter over window within rollup cube grouping minus"
    " natural semi anti exists any all some array map struct escape using offset fetch explain describe show call"
    " insert update delete merge create drop alter truncate set use reset refresh cache replace overwrite into"
    " current_date current_timestamp current_user extract position substring trim overlay unnest sets default".split()
)


def _plain(text: str) -> Statement | None:
    """The statement if it is one of those that mean the same to both engines, letter by letter; else None."""
    tokens = _tokens(text)
    if not tokens or tokens[0][0] != "select":
        return None
    uses: list[TableUse] = []
    previous = ""
    place = 0
    while place < len(tokens):
        word, start, kind = tokens[place]
        follows = tokens[place + 1][0] if place + 1 < len(tokens) else ""
        if kind == "word" and (word in _NOT_PLAIN or (follows == "(" and not _may_open(word))):
            return None
        if previous in {"from", "join"} and word != "(":
            use = _plain_table(tokens, place)
            if use is None:
                return None
            uses.append(use)
            place += 2
        # `from a, b`: the second table would be missed, so leave it to the parser.
        if previous == "from" and place + 1 < len(tokens) and tokens[place + 1][0] == ",":
            return None
        previous = word
        place += 1
    return Statement(text, "read", tuple(uses)) if _no_commas_between_tables(tokens) else None


def _tokens(text: str) -> list[tuple[str, int, str]]:
    found, position = [], 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            return []
        kind = str(token.lastgroup)
        found.append((token[kind].lower(), token.start(kind), kind))
        position = token.end()
    return found


def _may_open(word: str) -> bool:
    return word in _SHARED_FUNCTIONS or word in _BEFORE_PARENTHESIS


def _plain_table(tokens: list[tuple[str, int, str]], place: int) -> TableUse | None:
    """`namespace.table` at this place, and nothing more complicated."""
    parts = tokens[place : place + 4]
    if [part[2] for part in parts[:3]] != ["word", "sign", "word"] or parts[1][0] != ".":
        return None
    if len(parts) == 4 and parts[3][0] in {".", "("}:
        return None
    name = TableName.parse(f"{parts[0][0]}.{parts[2][0]}")
    has_alias = len(parts) == 4 and parts[3][2] == "word" and parts[3][0] not in _AFTER_TABLE
    return TableUse(name, parts[0][1], parts[2][1] + len(parts[2][0]), alias=parts[3][0] if has_alias else "")


def _no_commas_between_tables(tokens: list[tuple[str, int, str]]) -> bool:
    """Whether no FROM clause lists tables with commas (after an alias, say)."""
    in_from, depth = False, 0
    for word, _, _ in tokens:
        depth += {"(": 1, ")": -1}.get(word, 0)
        if word == "from":
            in_from = True
        elif word in {"where", "group", "order", "having", "limit", "select", "on"}:
            in_from = False
        elif word == "," and in_from:
            return False
    return True


# ---- everything else, with sqlglot --------------------------------------------------------------------------------


def _parsed(text: str) -> Statement:
    import logging

    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import ParseError, TokenError

    # What sqlglot does not know it hands on as a Command, and so do we: Spark may know it. No need to warn.
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    try:
        trees = [tree for tree in sqlglot.parse(text, dialect="spark") if tree is not None]
    except ParseError as exc:
        found = exc.errors[0]
        # sqlglot counts to the end of the word it stumbled over.
        column = found["col"] - len(found["highlight"] or "x") + 1
        message = str(found["description"]).split("<class")[0].strip().rstrip(".") + "."
        near = f" near {found['highlight']!r}" if found["highlight"] else ""
        raise QueryRejectedError(message.rstrip(".") + near + ".", sql=text, line=found["line"], column=column) from exc
    except TokenError as exc:
        raise QueryRejectedError(str(exc).splitlines()[0], "Is a quote or a comment left open?", sql=text) from exc
    if len(trees) != 1 or isinstance(trees[0], exp.Block):
        raise QueryRejectedError("One statement at a time.", "Run them one after the other.", sql=text)
    tree = trees[0]
    target = _target(tree)
    uses = tuple(_use(table, text, table is target) for table in _tables(tree))
    return Statement(text, _kind(tree), uses, _created_format(tree), tree)


def _kind(tree: exp.Expression) -> str:
    from sqlglot import exp

    if isinstance(tree, exp.Query):
        return "read"
    if isinstance(tree, exp.Set | exp.Use | exp.Cache | exp.Uncache | exp.Refresh):
        return "session"
    if isinstance(tree, exp.Command):
        word = str(tree.this).lower()
        return "session" if word in {"reset", "add", "declare", "use", "set", "clear"} else "other"
    if isinstance(tree, exp.Drop) and tree.args.get("kind") == "TABLE":
        return "drop"
    if isinstance(tree, exp.Create) and any(isinstance(part, exp.TemporaryProperty) for part in tree.find_all(exp.Property)):
        return "session"
    return "other" if isinstance(tree, exp.Describe | exp.Show) else "write"


def _tables(tree: exp.Expression) -> list[exp.Table]:
    """Tables of the lake: not the names of common table expressions, functions or schemas."""
    from sqlglot import exp

    if isinstance(tree, exp.Create | exp.Drop) and tree.args.get("kind") in {"SCHEMA", "DATABASE", "FUNCTION"}:
        return []
    local = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    return [
        table
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier)
        and not (not table.args.get("db") and table.name.lower() in local)
        and "start" in table.this.meta
    ]


def _target(tree: exp.Expression) -> exp.Table | None:
    from sqlglot import exp

    if isinstance(tree, exp.Create | exp.Insert | exp.Merge | exp.Update | exp.Delete | exp.Drop | exp.Alter):
        first = tree.this
        return first.this if isinstance(first, exp.Schema) else first if isinstance(first, exp.Table) else None
    return None


def _use(table: exp.Table, text: str, is_target: bool) -> TableUse:
    parts = list(table.parts)
    names = [part.name for part in parts]
    metadata_table = ""
    if len(names) > 2 and names[0].lower() != CATALOG or len(names) > 3:
        if names[-1].lower() not in METADATA_TABLES:
            raise QueryRejectedError(
                f"{'.'.join(names)} is not a table of the lake.", "Write NAMESPACE.TABLE.", sql=text
            )
        metadata_table = names.pop().lower()
    start, end = parts[0].meta["start"], parts[-1].meta["end"] + 1
    # Backquotes are part of the text but not of the identifier's place.
    start, end = start - (text[start - 1 : start] == "`"), end + (text[end : end + 1] == "`")
    as_of, clause_end = _as_of(table, text, end)
    return TableUse(
        TableName.parse(".".join(names)), start, clause_end, as_of, metadata_table, table.alias, is_target
    )


def _as_of(table: exp.Table, text: str, end: int) -> tuple[str, int]:
    version = table.args.get("version")
    if version is None:
        return "", end
    clause = _AS_OF_CLAUSE.match(text, end)
    if clause is None:
        raise QueryRejectedError(
            "AS OF takes a snapshot id, a tag or a time as a literal.",
            "For example: select * from crm.leads version as of 'yesterday'",
            sql=text,
        )
    return clause["quoted"] if clause["quoted"] is not None else clause["number"], clause.end()


_AS_OF_CLAUSE = re.compile(
    r"\s+(?:version|timestamp)\s+as\s+of\s+(?:'(?P<quoted>[^']*)'|(?P<number>\d+))", re.IGNORECASE
)


def _created_format(tree: exp.Expression) -> str:
    from sqlglot import exp

    if not isinstance(tree, exp.Create) or tree.args.get("kind") != "TABLE":
        return ""
    named = tree.find(exp.FileFormatProperty)
    return str(named.name).lower() if named is not None else "iceberg"


# ---- what an engine gets ------------------------------------------------------------------------------------------


def with_names(statement: Statement, names: dict[int, str]) -> str:
    """The user's text with the tables at the given places called otherwise."""
    text = statement.text
    for use in sorted(statement.uses, key=lambda use: use.start, reverse=True):
        if use.start in names:
            text = text[: use.start] + names[use.start] + text[use.end :]
    return text


def for_duckdb(statement: Statement, names: dict[int, str]) -> str:
    """The statement in DuckDB's dialect, with the tables at the given places called otherwise."""
    if statement.tree is None:
        return statement.text
    tree: Any = statement.tree.copy()
    by_place = {use.start: use for use in statement.uses}
    for table in _tables(tree):
        start = table.parts[0].meta["start"]
        use = by_place.get(start) or by_place[start - 1]
        _rename(table, names.get(use.start, ""), use)
    return str(tree.sql(dialect="duckdb"))


def _rename(table: Any, name: str, use: TableUse) -> None:
    from sqlglot import exp

    table.set("version", None)
    table.set("catalog", None)
    if name:
        # Still known by the table's own name, which columns may be qualified with.
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(use.name.table, quoted=True)))
        table.set("db", None)
        table.set("this", exp.to_identifier(name, quoted=True))
    elif not table.args.get("db"):
        table.set("db", exp.to_identifier(use.name.namespace, quoted=True))
