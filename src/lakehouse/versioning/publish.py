"""Publish branches to main: run the hook on the diff, then publish all tables in one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lakehouse.core.cancel import commit as committed
from lakehouse.core.catalog import Catalog
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import CatalogUnreachableError, NoSuchBranchError
from lakehouse.core.names import MAIN
from lakehouse.core.refs import Change, Commit, Published
from lakehouse.versioning import hooks

#: Describes changes from metadata alone.
DescribeChanges = Callable[[Sequence[Change]], list[dict[str, Any]]]

#: How long, and how often, a catalog that stopped answering during a publish is polled for the outcome.
RECOVERY_TIMEOUT_S, _POLL_INTERVAL_S = 60.0, 1.0


@dataclass(frozen=True)
class Publisher:
    """Publishes branches to main."""

    catalog: Catalog
    describe: DescribeChanges
    hook: Sequence[str] = ()
    protected: Sequence[str] = ()
    """Branches that only runs may change."""

    def publish(self, branch: str, commit: Commit, tag: str = "", origin: str = "") -> Published:
        """Publish a branch, unless the hook refuses or main changed its tables.

        Args:
            origin: what the hook gets as the branch (default: its name).
        """
        self.run_hook(origin or branch, self.catalog.changes(branch), commit)
        try:
            return committed(lambda: self.catalog.publish(branch, commit, tag))
        except CatalogUnreachableError:
            if not commit.run:  # without a run id, the publish cannot be found again
                raise
            return self._recover(branch, commit, tag)

    def _recover(self, branch: str, commit: Commit, tag: str) -> Published:
        """The outcome of a publish whose response was lost; published now if it was not."""
        deadline = time.monotonic() + RECOVERY_TIMEOUT_S
        while True:
            time.sleep(_POLL_INTERVAL_S)
            try:
                done = self.catalog.published_by(commit.run)
                if done:
                    return Published(True, done.id)
                return committed(lambda: self.catalog.publish(branch, commit, tag))
            # No branch: the first publish was still in progress, and finished between the two requests.
            except (CatalogUnreachableError, NoSuchBranchError):
                if time.monotonic() > deadline:
                    raise

    def revert(self, entry: str, changes: Sequence[Change], commit: Commit) -> Published:
        """Undo an entry of the log, unless the hook refuses or its tables have changed."""
        self.run_hook(f"revert of {entry}", changes, commit)
        return self.catalog.revert(entry, commit)

    def run_hook(self, branch: str, changes: Sequence[Change], commit: Commit) -> None:
        """Run the hook, if there is one and there are changes."""
        if self.hook and changes:
            hooks.run_hook(self.hook, self._diff(branch, changes, commit))

    def _diff(self, branch: str, changes: Sequence[Change], commit: Commit) -> Mapping[str, Any]:
        origin = {"author": commit.author, "run": commit.run, "pipeline": commit.pipeline, "message": commit.message}
        return {"branch": branch, "into": MAIN, **origin, "tables": self.describe(changes)}
