"""Parse statements with sqlglot."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from lakehouse.core.errors import QueryRejectedError
from lakehouse.core.names import CATALOG, TableName
from lakehouse.core.statement import Statement, TableUse
from lakehouse.query.sql.errors import no_statement

if TYPE_CHECKING:
    from sqlglot import exp

METADATA_TABLES = {
    "snapshots", "history", "files", "manifests", "partitions", "refs", "entries", "metadata_log_entries",
    "all_data_files", "all_files", "all_manifests", "all_entries", "data_files", "delete_files", "position_deletes",
}  # fmt: skip


def parse_with_sqlglot(
    text: str, local: Collection[str] = (), dialect: str = "spark", by_ingest: bool = False
) -> Statement:
    """Parse a statement, and have the guard decide on it: there is no parsed statement that is not allowed."""
    from sqlglot import exp

    from lakehouse.query.guard import decide
    from lakehouse.query.sql.tokens import blank_comments, tokenize
    from lakehouse.query.sql.tree import parse_tree

    tokens = tokenize(text, dialect)
    text = blank_comments(text, tokens)
    while tokens and tokens[-1].text == ";" and not tokens[-1].quoted:
        text = text[: tokens.pop().start].rstrip()
    if not tokens:
        raise no_statement()
    tree = parse_tree(text, dialect)
    kind = decide(tree, text, tokens, dialect, by_ingest)
    if isinstance(tree, exp.Command):
        return Statement(text, kind, tree=tree)
    if dialect != "spark":
        return Statement(text, kind, tuple(_foreign_uses(tree)), tree=tree)
    uses = tuple(_use(table, text, _is_target(table, tree)) for table in tables_of(tree, local))
    renames = isinstance(tree, exp.Alter) and tree.find(exp.AlterRename) is not None
    truncates = isinstance(tree, exp.TruncateTable)
    return Statement(text, kind, uses, _created_format(tree), renames, truncates, tree)


def _foreign_uses(tree: exp.Expr) -> Iterator[TableUse]:
    """The tables of the lake in a statement of another dialect, whose text is not changed, so that positions are not needed."""
    for table in tables_of(tree):
        name = table.name.partition("$")[0]  # Trino's metadata tables: "orders$snapshots"
        if table.catalog.lower() in ("", CATALOG) and table.db:
            yield TableUse(TableName.parse(f"{table.db}.{name}"), 0, 0, is_target=_is_target(table, tree))


def _is_temporary(tree: exp.Expr) -> bool:
    from sqlglot import exp

    return isinstance(tree, exp.Create) and any(
        isinstance(part, exp.TemporaryProperty) for part in tree.find_all(exp.Property)
    )


def tables_of(tree: exp.Expr, local: Collection[str] = ()) -> list[exp.Table]:
    """The lake's tables in a statement, without names of common table expressions, functions and schemas."""
    from sqlglot import exp

    kind = str(tree.args.get("kind")).upper()
    if isinstance(tree, exp.Use) or kind in {"SCHEMA", "DATABASE", "NAMESPACE", "FUNCTION"}:
        return []
    excluded = set(local)
    if _is_temporary(tree):
        excluded.add(tree.this.name.lower())
    return [
        table
        for table in tree.find_all(exp.Table)
        if table.this
        and all(isinstance(part, exp.Identifier) and "start" in part.meta for part in table.parts)
        and not (not table.args.get("db") and (table.name.lower() in excluded or _is_cte(table)))
    ]


def _is_cte(table: exp.Table) -> bool:
    """Whether a name is that of a common table expression. In its own definition it is that of a table, unless it is recursive."""
    from sqlglot import exp

    definition: exp.Expr | None = None
    node: exp.Expr | None = table
    while node is not None:
        if isinstance(node, exp.CTE):
            definition = node
        clause = node.args.get("with_")
        is_recursive = clause is not None and clause.args.get("recursive")
        for cte in clause.expressions if clause is not None else ():
            if cte is definition and not is_recursive:
                break
            if cte.alias.lower() == table.name.lower():
                return True
        node = node.parent
    return False


def _is_target(table: exp.Table, tree: exp.Expr) -> bool:
    """Whether the statement writes to the table; elsewhere any expression with rows may replace its name."""
    from sqlglot import exp

    named: exp.Expr = table.parent if isinstance(table.parent, exp.Schema) else table
    if isinstance(named.parent, exp.AlterRename):  # the new name
        return True
    return named.parent is tree and named.arg_key != "using" and not isinstance(tree, exp.Describe)


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
    # The identifier's position excludes its backquotes.
    start, end = start - (text[start - 1 : start] == "`"), end + (text[end : end + 1] == "`")
    as_of, clause_end = _as_of(table, text, end)
    return TableUse(TableName.parse(".".join(names)), start, clause_end, as_of, metadata_table, table.alias, is_target)


def _as_of(table: exp.Table, text: str, end: int) -> tuple[str, int]:
    version = table.args.get("version")
    if version is None:
        return "", end
    clause = _AS_OF_CLAUSE.match(text, end)
    if clause is None:
        raise QueryRejectedError(
            "AS OF requires a literal snapshot id, tag or time.",
            "For example: select * from crm.leads version as of 'yesterday'",
            sql=text,
        )
    return clause["quoted"] if clause["quoted"] is not None else clause["number"], clause.end()


_AS_OF_CLAUSE = re.compile(
    r"\s+(?:version|timestamp)\s+as\s+of\s+(?:(?P<quote>['\"])(?P<quoted>.*?)(?P=quote)|(?P<number>\d+))", re.IGNORECASE
)


def _created_format(tree: exp.Expr) -> str:
    from sqlglot import exp

    if not isinstance(tree, exp.Create) or tree.args.get("kind") != "TABLE":
        return ""
    named = tree.find(exp.FileFormatProperty)
    return str(named.name).lower() if named is not None else "iceberg"
