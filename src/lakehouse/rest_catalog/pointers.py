"""The SQL catalog's rows on every branch, with errors of the REST protocol.

Several pointers are replaced in one transaction or not at all, each only if it is still what the request was based on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from lakehouse.catalogs.sql import namespaces, rows
from lakehouse.catalogs.sql.publishing import ConflictError
from lakehouse.catalogs.sql.rows import TABLE, VIEW
from lakehouse.core.dataclass import dataclass
from lakehouse.core.names import TableName
from lakehouse.rest_catalog.errors import (
    AlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    RestError,
)
from lakehouse.rest_catalog.messages import TransactionHook, no_hook
from lakehouse.rest_catalog.names import format_name, format_namespace

if TYPE_CHECKING:
    from lakehouse.catalogs.sql.database import Database, Transaction

_TITLE = {TABLE: "Table", VIEW: "View"}
#: The width of the column.
_MAX_LOCATION = 1000


@dataclass(frozen=True)
class Swap:
    """The replacement of one pointer; `start` is None for a new table or view."""

    name: TableName
    start: str | None
    end: str
    kind: str = TABLE


class Pointers:
    """The pointers of every table and view on every branch."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, branch: str, name: TableName, kind: str = TABLE) -> str | None:
        """Return the pointer of a table or view, or None if there is none of that kind and name."""
        with self._database.reading() as db:
            return rows.pointer(db, branch, name, kind)

    def get(self, branch: str, name: TableName, kind: str = TABLE) -> str:
        """Return the pointer of a table or view that must exist."""
        pointer = self.find(branch, name, kind)
        if pointer is None:
            raise missing(name, kind)
        return pointer

    def names(self, branch: str, namespace: str, kind: str, after: str = "", limit: int = 0) -> list[str]:
        """Return the names in a namespace in order: all of them, or at most `limit` after one."""
        with self._database.reading() as db:
            check_namespace(db, branch, namespace)
            return rows.names(db, branch, namespace, kind, after, limit)

    def check_free(self, branch: str, name: TableName, kind: str) -> None:
        """Refuse a name that is taken, or whose namespace does not exist."""
        with self._database.reading() as db:
            _check_free(db, branch, name, kind)

    def swap(self, branch: str, swaps: Sequence[Swap], hook: TransactionHook = no_hook) -> bool:
        """Replace all pointers; False, and none is replaced, if one has changed. A new name that is taken is an error."""

        def work(db: Transaction) -> None:
            # In one order for all, so that two transactions cannot deadlock.
            for swap in sorted(swaps, key=lambda swap: swap.name):
                _swap(db, branch, swap)
            hook(db)

        try:
            self._database.write(work)
        except ConflictError:
            return False
        return True

    def rename(self, branch: str, start: TableName, end: TableName, kind: str, hook: TransactionHook = no_hook) -> None:
        """Rename a table or view, perhaps into another namespace."""
        with self._database.transaction() as db:
            if rows.pointer(db, branch, start, kind) is None:
                raise missing(start, kind)
            try:
                _check_free(db, branch, end, kind)
            except AlreadyExistsError as exc:
                what = f"{exc.message.partition(' ')[0]} already exists"
                raise AlreadyExistsError(f"Cannot rename {format_name(start)} to {format_name(end)}. {what}") from exc
            rows.rename(db, branch, start, end)
            hook(db)

    def drop_view(self, branch: str, name: TableName, hook: TransactionHook = no_hook) -> None:
        """Delete a view and keep its metadata file."""
        with self._database.transaction() as db:
            if not rows.delete(db, branch, name, VIEW):
                raise missing(name, VIEW)
            hook(db)


class Namespaces:
    """The namespaces of every branch and their properties."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keys(self, branch: str) -> set[str]:
        """Return every namespace that has rows."""
        with self._database.reading() as db:
            return namespaces.names(db, branch)

    def exists(self, branch: str, key: str) -> bool:
        """Return whether there is such a namespace."""
        with self._database.reading() as db:
            return namespaces.exists(db, branch, key)

    def properties(self, branch: str, key: str) -> dict[str, str]:
        """Return the properties of a namespace."""
        with self._database.reading() as db:
            check_namespace(db, branch, key)
            return namespaces.properties(db, branch, key)

    def create(self, branch: str, key: str, properties: Mapping[str, str], hook: TransactionHook = no_hook) -> None:
        """Create a namespace."""
        _check_properties(properties)
        with self._database.transaction() as db:
            if namespaces.exists(db, branch, key) or not namespaces.ensure(db, branch, key):
                raise AlreadyExistsError(f"Namespace already exists: {format_namespace(key)}")
            namespaces.update(db, branch, key, properties, ())
            hook(db)

    def change(
        self, branch: str, key: str, updates: Mapping[str, str], removals: Iterable[str], hook: TransactionHook
    ) -> None:
        """Set and remove properties."""
        _check_properties(updates)
        with self._database.transaction() as db:
            check_namespace(db, branch, key)
            namespaces.update(db, branch, key, updates, set(removals) - {namespaces.MARKER})
            hook(db)

    def drop(self, branch: str, key: str, hook: TransactionHook = no_hook) -> None:
        """Delete an empty namespace."""
        with self._database.transaction() as db:
            check_namespace(db, branch, key)
            if not namespaces.is_empty(db, branch, key):
                raise NamespaceNotEmptyError(f"Namespace is not empty: {format_namespace(key)}")
            namespaces.drop(db, branch, key)
            hook(db)


def missing(name: TableName, kind: str) -> RestError:
    """Return the error for a table or view that does not exist."""
    problem = NoSuchTableError if kind == TABLE else NoSuchViewError
    return problem(f"{_TITLE[kind]} does not exist: {format_name(name)}")


def check_namespace(db: Transaction, branch: str, key: str) -> None:
    """Refuse a namespace that does not exist."""
    if not namespaces.exists(db, branch, key):
        raise NoSuchNamespaceError(f"Namespace does not exist: {format_namespace(key)}")


def _swap(db: Transaction, branch: str, swap: Swap) -> None:
    if len(swap.end) > _MAX_LOCATION:
        raise RestError(f"The location of {format_name(swap.name)} is longer than {_MAX_LOCATION} characters.")
    if swap.start is not None:
        if not rows.swap(db, branch, swap.name, swap.start, swap.end, swap.kind):
            raise ConflictError(swap.name)
        return
    _check_free(db, branch, swap.name, swap.kind)
    # Another transaction may insert the same name meanwhile; the primary key decides which one was first.
    if not rows.add(db, branch, swap.name, swap.end, swap.kind):
        raise AlreadyExistsError(f"{_TITLE[swap.kind]} already exists: {format_name(swap.name)}")


def _check_free(db: Transaction, branch: str, name: TableName, kind: str) -> None:
    check_namespace(db, branch, name.namespace)
    existing_kind = rows.type_of(db, branch, name)
    if existing_kind is not None:
        same = "already exists" if existing_kind == kind else "with same name already exists"
        raise AlreadyExistsError(f"{_TITLE[existing_kind]} {same}: {format_name(name)}")


def _check_properties(properties: Mapping[str, str]) -> None:
    if namespaces.MARKER in properties:
        raise RestError(f"The property {namespaces.MARKER!r} of a namespace is reserved.")
    for name, value in properties.items():
        if not name or len(name) > namespaces.MAX_KEY or len(value) > namespaces.MAX_VALUE:
            raise RestError(
                f"The property {name[:40]!r} is too long.",
                f"A name may have {namespaces.MAX_KEY} characters, a value {namespaces.MAX_VALUE}.",
            )
