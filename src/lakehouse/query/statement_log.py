"""Log what a statement committed: an engine commits by itself, so the log learns of it from the pointers before and after."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from lakehouse.core.catalog import Catalog
from lakehouse.core.refs import Commit
from lakehouse.core.requests import QueryRequest
from lakehouse.core.statement import Statement

_LONGEST = 300
#: The parts of a statement in which a number or a quote means something else come before the values.
_PARTS = re.compile(
    r"""
      (?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))
    | (?P<name>`(?:[^`]|``)*`|[^\W\d]\w*)
    | (?P<text>\'(?:[^'\\]|\\.)*(?:\'|\Z)|"(?:[^"\\]|\\.)*(?:"|\Z))
    | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\w*)
    """,
    re.VERBOSE | re.DOTALL,
)
_REPLACEMENTS = {"comment": " ", "text": "'…'", "number": "…"}


@contextmanager
def logged(catalog: Catalog, statement: Statement, request: QueryRequest) -> Iterator[None]:
    """Log the commits that the block makes for a statement; an ingest logs its own."""
    targets = [use.name for use in statement.uses if use.is_target and statement.kind == "write"]
    if not targets or request.ingest_into or statement.renames or not catalog.capabilities.statement_log:
        yield
        return
    catalog = catalog.on(request.branch)
    before = catalog.pointers(targets)
    yield
    for table, pointer in before.items():
        catalog.record_statement(table, pointer, Commit("sql", message=statement_shape(statement.text)))


def statement_shape(sql: str) -> str:
    """A statement without its comments, and with its strings and numbers replaced; names stay."""
    shape = " ".join(_PARTS.sub(lambda part: _REPLACEMENTS.get(str(part.lastgroup), part[0]), sql).split())
    return shape if len(shape) <= _LONGEST else shape[:_LONGEST] + "…"
