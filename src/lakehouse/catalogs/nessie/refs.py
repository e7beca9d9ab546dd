"""Branches and tags: Nessie's own, each with a note of who created it from what and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import takewhile

from lakehouse.catalogs.nessie import history, publishing
from lakehouse.catalogs.nessie.annotations import BRANCH, Annotations
from lakehouse.catalogs.nessie.api import Conflict, NessieApi, Reference
from lakehouse.catalogs.nessie.contents import name_of, pointer_of
from lakehouse.core.errors import BadNameError, BranchExistsError, NoSuchBranchError
from lakehouse.core.names import CATALOG, MAIN, TableName, check_part, nearest
from lakehouse.core.refs import Commit, ReachableFile, Ref, hash_pointers

#: Names that have another meaning in Spark or in the catalog.
_RESERVED = (CATALOG, MAIN, "spark_catalog")
_RESERVED_PREFIX = "lake__"
_KINDS = {"branch": "BRANCH", "tag": "TAG"}


def branch_names(api: NessieApi) -> list[str]:
    """Return the names of all branches except main."""
    return [reference.name for reference in _all(api, "branch")]


def list_refs(api: NessieApi, kind: str) -> list[Ref]:
    """Return all branches or tags, sorted by name. One that the lake did not create has only a name and a state."""
    notes = Annotations(api).notes(kind)
    return [_ref(reference, notes.get(reference.name, {})) for reference in _all(api, kind)]


def _all(api: NessieApi, kind: str) -> list[Reference]:
    references = [
        reference
        for reference in api.references()
        if reference.type == _KINDS[kind] and reference.name not in (MAIN, BRANCH)
    ]
    return sorted(references, key=lambda reference: reference.name)


def _ref(reference: Reference, note: Mapping[str, str]) -> Ref:
    return Ref(
        name=reference.name,
        created_from=note.get("made_from", ""),
        state=note.get("state", reference.hash[:16]),
        created_at=note.get("made_at", ""),
        author=note.get("author", ""),
        message=note.get("message", ""),
    )


def source(api: NessieApi, name: str) -> Reference:
    """Return the reference to create a branch or tag from: main, a branch or a tag."""
    reference = api.find(MAIN if name == CATALOG else name) if name != BRANCH else None
    if reference is None:
        known = [other.name for other in api.references() if other.name != BRANCH]
        near = ", ".join(nearest(name, known) or known[:10])
        raise NoSuchBranchError(
            f"There is no branch or tag {name}.", f"Did you mean {near}? All of them: lake branch list"
        )
    return reference


def existing(api: NessieApi, branch: str) -> Reference:
    """Return a branch other than main, with the commit that it was created from."""
    reference = api.find(branch, with_base=True)
    if reference is None or reference.type != "BRANCH" or branch in (MAIN, BRANCH):
        known = ", ".join(branch_names(api)[:10]) or "none"
        raise NoSuchBranchError(f"There is no branch {branch}.", f"There are: {known}.")
    return reference


def create(
    api: NessieApi,
    kind: str,
    name: str,
    start: Reference,
    commit: Commit,
    extra: Mapping[str, str] | None = None,
) -> None:
    """Create a branch or tag. Its note is stored first: a branch without one could not be cleaned up."""
    check_name(kind, name)
    taken = api.find(name)
    if taken is not None:
        raise _name_taken(taken.type.lower(), name)
    note = {
        "made_from": start.name,
        "state": hash_pointers(pointers(api, start.at)),
        "made_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "author": commit.author,
        "message": commit.message,
        **(extra or {}),
    }
    Annotations(api).note(kind, name, note)
    try:
        api.create(name, _KINDS[kind], start)
    except Conflict as exc:
        raise _name_taken(kind, name) from exc


def check_name(kind: str, name: str) -> None:
    """Refuse an invalid name of a branch or tag."""
    check_part(name, kind)
    if name in _RESERVED or name.startswith(_RESERVED_PREFIX):
        raise BadNameError(f"The catalog itself uses the name {name!r}.", "Choose another name for the branch or tag.")
    if not name[0].isalpha():
        raise BadNameError(f"{name!r} cannot be the name of a {kind} in Nessie.", "Start it with a letter.")


def _name_taken(kind: str, name: str) -> BranchExistsError:
    return BranchExistsError(f"There is a {kind} {name} already.", f"lake {kind} list")


def drop(api: NessieApi, kind: str, name: str) -> bool:
    """Delete a branch or tag in whatever state it is; False if there is none."""
    if name in _RESERVED or name.startswith(_RESERVED_PREFIX):
        return False
    while (reference := api.find(name, with_base=True)) is not None and reference.type == _KINDS[kind]:
        if kind == "branch" and reference.base:
            # Without it, maintenance does not know the folders of tables that only this branch has.
            Annotations(api).store_discarded(name, publishing.changes(api, reference))
        with suppress(Conflict):  # another client wrote to it at the same time
            if api.delete(reference):
                Annotations(api).remove_note(kind, name)
                return True
    return False


def drop_if_unchanged(api: NessieApi, kind: str, seen: Reference) -> None:
    """Delete a branch unless it has been written to since it was read."""
    with suppress(Conflict):
        api.delete(seen)
        Annotations(api).remove_note(kind, seen.name)


def pointers(api: NessieApi, at: str) -> dict[TableName, str]:
    """Return the pointers of all tables and views."""
    listed = ((name_of(key), pointer_of(content)) for key, content in api.entries(at))
    return {name: pointer for name, pointer in listed if pointer is not None}


def reachable(api: NessieApi, since: str) -> list[ReachableFile]:
    """Return every metadata file that main, a branch, a tag, a dropped table or the history refers to."""
    return list(_reachable(api, since))


def _reachable(api: NessieApi, since: str) -> Iterator[ReachableFile]:
    for reference in api.references():
        by = {BRANCH: "dropped", MAIN: MAIN}.get(reference.name, f"{reference.type.lower()} {reference.name}")
        for table, pointer in pointers(api, reference.at).items():
            yield ReachableFile(_original_name(table) if reference.name == BRANCH else table, pointer, by)
        if reference.name == MAIN:
            yield from _logged(api, since)
        elif reference.type == "BRANCH" and reference.name != BRANCH and (base := existing(api, reference.name).base):
            for table, pointer in pointers(api, f"{reference.name}@{base}").items():
                yield ReachableFile(table, pointer, f"base of {reference.name}")


def _logged(api: NessieApi, since: str) -> Iterator[ReachableFile]:
    """Yield what commits of the lake set and what they replaced, and what only dropped branches had."""
    entries = takewhile(lambda entry: entry.at >= since, history.entries(api, MAIN, only=history.BY_LAKE))
    discarded = (entry for entry in Annotations(api).discarded() if entry.at >= since)
    for entry in (*entries, *discarded):
        for change in entry.tables:
            for pointer in filter(None, (change.before, change.after)):
                yield ReachableFile(change.table, pointer, f"log {entry.id}")


def _original_name(stored: TableName) -> TableName:
    """Return the name that a dropped table had."""
    whole = f"{stored.namespace}.{stored.table}".strip(".").split(" ")
    namespace, _, table = whole[2].rpartition(".") if len(whole) > 2 else ("", "", whole[-1])
    return TableName(namespace, table)
