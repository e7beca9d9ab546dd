"""The part of a catalog that has no branches: what needs one is refused in words, what can be answered is answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn, Self

from lakehouse.core.errors import NotSupportedError
from lakehouse.core.names import CATALOG, MAIN, TableName
from lakehouse.core.refs import Change, Commit, LogEntry, Published, Reached, Ref


class Unbranched:
    """Everything of a catalog that is about branches, tags and the log, for one that has none of them."""

    can_branch = False
    #: What the catalog is, in a sentence that says what it lacks.
    called = "This catalog"

    def on(self, branch: str) -> Self:
        """The catalog itself; it has no other state to show than the present one."""
        if branch not in ("", MAIN, CATALOG):
            self._refuse(f"the branch {branch}")
        return self

    def branches(self) -> list[str]:
        """None."""
        return []

    def branch_refs(self) -> list[Ref]:
        """None."""
        return []

    def branches_of(self, table: TableName, prefix: str) -> list[str]:
        """None."""
        return []

    def create_branch(self, name: str, from_ref: str = MAIN, commit: Commit | None = None) -> None:
        """Refused."""
        self._refuse(f"the branch {name}")

    def fork(self, branch: str, tables: Sequence[TableName]) -> dict[TableName, str | None]:
        """Refused."""
        self._refuse(f"the branch {branch}")

    def changes(self, branch: str) -> list[Change]:
        """Refused."""
        self._refuse(f"the branch {branch}")

    def conflicts(self, branch: str) -> tuple[TableName, ...]:
        """Refused."""
        self._refuse(f"the branch {branch}")

    def publish(self, branch: str, commit: Commit | None = None, tag: str = "") -> Published:
        """Refused."""
        self._refuse(f"a publish of {branch}, in which several tables change at once or none")

    def discard(self, branch: str) -> bool:
        """Nothing to forget."""
        return False

    def tags(self) -> list[Ref]:
        """None."""
        return []

    def create_tag(self, name: str, from_ref: str = MAIN, commit: Commit | None = None) -> None:
        """Refused."""
        self._refuse(f"the tag {name}")

    def drop_tag(self, name: str) -> bool:
        """Nothing to forget."""
        return False

    def tagged(self, tag: str) -> dict[TableName, str] | None:
        """None."""
        return None

    def log(self, table: TableName | None = None, limit: int = 100) -> list[LogEntry]:
        """Nothing is written down beside each table's own history."""
        return []

    def published_by(self, run: str) -> LogEntry | None:
        """Nothing."""
        return None

    def revert(self, entry: str, commit: Commit) -> Published:
        """Refused."""
        self._refuse(f"a revert of {entry}")

    def reachable(self, since: str = "") -> Sequence[Reached]:
        """Refused: whoever would delete files by an answer that leaves something out would delete too much."""
        self._refuse("a list of all files in use")

    def _refuse(self, what: str) -> NoReturn:
        raise NotSupportedError(
            f"{self.called} has no branches, and so not {what}.",
            "Catalogs with branches: sql, nessie, and rest on a server of this lakehouse (docs/catalogs.md).",
        )
