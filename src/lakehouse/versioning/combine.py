"""Publish changes onto tables that main has changed, too: merges and cherry-picks, where the keys of the rows allow it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakehouse.core.catalog import Catalog
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BranchConflictError, CommitConflictError
from lakehouse.core.files import Files
from lakehouse.core.names import TableName
from lakehouse.core.refs import Change, Commit, Published
from lakehouse.tables.fork import Fork, drop_abandoned, forked, set_pointer
from lakehouse.tables.native_schema import NativeTables
from lakehouse.tables.replay import Divergence, Replayer
from lakehouse.versioning.publish import Publisher

#: How often a publish is tried again because main changed meanwhile.
_MAX_ATTEMPTS = 5


@dataclass(frozen=True)
class Combiner:
    """Publishes changes of tables to main as one commit, whatever main did to other keys of these tables."""

    catalog: Catalog
    publisher: Publisher
    replayer: Replayer
    files: Files

    def obstacles(self, changes: Sequence[Change]) -> dict[TableName, str]:
        """The tables that main has changed in a way that conflicts with a change, each with the reason."""
        return self._obstacles(changes, self.catalog.pointers([change.table for change in changes]))

    def publish(self, changes: Sequence[Change], origin: str, commit: Commit) -> Published:
        """Publish all changes at once; BranchConflictError if one of them conflicts with main.

        Args:
            origin: where the changes come from, for the hook, the history and errors.
        """
        drop_abandoned(self.catalog, "ingest")
        for _ in range(_MAX_ATTEMPTS):
            with forked(self.catalog, "ingest", [change.table for change in changes], self.files) as fork:
                if obstacles := self._obstacles(changes, fork.base):
                    listed = "; ".join(f"{table}: {reason}" for table, reason in obstacles.items())
                    raise BranchConflictError(
                        f"main has changed tables of {origin} since. {listed}.",
                        "Nothing was published. Repeat the changes on a new branch.",
                    )
                for change in changes:
                    self._apply(fork, change, origin)
                if done := self.publisher.publish(fork.branch, commit, origin=origin):
                    return done
        raise CommitConflictError(
            f"Others changed tables of {origin} on main during all {_MAX_ATTEMPTS} attempts to publish.",
            "Nothing was published. Try again.",
        )

    def _obstacles(self, changes: Sequence[Change], now: Mapping[TableName, str | None]) -> dict[TableName, str]:
        reasons = {change.table: self._obstacle(change, now[change.table]) for change in changes}
        return {table: reason for table, reason in reasons.items() if reason}

    def _obstacle(self, change: Change, now: str | None) -> str:
        if now in (change.before, change.after):
            return ""
        if change.before is None or change.after is None or now is None:
            return f"{'added' if change.before is None else 'removed'} on one side and changed on the other"
        return self.replayer.obstacle(Divergence(change.table, change.before, change.after, now))

    def _apply(self, fork: Fork, change: Change, origin: str) -> None:
        """Make a change on a fork of main."""
        now = fork.base[change.table]
        if now == change.after:
            return
        if now is None:
            assert change.after is not None
            NativeTables(fork.branch, fork.on_branch.pyiceberg_properties()).register(change.table, change.after)
        elif now == change.before:
            set_pointer(fork.on_branch, change.table, now, change.after)
        elif change.before is not None and change.after is not None:
            self.replayer.replay(fork, Divergence(change.table, change.before, change.after, now), origin)
