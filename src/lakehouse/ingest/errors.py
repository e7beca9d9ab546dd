"""Errors of an ingest other than those of its source files (ingest/files/errors.py)."""

from __future__ import annotations

from lakehouse.core.errors import TableError


class ContractError(TableError):
    """A file does not match the table's schema, and the contract forbids changing the table."""

    code = "contract_broken"
    is_user_error = True


class NoSuchColumnError(TableError):
    """An option names a column that neither the files nor the table have."""

    code = "no_such_column"
    is_user_error = True


class NoRowsError(TableError):
    """A new table cannot be created because the files have no valid row to infer types from."""

    code = "no_rows"
    is_user_error = True
