"""Errors that both parsers and the guard raise."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse.core.errors import QueryRejectedError
from lakehouse.core.names import nearest

_STATEMENTS = set(
    "alter analyze call create delete desc describe drop explain from insert merge refresh reset select set show table"
    " truncate update use values with".split()
)
#: What may follow: a word that is almost one of these is a typing error.
_OBJECTS = {
    "create": {"table", "view", "namespace", "schema", "database", "or", "temporary", "external", "function", "global"},
    "drop": {"table", "view", "namespace", "schema", "database", "function", "materialized"},
    "alter": {"table", "view", "namespace", "schema", "database"},
    "show": {"tables", "views", "columns", "namespaces", "schemas", "databases", "functions", "partitions", "create"},
}


def no_statement() -> QueryRejectedError:
    return QueryRejectedError("There is no statement.", 'Try: lake sql "select 1"')


def misspelled(words: Sequence[str]) -> str:
    """The beginning of a statement that the given first words, in lower case, are almost; empty if there is none."""
    first, second = [*words, "", ""][:2]
    if first not in _STATEMENTS:
        return "".join(nearest(first, _STATEMENTS, 1)).upper()
    objects = _OBJECTS.get(first, set())
    near = nearest(second, objects, 1) if second not in objects else []
    return f"{first} {near[0]}".upper() if near else ""
