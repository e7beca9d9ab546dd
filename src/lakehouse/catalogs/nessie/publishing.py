"""Publishes all changes of a branch in one commit, and reverts such a commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from lakehouse.catalogs.nessie.annotations import Annotations
from lakehouse.catalogs.nessie.api import Conflict, Content, Key, NessieApi, Reference, put, remove
from lakehouse.catalogs.nessie.contents import TABLE, key_of, name_of, namespace_content, pointer_of, without_id
from lakehouse.catalogs.nessie.history import WRITE, meta_of
from lakehouse.core.errors import TableExistsError
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.refs import Change, Commit, LogEntry, Published

#: The namespace that the first commit creates and the second one removes.
_FIRST = "lake__first"


def ensure_first_commit(api: NessieApi) -> None:
    """Create a commit on main unless there is one: two branches of an empty history have no common ancestor to merge by."""
    main = api.find(MAIN)
    if main is None or main.hash != api.empty_hash():
        return
    meta, key = meta_of(Commit(WRITE, message="create the lake")), (_FIRST,)
    with suppress(Conflict):  # another client was first
        first = api.commit(main, meta, [put(key, namespace_content(_FIRST))])
        api.commit(Reference(MAIN, first), meta, [remove(key)])


def changes(api: NessieApi, branch: Reference) -> list[Change]:
    """Return what a branch has changed since it was created, sorted by table."""
    return [change for change, _ in _changed(api, branch)]


def _changed(api: NessieApi, branch: Reference) -> list[tuple[Change, Content | None]]:
    """Return the same, each with the content that the table had before."""
    changed = []
    for key, before, after in api.diff(f"{branch.name}@{branch.base}", branch.at):
        change = Change(name_of(key), pointer_of(before), pointer_of(after))
        if change.before != change.after:
            changed.append((change, before))
    return sorted(changed, key=lambda pair: pair[0].table)


def conflicts(api: NessieApi, into: Reference, branch: Reference) -> tuple[TableName, ...]:
    """Return the tables that a merge would conflict in, by a dry run."""
    try:
        if changes(api, branch):
            api.merge(into, branch, None, dry_run=True)
    except Conflict as exc:
        return _conflicting_tables(api, branch, exc)
    return ()


def merge(api: NessieApi, into: Reference, branch: Reference, commit: Commit) -> Published:
    """Merge all changes of a branch in one commit."""
    changed = _changed(api, branch)
    if not changed:
        return Published(True)
    names = ", ".join(str(change.table) for change, _ in changed)
    removed = _RemovedTables(api, into.name, changed)
    try:
        return Published(True, api.merge(into, branch, meta_of(commit, names)))
    except Conflict as exc:
        removed.undo()
        return Published(False, conflicts=_conflicting_tables(api, branch, exc))


def _conflicting_tables(api: NessieApi, branch: Reference, conflict: Conflict) -> tuple[TableName, ...]:
    """Return the tables of a conflict; all changed tables where it names only a namespace."""
    changed = [change.table for change in changes(api, branch)]
    named = {name_of(key) for key in conflict.keys}
    return tuple(table for table in changed if table in named) or tuple(changed)


def drop(api: NessieApi, at: Reference, table: TableName, content: Content, commit: Commit) -> bool:
    """Remove a table, if it has not changed since `at`."""
    removed = _RemovedTables(api, at.name, [(Change(table, pointer_of(content), None), content)])
    try:
        api.commit(at, meta_of(commit, str(table)), [remove(key_of(table))])
    except Conflict:
        removed.undo()
        return False
    return True


def undrop(  # noqa: PLR0913 - the table, what is there now, and what was
    api: NessieApi,
    at: Reference,
    table: TableName,
    existing: Content | None,
    dropped: tuple[Key, Content],
    commit: Commit,
) -> None:
    """Restore a table that was dropped, if its name is free."""
    stored_key, content = dropped
    try:
        if existing is not None:
            raise Conflict(str(table))
        api.commit(at, meta_of(commit, str(table)), [put(key_of(table), without_id(content))])
    except Conflict as exc:
        raise TableExistsError(
            f"There is a table {table} again, so the dropped one cannot be restored under that name.",
            f"Rename the new one first: lake sql 'alter table {table} rename to {table}_new'",
        ) from exc
    Annotations(api).remove([stored_key])


def revert(api: NessieApi, at: Reference, undone: LogEntry, commit: Commit) -> Published:
    """Restore each table of a commit to the state before it, if none has changed since."""
    keys = [key_of(change.table) for change in undone.tables]
    now = api.contents(at.at, keys)[0]
    if conflicts := _changed_since(undone, now):
        return Published(False, conflicts=conflicts)
    before = api.contents(f"{at.name}@{undone.id}~1", keys)[0]
    back = [(change.reversed(), now.get(key_of(change.table))) for change in undone.tables]
    removed = _RemovedTables(api, at.name, back)
    operations = []
    for change, content in back:
        key = key_of(change.table)
        if change.after is None:
            operations.append(remove(key))
        else:
            earlier = without_id(before[key])
            operations.append(put(key, {**earlier, "id": content["id"]} if content else earlier))
    try:
        return Published(
            True, api.commit(at, meta_of(commit, ", ".join(str(change.table) for change, _ in back)), operations)
        )
    except Conflict:
        removed.undo()
        conflicts = _changed_since(undone, api.contents(at.name, keys)[0])
        return Published(False, conflicts=conflicts or tuple(change.table for change in undone.tables))


def _changed_since(entry: LogEntry, now: Mapping[Key, Content]) -> tuple[TableName, ...]:
    """Return the tables of a log entry that are no longer as it left them."""
    return tuple(change.table for change in entry.tables if pointer_of(now.get(key_of(change.table))) != change.after)


class _RemovedTables:
    """The tables that a commit removes. They are stored for `undrop` before the commit, so that a crash loses none."""

    def __init__(self, api: NessieApi, branch: str, changed: Iterable[tuple[Change, Content | None]]) -> None:
        self._annotations = Annotations(api)
        gone = {change.table: content for change, content in changed if change.after is None and content is not None}
        self._keys = self._annotations.store_dropped(
            branch, {table: content for table, content in gone.items() if content["type"] == TABLE}
        )

    def undo(self) -> None:
        """Forget the stored tables: the commit failed."""
        self._annotations.remove(self._keys)
