"""The removal of files that nothing needs, while somebody else writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from lakehouse.core.requests import MaintainRequest
from lakehouse.lake import Lake
from tests.support.damaged_tables import FUTURE_DAYS, T, maintainer, rows
from tests.support.light_runs import pyiceberg

REMOVE = MaintainRequest(only=("remove_files",))
NO_DELAY = {"delete_after_hours": 0, "undrop_days": 10_000}


class AfterListing:
    """A store whose listing is followed by what somebody else does."""

    def __init__(self, store: Any, action: Callable[[], None], folders: int = 1) -> None:
        self._store, self._action, self._left = store, action, folders

    def files(self, folder: str) -> Iterator[Any]:
        listed = list(self._store.files(folder))
        self._left -= 1
        if self._left == 0:
            self._action()
        return iter(listed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def racing(lake: Lake, action: Callable[[], None], **settings: Any) -> Any:
    maintained = maintainer(lake, FUTURE_DAYS, **{**NO_DELAY, "keep_snapshots": 1, **settings})
    return replace(maintained, store=AfterListing(maintained.store, action)).run(REMOVE).sweep


def slow_writer(lake: Lake) -> Callable[[], None]:
    """A writer that has written its file and commits it later."""
    table = pyiceberg(lake).load_table(T)
    transaction = table.transaction()
    transaction.append(rows([100]))
    return transaction.commit_transaction
