"""Errors that both parsers raise."""

from __future__ import annotations

from lakehouse.core.errors import QueryRejectedError


def no_statement() -> QueryRejectedError:
    return QueryRejectedError("There is no statement.", 'Try: lake sql "select 1"')
