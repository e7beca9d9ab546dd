"""Errors of tables, branches and moments in time."""

from __future__ import annotations

from collections.abc import Iterable

from lakehouse.core.errors.base import LakeError


class TableError(LakeError):
    """Something is wrong with one table."""

    code = "table_error"


class NoSuchTableError(TableError):
    """A table was named that is not in the lake."""

    code = "no_such_table"
    is_user_error = True

    def __init__(self, name: str, nearest: Iterable[str] = (), total: int = 0) -> None:
        self.name, self.nearest = name, list(nearest)
        if self.nearest:
            hint = f"Nearest: {', '.join(self.nearest)}. All of them: lake tables"
        elif total:
            hint = "See what there is: lake tables"
        else:
            hint = "The lake is empty. Try: lake demo"
        super().__init__(f"There is no table {name}.", hint)


class BranchError(TableError):
    """Something is wrong with a branch, a tag or what is to be published."""

    code = "branch_error"


class NoSuchBranchError(BranchError):
    """A branch or a tag was named that is not there."""

    code = "no_such_branch"
    is_user_error = True


class BranchExistsError(BranchError):
    """A branch or a tag would have the name of another."""

    code = "branch_exists"
    is_user_error = True


class BranchProtectedError(BranchError):
    """A branch that only checked runs may change was to be changed in another way."""

    code = "branch_protected"
    is_user_error = True


class BranchConflictError(BranchError):
    """Tables that a branch or a revert would change are no longer what they were."""

    code = "branch_conflict"


class PublishRefusedError(BranchError):
    """The hook that looks at what will be published said no."""

    code = "publish_refused"


class NoSuchCommitError(BranchError):
    """A commit was named that the log does not know."""

    code = "no_such_commit"
    is_user_error = True


class NotDroppedError(TableError):
    """A table was to be brought back that nobody dropped."""

    code = "not_dropped"
    is_user_error = True


class TableExistsError(TableError):
    """A table would be put where one already stands."""

    code = "table_exists"
    is_user_error = True


class WhenError(TableError):
    """A WHEN is not a time, a snapshot or a reference of that table."""

    code = "bad_when"
    is_user_error = True
