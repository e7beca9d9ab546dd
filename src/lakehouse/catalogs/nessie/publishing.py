"""Publishing: all changes of a branch as one commit, or none of them; and undoing such a commit."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from lakehouse.catalogs.nessie.api import Conflict, Content, NessieApi, Reference, put, remove
from lakehouse.catalogs.nessie.contents import TABLE, key_of, name_of, namespace_content, new, pointer_of
from lakehouse.catalogs.nessie.history import WRITE, meta_of
from lakehouse.catalogs.nessie.kept import Kept
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.refs import Change, Commit, LogEntry, Published

#: What the very first commit puts and the second one takes away again.
_FIRST = "lake__first"


def begin(api: NessieApi) -> None:
    """See that main has a commit: two branches that both began with nothing have no ancestor to be merged by."""
    main = api.find(MAIN)
    if main is None or main.hash != api.nothing():
        return
    meta, key = meta_of(Commit(WRITE, message="the lake begins")), (_FIRST,)
    with suppress(Conflict):  # others began it in the same moment
        first = api.commit(main, meta, [put(key, namespace_content(_FIRST))])
        api.commit(Reference(MAIN, first), meta, [remove(key)])


def changes(api: NessieApi, branch: Reference) -> list[Change]:
    """What a branch has changed since it left main, by the tables' names."""
    return [change for change, _ in _changed(api, branch)]


def _changed(api: NessieApi, branch: Reference) -> list[tuple[Change, Content | None]]:
    """The same, each with the content that the table had before."""
    found = []
    for key, before, after in api.diff(f"{branch.name}@{branch.base}", branch.at):
        change = Change(name_of(key), pointer_of(before), pointer_of(after))
        if change.before != change.after:
            found.append((change, before))
    return sorted(found, key=lambda each: each[0].table)


def conflicts(api: NessieApi, into: Reference, branch: Reference) -> tuple[TableName, ...]:
    """The tables that stand in the way of a merge, found by one that is only tried."""
    try:
        if changes(api, branch):
            api.merge(into, branch, None, dry_run=True)
    except Conflict as exc:
        return _tables(api, branch, exc)
    return ()


def merge(api: NessieApi, into: Reference, branch: Reference, commit: Commit) -> Published:
    """Everything that a branch has changed, as it was seen, in one commit."""
    changed = _changed(api, branch)
    if not changed:
        return Published(True)
    names = ", ".join(str(change.table) for change, _ in changed)
    with_drops = _Keeping(api, into.name, changed)
    try:
        return Published(True, api.merge(into, branch, meta_of(commit, names)))
    except Conflict as exc:
        with_drops.take_back()
        return Published(False, moved=_tables(api, branch, exc))


def _tables(api: NessieApi, branch: Reference, conflict: Conflict) -> tuple[TableName, ...]:
    """The tables of a conflict. Where only a namespace is in the way, its tables are."""
    changed = [change.table for change in changes(api, branch)]
    named = {name_of(key) for key in conflict.keys}
    return tuple(table for table in changed if table in named) or tuple(changed)


def drop(api: NessieApi, at: Reference, table: TableName, content: Content, commit: Commit) -> bool:
    """Take a table away, if it is still what was seen."""
    keeping = _Keeping(api, at.name, [(Change(table, pointer_of(content), None), content)])
    try:
        api.commit(at, meta_of(commit, str(table)), [remove(key_of(table))])
    except Conflict:
        keeping.take_back()
        return False
    return True


def revert(api: NessieApi, at: Reference, undone: LogEntry, commit: Commit) -> Published:
    """Put back what each table of a commit was before it, if none has moved since."""
    keys = [key_of(change.table) for change in undone.tables]
    now = api.contents(at.at, keys)[0]
    moved = tuple(each.table for each in undone.tables if pointer_of(now.get(key_of(each.table))) != each.after)
    if moved:
        return Published(False, moved=moved)
    before = api.contents(f"{at.name}@{undone.id}~1", keys)[0]
    back = [(Change(each.table, each.after, each.before), now.get(key_of(each.table))) for each in undone.tables]
    keeping = _Keeping(api, at.name, back)
    operations = []
    for change, content in back:
        key = key_of(change.table)
        if change.after is None:
            operations.append(remove(key))
        else:
            earlier = new(before[key])
            operations.append(put(key, {**earlier, "id": content["id"]} if content else earlier))
    try:
        return Published(
            True, api.commit(at, meta_of(commit, ", ".join(str(each.table) for each, _ in back)), operations)
        )
    except Conflict:
        keeping.take_back()
        now = api.contents(at.name, keys)[0]
        moved = tuple(each.table for each in undone.tables if pointer_of(now.get(key_of(each.table))) != each.after)
        return Published(False, moved=moved or tuple(each.table for each in undone.tables))


class _Keeping:
    """The tables that a commit removes, kept for `undrop` before it is made: a table must never be nowhere."""

    def __init__(self, api: NessieApi, branch: str, wanted: Iterable[tuple[Change, Content | None]]) -> None:
        self._kept = Kept(api)
        gone = {change.table: content for change, content in wanted if change.after is None and content is not None}
        self._keys = self._kept.keep(
            branch, {each: content for each, content in gone.items() if content["type"] == TABLE}
        )

    def take_back(self) -> None:
        """The commit was not made after all."""
        self._kept.remove(self._keys)
