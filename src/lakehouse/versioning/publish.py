"""The one way to main: the hook is asked about the diff, then everything is published in one transaction or nothing is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakehouse.core.catalog import Catalog
from lakehouse.core.errors import CatalogUnreachableError, NoSuchBranchError
from lakehouse.core.names import MAIN
from lakehouse.core.refs import Change, Commit, Published
from lakehouse.versioning import hooks

#: What will be published, in facts that cost no reading of data.
Told = Callable[[Sequence[Change]], list[dict[str, Any]]]

#: How long a catalog that fell silent in the middle of a publish may take to come back, and how often it is asked.
PATIENCE_S, _ASK_EVERY_S = 60.0, 1.0


@dataclass(frozen=True)
class Publisher:
    """Publishes branches to main."""

    catalog: Catalog
    tell: Told
    hook: Sequence[str] = ()
    protected: Sequence[str] = ()
    """Branches that only checked runs may change."""

    def publish(self, branch: str, commit: Commit, tag: str = "") -> Published:
        """Publish a branch, if the hook agrees and nobody has changed its tables."""
        self.ask(branch, self.catalog.changes(branch), commit)
        try:
            return self.catalog.publish(branch, commit, tag)
        except CatalogUnreachableError:
            if not commit.run:  # nothing to know it by afterwards
                raise
            return self._answered(branch, commit, tag)

    def _answered(self, branch: str, commit: Commit, tag: str) -> Published:
        """What became of a publish whose answer was lost: it was done, or it is done now, once the catalog answers again."""
        until = time.monotonic() + PATIENCE_S
        while True:
            time.sleep(_ASK_EVERY_S)
            try:
                done = self.catalog.published_by(commit.run)
                return Published(True, done.id) if done else self.catalog.publish(branch, commit, tag)
            # No branch: the first try was still under way, and has been published between the two questions.
            except (CatalogUnreachableError, NoSuchBranchError):
                if time.monotonic() > until:
                    raise

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
