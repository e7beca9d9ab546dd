"""The one way to main: the hook is asked about the diff, then everything is published in one transaction or nothing is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakehouse.core.names import MAIN
from lakehouse.core.ports import CanBranch
from lakehouse.core.refs import Change, Commit, Published
from lakehouse.runs import hooks

#: What will be published, in facts that cost no reading of data.
Told = Callable[[Sequence[Change]], list[dict[str, Any]]]


@dataclass(frozen=True)
class Publisher:
    """Publishes branches to main."""

    catalog: CanBranch
    tell: Told
    hook: Sequence[str] = ()
    protected: Sequence[str] = ()
    """Branches that only checked runs may change."""

    def publish(self, branch: str, commit: Commit, tag: str = "") -> Published:
        """Publish a branch, if the hook agrees and nobody has changed its tables."""
        self.ask(branch, self.catalog.changes(branch), commit)
        return self.catalog.publish(branch, commit, tag)

    def revert(self, entry: str, changes: Sequence[Change], commit: Commit) -> Published:
        """Undo an entry of the log, if the hook agrees and nobody has changed its tables."""
        self.ask(f"revert of {entry}", changes, commit)
        return self.catalog.revert(entry, commit)

    def ask(self, branch: str, changes: Sequence[Change], commit: Commit) -> None:
        """Ask the hook, if there is one and something to ask about."""
        if self.hook and changes:
            hooks.ask(self.hook, self._diff(branch, changes, commit))

    def _diff(self, branch: str, changes: Sequence[Change], commit: Commit) -> Mapping[str, Any]:
        facts = {"author": commit.author, "run": commit.run, "pipeline": commit.pipeline, "message": commit.message}
        return {"branch": branch, "into": MAIN, **facts, "tables": self.tell(changes)}
