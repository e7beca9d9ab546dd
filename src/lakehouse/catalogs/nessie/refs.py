"""Branches and tags: Nessie's own, with a note of who made each from what and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime

from lakehouse.catalogs.nessie import history
from lakehouse.catalogs.nessie.api import Conflict, NessieApi, Reference
from lakehouse.catalogs.nessie.contents import name_of, pointer_of
from lakehouse.catalogs.nessie.kept import KEPT, Kept
from lakehouse.core.errors import BadNameError, BranchExistsError, NoSuchBranchError
from lakehouse.core.names import CATALOG, MAIN, TableName, check_part, nearest
from lakehouse.core.refs import Commit, Reached, Ref, state_of

#: Names that would be taken for something else in Spark or that are the catalog's own.
_RESERVED = (CATALOG, MAIN, "spark_catalog")
_OURS = "lake__"
_KINDS = {"branch": "BRANCH", "tag": "TAG"}


def branch_names(api: NessieApi) -> list[str]:
    """Every branch beside main."""
    return [each.name for each in _all(api, "branch")]


def listed(api: NessieApi, kind: str) -> list[Ref]:
    """Every branch or tag, by name. Of one that was not made by the lake only the name and the state are known."""
    notes = Kept(api).notes(kind)
    return [_ref(each, notes.get(each.name, {})) for each in _all(api, kind)]


def _all(api: NessieApi, kind: str) -> list[Reference]:
    found = [each for each in api.references() if each.type == _KINDS[kind] and each.name not in (MAIN, KEPT)]
    return sorted(found, key=lambda each: each.name)


def _ref(found: Reference, note: Mapping[str, str]) -> Ref:
    return Ref(
        name=found.name,
        made_from=note.get("made_from", ""),
        state=note.get("state", found.hash[:16]),
        made_at=note.get("made_at", ""),
        author=note.get("author", ""),
        message=note.get("message", ""),
    )


def source(api: NessieApi, name: str) -> Reference:
    """What a branch or tag is to be made from: main, a branch or a tag."""
    found = api.find(MAIN if name == CATALOG else name) if name != KEPT else None
    if found is None:
        known = [each.name for each in api.references() if each.name != KEPT]
        near = ", ".join(nearest(name, known) or known[:10])
        raise NoSuchBranchError(f"There is no branch or tag {name}.", f"Nearest: {near}. All of them: lake branch list")
    return found


def existing(api: NessieApi, branch: str) -> Reference:
    """A branch beside main, with where it left main."""
    found = api.find(branch, with_base=True)
    if found is None or found.type != "BRANCH" or branch in (MAIN, KEPT):
        known = ", ".join(branch_names(api)[:10]) or "none"
        raise NoSuchBranchError(f"There is no branch {branch}.", f"There are: {known}.")
    return found


def create(
    api: NessieApi,
    kind: str,
    name: str,
    start: Reference,
    commit: Commit,
    facts: Mapping[str, str] | None = None,
) -> None:
    """A new branch or tag. The note comes first: a branch that nobody knows the purpose of could not be cleaned up."""
    check_name(kind, name)
    found = api.find(name)
    if found is not None:
        raise _taken(found.type.lower(), name)
    note = {
        "made_from": start.name,
        "state": state_of(pointers(api, start.at)),
        "made_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "author": commit.author,
        "message": commit.message,
        **(facts or {}),
    }
    Kept(api).note(kind, name, note)
    try:
        api.create(name, _KINDS[kind], start)
    except Conflict as exc:
        raise _taken(kind, name) from exc


def check_name(kind: str, name: str) -> None:
    """Refuse what cannot be the name of a branch or tag of the lake's."""
    check_part(name, kind)
    if name in _RESERVED or name.startswith(_OURS):
        raise BadNameError(f"{name!r} is taken by the catalog itself.", "Choose another name for the branch or tag.")
    if not name[0].isalpha():
        raise BadNameError(f"{name!r} cannot be the name of a {kind} in Nessie.", "Let it start with a letter.")


def _taken(kind: str, name: str) -> BranchExistsError:
    return BranchExistsError(f"There is a {kind} {name} already.", f"lake {kind} list")


def discard(api: NessieApi, kind: str, name: str) -> bool:
    """Forget a branch or tag wherever it is; False if there is none."""
    if name in _RESERVED or name.startswith(_OURS):
        return False
    while (found := api.find(name)) is not None and found.type == _KINDS[kind]:
        with suppress(Conflict):  # somebody wrote to it in the same moment
            if api.delete(found):
                Kept(api).forget(kind, name)
                return True
    return False


def forget(api: NessieApi, kind: str, seen: Reference) -> None:
    """Forget a branch as it was seen: what was written to it since is not thrown away."""
    with suppress(Conflict):
        api.delete(seen)
        Kept(api).forget(kind, seen.name)


def pointers(api: NessieApi, at: str) -> dict[TableName, str]:
    """Where all tables and views point."""
    found = ((name_of(key), pointer_of(content)) for key, content in api.entries(at))
    return {name: pointer for name, pointer in found if pointer is not None}


def reachable(api: NessieApi, since: str) -> list[Reached]:
    """Every metadata file that main, a branch, a tag, a dropped table or the history leads to."""
    return list(_reachable(api, since))


def _reachable(api: NessieApi, since: str) -> Iterator[Reached]:
    for each in api.references():
        by = "dropped" if each.name == KEPT else MAIN if each.name == MAIN else f"{each.type.lower()} {each.name}"
        for table, pointer in pointers(api, each.at).items():
            yield Reached(_undressed(table) if each.name == KEPT else table, pointer, by)
        if each.name == MAIN:
            yield from _logged(api, since)
        elif each.type == "BRANCH" and each.name != KEPT and (base := existing(api, each.name).base):
            for table, pointer in pointers(api, f"{each.name}@{base}").items():
                yield Reached(table, pointer, f"base of {each.name}")


def _logged(api: NessieApi, since: str) -> Iterator[Reached]:
    """What commits of the lake put and what they replaced."""
    for entry in history.entries(api, MAIN, only=history.OURS):
        if entry.at < since:
            return
        for change in entry.tables:
            for pointer in filter(None, (change.before, change.after)):
                yield Reached(change.table, pointer, f"log {entry.id}")


def _undressed(kept: TableName) -> TableName:
    """The name that a dropped table had."""
    whole = f"{kept.namespace}.{kept.table}".strip(".").split(" ")
    namespace, _, table = whole[2].rpartition(".") if len(whole) > 2 else ("", "", whole[-1])
    return TableName(namespace, table)
