"""Errors of tables, branches and time travel."""

from __future__ import annotations

from collections.abc import Iterable

from lakehouse.core.errors.base import LakeError


class TableError(LakeError):
    """An operation on one table failed."""

    code = "table_error"


class NoSuchTableError(TableError):
    """The lake has no table of that name."""

    code = "no_such_table"
    is_user_error = True

    def __init__(self, name: str, nearest: Iterable[str] = (), total: int = 0) -> None:
        self.name, self.nearest = name, list(nearest)
        if self.nearest:
            hint = f"Did you mean {' or '.join(self.nearest)}? List all: lake tables"
        elif total:
            hint = "List all tables: lake tables"
        else:
            hint = "The lake is empty. Try: lake demo"
        super().__init__(f"There is no table {name}.", hint)


class BranchError(TableError):
    """An operation on a branch, a tag or a publish failed."""

    code = "branch_error"


class NoSuchBranchError(BranchError):
    """There is no branch or tag of that name."""

    code = "no_such_branch"
    is_user_error = True


class BranchExistsError(BranchError):
    """A branch or tag of that name exists already."""

    code = "branch_exists"
    is_user_error = True


class BranchProtectedError(BranchError):
    """The branch is protected: only checked runs may change it."""

    code = "branch_protected"
    is_user_error = True


class BranchConflictError(BranchError):
    """Tables changed since a branch was created, or since the commit that a revert would undo."""

    code = "branch_conflict"


class CommitConflictError(TableError):
    """Other writers changed the table during every attempt to commit, or the branch that a writer owns."""

    code = "commit_conflict"


class PublishRefusedError(BranchError):
    """The before_publish hook rejected the publish."""

    code = "publish_refused"


class NoSuchCommitError(BranchError):
    """The log has no such commit."""

    code = "no_such_commit"
    is_user_error = True


class NotDroppedError(TableError):
    """There is no dropped table of that name to restore."""

    code = "not_dropped"
    is_user_error = True


class TableExistsError(TableError):
    """A table of that name exists already."""

    code = "table_exists"
    is_user_error = True


class WhenError(TableError):
    """A WHEN is not a timestamp, a snapshot id or a ref of that table."""

    code = "bad_when"
    is_user_error = True
