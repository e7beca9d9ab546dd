"""Read everything that a Nessie server holds, and replay the content of another catalog as commits, branches and tags.

A replay is built on a branch of its own. Main is assigned to its last commit at the end, so that a replay that was killed
leaves main as it was, and the next one starts again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from lakehouse.catalogs.nessie import contents, history, publishing, refs
from lakehouse.catalogs.nessie.annotations import BRANCH, Annotations, dropped_key, time_of
from lakehouse.catalogs.nessie.api import Content, NessieApi, Reference, put, remove
from lakehouse.catalogs.nessie.contents import NAMESPACE, VIEW, key_of, name_of, pointer_of
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BadNameError, TableExistsError
from lakehouse.core.files import Files
from lakehouse.core.metadata_file import load_metadata
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.refs import Commit, LogEntry, Ref
from lakehouse.core.state import BranchState, CatalogState, DroppedTable, Namespaces, TableEntry, TagState

LOADING = "lake__loading"
_TAGGING = "lake__tagging"


def dump(api: NessieApi) -> CatalogState:
    """Return everything that the server holds; each branch and tag at one commit."""
    references = {reference.name: reference for reference in api.references()}
    main, namespaces = _tables(api, references[MAIN].at)
    branches = []
    for ref in refs.list_refs(api, "branch"):
        if ref.name in references and ref.name != LOADING:
            base = refs.existing(api, ref.name).base
            base_tables = _tables(api, f"{ref.name}@{base}")[0] if base else ()
            branches.append(_branch(ref, api, references[ref.name], base_tables))
    tags = [TagState(ref, _tables(api, references[ref.name].at)[0]) for ref in refs.list_refs(api, "tag")]
    log = [replace(entry, branch=MAIN) for entry in history.entries(api, MAIN, only=history.BY_LAKE)]
    return CatalogState(
        main=main,
        namespaces=namespaces,
        branches=tuple(branches),
        tags=tuple(tags),
        dropped=tuple(_dropped(api)),
        log=(*Annotations(api).discarded(), *reversed(log)),
    )


def _tables(api: NessieApi, at: str) -> tuple[tuple[TableEntry, ...], Namespaces]:
    entries = list(api.entries(at))
    pointers = ((name_of(key), pointer_of(content), content["type"] == VIEW) for key, content in entries)
    tables = sorted(
        (TableEntry(name, pointer, view) for name, pointer, view in pointers if pointer is not None),
        key=lambda entry: entry.table,
    )
    spaces = {
        ".".join(key): content.get("properties") or {} for key, content in entries if content["type"] == NAMESPACE
    }
    return tuple(tables), spaces


def _branch(ref: Ref, api: NessieApi, reference: Reference, base: tuple[TableEntry, ...]) -> BranchState:
    """Return a branch. One that was created for some tables has no others in it, as in the other catalogs."""
    tables, namespaces = _tables(api, reference.at)
    only = set((Annotations(api).note_of("branch", ref.name) or {}).get("tables", "").split())
    if only:
        tables, base = (tuple(entry for entry in part if str(entry.table) in only) for part in (tables, base))
    return BranchState(ref, tables, base, namespaces)


def _dropped(api: NessieApi) -> Iterator[DroppedTable]:
    for key, content in Annotations(api).entries("dropped"):
        _, branch, table = dropped_key(key)
        yield DroppedTable(branch, TableEntry(table, str(pointer_of(content))), time_of(key))


# ---- replay -----------------------------------------------------------------------------------------------------

State = dict[TableName, TableEntry]


@dataclass
class _Line:
    """A branch that commits are added to, and what it holds after the last one."""

    api: NessieApi
    at: Reference
    tables: State = field(default_factory=dict)
    namespaces: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def commit(self, wanted: State, meta: Mapping[str, Any], content_of: Callable[[TableEntry], Content]) -> bool:
        """Add one commit that leads to these tables; False if they are there already."""
        operations: list[dict[str, Any]] = []
        for name in sorted(set(self.tables) - set(wanted)):
            operations.append(remove(key_of(name)))
        changed = [entry for name, entry in sorted(wanted.items()) if self.tables.get(name) != entry]
        operations += [
            put(tuple(space.split(".")), contents.namespace_content(space))
            for space in dict.fromkeys(level for entry in changed for level in _levels(entry.table.namespace))
            if space not in self.namespaces
        ]
        operations += [put(key_of(entry.table), self._content(entry, content_of)) for entry in changed]
        if not operations:
            return False
        self._send(operations, meta)
        self.namespaces |= {
            space: {} for entry in changed for space in _levels(entry.table.namespace)
        } | self.namespaces
        self.tables = dict(wanted)
        return True

    def add_namespaces(self, wanted: Namespaces, meta: Mapping[str, Any]) -> None:
        """Create namespaces, and set their properties."""
        missing = {
            level: dict(wanted.get(level, {}))
            for space in wanted
            for level in _levels(space)
            if self.namespaces.get(level) != wanted.get(level, {})
        }
        existing = self.api.contents(self.at.at, [tuple(space.split(".")) for space in missing])[0] if missing else {}
        operations = []
        for space, properties in sorted(missing.items()):
            key = tuple(space.split("."))
            content = contents.namespace_content(space, properties)
            operations.append(put(key, {**content, "id": existing[key]["id"]} if key in existing else content))
        if operations:
            self._send(operations, meta)
            self.namespaces |= missing

    def _content(self, entry: TableEntry, content_of: Callable[[TableEntry], Content]) -> dict[str, Any]:
        key, before = key_of(entry.table), self.tables.get(entry.table)
        content = dict(content_of(entry))
        if before is not None and before.is_view == entry.is_view:
            content["id"] = self.api.contents(self.at.at, [key])[0][key]["id"]
        return content

    def _send(self, operations: Sequence[Mapping[str, Any]], meta: Mapping[str, Any]) -> None:
        self.at = Reference(self.at.name, self.api.commit(self.at, meta, operations))

    def fork(self, name: str) -> _Line:
        """Create a branch from the last commit."""
        created = self.api.create(name, "BRANCH", self.at)
        return _Line(self.api, created, dict(self.tables), dict(self.namespaces))


def _levels(namespace: str) -> list[str]:
    parts = namespace.split(".")
    return [".".join(parts[: count + 1]) for count in range(len(parts))]


class Replay:
    """Fills an empty server with the content of another catalog."""

    def __init__(self, api: NessieApi, files: Files, content: CatalogState) -> None:
        self._api, self._files, self._state = api, files, content
        self._contents: dict[TableEntry, Content | None] = {}
        self._notes: list[str] = []

    def run(self) -> list[str]:
        """Replay everything and return what Nessie cannot hold."""
        if self._is_done():
            return []
        publishing.ensure_first_commit(self._api)
        main = self._api.find(MAIN)
        assert main is not None
        line = _Line(self._api, self._api.create(LOADING, "BRANCH", main))
        events: list[tuple[str, LogEntry | BranchState]] = [(entry.at, entry) for entry in self._state.log]
        events += [(branch.ref.created_at, branch) for branch in self._branches()]
        events.sort(key=lambda event: (not event[0], event[0]))
        for _, event in events:
            if isinstance(event, BranchState):
                self._add_branch(line, event)
            elif event.branch == MAIN:
                self._add_entry(line, event)
        meta = history.meta_of(Commit(history.WRITE, message="state of main"))
        line.add_namespaces(self._state.namespaces, meta)
        line.commit(_by_name(self._state.main), meta, self._existing)
        for tag in self._state.tags:
            self._add_tag(line, tag)
        for dropped in self._state.dropped:
            Annotations(self._api).store_dropped(dropped.branch, {dropped.entry.table: self._existing(dropped.entry)})
        self._api.assign(main, line.at)
        self._api.delete(line.at)
        return self._notes

    def _is_done(self) -> bool:
        """Return whether an earlier call was killed after its end; one that was killed before it is undone."""
        references = {reference.name: reference for reference in self._api.references()}
        others = [reference for name, reference in references.items() if name not in (MAIN, BRANCH, LOADING)]
        if LOADING not in references:
            tables = _tables(self._api, MAIN)[0]
            if tables or others:
                names = ", ".join([*(str(entry.table) for entry in tables), *(other.name for other in others)][:3])
                raise TableExistsError(
                    f"The catalog is not empty: it holds {names}.", "Restore into a new Nessie server."
                )
            return False
        if self._state.main and set(_tables(self._api, MAIN)[0]) == set(self._state.main):
            self._api.delete(references[LOADING])
            return True
        for reference in (*others, *(references[name] for name in (BRANCH, LOADING) if name in references)):
            self._api.delete(reference)
        return False

    def _branches(self) -> list[BranchState]:
        """Return the branches whose names Nessie takes."""
        return [branch for branch in self._state.branches if self._takes("branch", branch.ref.name)]

    def _takes(self, kind: str, name: str) -> bool:
        try:
            refs.check_name(kind, name)
        except BadNameError as exc:
            self._notes.append(f"{kind} {name}: {exc.message}")
            return False
        return True

    def _add_entry(self, line: _Line, entry: LogEntry) -> None:
        # Engines commit without the log, so the state before an entry need not be the one after the entry before it.
        start = self._changed(line.tables, [(change.table, change.before) for change in entry.tables])
        meta = history.meta_of(Commit(history.WRITE, message=f"state before log entry {entry.id}"))
        line.commit(start, meta, self._existing)
        meta = history.meta_of(entry.commit, ", ".join(str(change.table) for change in entry.tables))
        meta["allProperties"] = {**meta["allProperties"], "lake.at": [entry.at]}
        wanted = self._changed(line.tables, [(change.table, change.after) for change in entry.tables])
        before = line.at.hash
        if not line.commit(wanted, meta, self._existing):
            self._notes.append(f"log entry {entry.id} ({entry.commit.kind}): the files of its state have expired")
        elif entry.commit.kind in ("publish", "merge"):
            history.note_run(Annotations(self._api), MAIN, entry.commit.run, before, line.at.hash)

    def _changed(self, tables: State, pointers: Sequence[tuple[TableName, str | None]]) -> State:
        """Return a state with other pointers; a table whose metadata file has expired stays as it is."""
        wanted = dict(tables)
        for table, pointer in pointers:
            if pointer is None:
                wanted.pop(table, None)
            elif (logged := self._logged(table, pointer)) is not None:
                wanted[table] = logged
        return wanted

    def _logged(self, table: TableName, pointer: str) -> TableEntry | None:
        """Return what the log refers to as a table or a view; None if its metadata file has expired."""
        try:
            return TableEntry(table, pointer, "view-uuid" in load_metadata(pointer, self._files))
        except FileNotFoundError:
            return None

    def _add_branch(self, line: _Line, branch: BranchState) -> None:
        """Create a branch from a commit that holds its base, so that it has the changes that it had, and no others."""
        base, ref = _by_name(branch.base), branch.ref
        meta = history.meta_of(Commit(history.WRITE, message=f"base of {ref.name}"))
        line.commit({**line.tables, **base}, meta, self._existing)
        self._note("branch", ref, " ".join(str(entry.table) for entry in (*branch.tables, *branch.base)))
        forked = line.fork(ref.name)
        kept = {name: entry for name, entry in forked.tables.items() if name not in base}
        meta = history.meta_of(Commit(history.WRITE, message=f"changes of {ref.name}"))
        forked.commit({**kept, **_by_name(branch.tables)}, meta, self._existing)

    def _add_tag(self, line: _Line, tag: TagState) -> None:
        if not self._takes("tag", tag.ref.name):
            return
        self._note("tag", tag.ref)
        tagged = line.fork(_TAGGING)
        meta = history.meta_of(Commit(history.WRITE, message=f"state of {tag.ref.name}"))
        tagged.commit(_by_name(tag.tables), meta, self._existing)
        self._api.create(tag.ref.name, "TAG", tagged.at)
        self._api.delete(tagged.at)

    def _note(self, kind: str, ref: Ref, tables: str = "") -> None:
        note = {"made_from": ref.created_from, "state": ref.state, "made_at": ref.created_at, "author": ref.author}
        note |= {"message": ref.message, **({"tables": tables} if tables else {})}
        Annotations(self._api).note(kind, ref.name, note)

    def _existing(self, entry: TableEntry) -> Content:
        content = self._content(entry)
        if content is None:
            raise FileNotFoundError(entry.pointer)
        return content

    def _content(self, entry: TableEntry) -> Content | None:
        """Return what Nessie stores for a metadata file; None if the file has expired."""
        if entry not in self._contents:
            try:
                metadata = load_metadata(entry.pointer, self._files)
            except FileNotFoundError:
                self._contents[entry] = None
            else:
                make = contents.view_content if entry.is_view else contents.table_content
                self._contents[entry] = make(entry.pointer, metadata)
        return self._contents[entry]


def _by_name(entries: Sequence[TableEntry]) -> State:
    return {entry.table: entry for entry in entries}
