"""What can go wrong with an ingest beyond its files."""

from __future__ import annotations

from lakehouse.core.errors import Retryable, TableError


class ContractError(TableError):
    """A file does not keep to the table's schema, and the contract does not let the table give way."""

    code = "contract_broken"
    is_user_error = True


class CommitConflictError(Retryable, TableError):
    """Somebody else changed the table again and again while it was being written to."""

    code = "commit_conflict"


class NoSuchColumnError(TableError):
    """A column was named that neither the files nor the table have."""

    code = "no_such_column"
    is_user_error = True


class NothingToLearnFromError(TableError):
    """A table is to be made from files without a row."""

    code = "no_rows"
    is_user_error = True
