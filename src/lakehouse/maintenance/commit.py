"""Commits new metadata of a table: on a branch of its own, published as a run is, if the table has not changed since."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lakehouse.core.catalog import Catalog
from lakehouse.core.files import Files
from lakehouse.core.metadata_file import write_next
from lakehouse.core.names import TableName
from lakehouse.core.refs import Commit, Published

#: The branches of maintenance; one that was killed leaves its branch, which the next one drops.
BRANCH_PREFIX = "maintain_"
KIND = "maintain"

#: Publishes a branch: the catalog's own method, or one that runs the user's hook first.
Publish = Callable[[str, Commit], Published]


@dataclass(frozen=True)
class Committer:
    """Replaces the metadata of tables."""

    catalog: Catalog
    files: Files
    publish: Publish
    author: str = ""

    def commit(self, table: TableName, expected: str, raw: Mapping[str, Any], message: str) -> str:
        """Make `raw` the metadata of a table if its pointer is still `expected`; returns the pointer, empty if it is not."""
        new = write_next(expected, raw, self.files)
        with forked(self.catalog, table, expected) as branch:
            if not branch or not self.catalog.on(branch).swap_pointer(table, expected, new):
                return ""
            return new if self.publish(branch, self.signed(message)) else ""

    def signed(self, message: str) -> Commit:
        """Return who commits and why."""
        return Commit(KIND, self.author, message)


@contextmanager
def forked(catalog: Catalog, table: TableName, expected: str) -> Iterator[str]:
    """A new branch with a table, until the end of the block; empty if the table's pointer is not `expected` any more."""
    branch = f"{BRANCH_PREFIX}{uuid.uuid4().hex[:12]}"
    try:
        yield branch if catalog.fork(branch, [table])[table] == expected else ""
    finally:
        catalog.drop_branch(branch)  # it is gone already if it was published
