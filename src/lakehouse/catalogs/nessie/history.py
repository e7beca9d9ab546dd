"""The log, read from Nessie's own history. Commits of the lake carry properties that others do not."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from lakehouse.catalogs.nessie.annotations import Annotations
from lakehouse.catalogs.nessie.api import Key, NessieApi
from lakehouse.catalogs.nessie.contents import NAMESPACE, key_of, name_of, pointer_of
from lakehouse.core.names import TableName
from lakehouse.core.refs import Change, Commit, LogEntry

#: The fields of `Commit` that become properties of a Nessie commit.
_PROPERTIES = ("kind", "run", "pipeline", "source")
_MAX_TEXT = 4000
#: The kind of a commit that an engine made.
WRITE = "write"
#: The CEL filter for commits of the lake: publish, drop, undrop, revert.
BY_LAKE = "'lake.kind' in commit.properties"


def meta_of(commit: Commit, tables: str = "") -> dict[str, Any]:
    """Return a commit as Nessie's commit meta, with a generated message where there is none: Nessie requires one."""
    properties = {name: getattr(commit, name)[:_MAX_TEXT] for name in _PROPERTIES} if commit.kind != WRITE else {}
    return {
        "message": (commit.message or f"{commit.kind} {tables}".strip())[:_MAX_TEXT],
        "allProperties": {f"lake.{name}": [value] for name, value in properties.items() if value},
        **({"authors": [commit.author]} if commit.author else {}),
    }


def entries(api: NessieApi, branch: str, table: TableName | None = None, only: str = "") -> Iterator[LogEntry]:
    """Yield the commits of a branch that changed tables, or one table, newest first; they are fetched lazily."""
    for commit_data in api.history(branch, only):
        touched = _touched(commit_data)
        if not touched or (table is not None and key_of(table) not in touched):
            continue
        changes = _changes(api, branch, commit_data, touched)
        if changes:
            yield _entry(commit_data, branch, changes)


def of_run(api: NessieApi, annotations: Annotations, branch: str, run: str) -> LogEntry | None:
    """Return the entry of a run's publish. Its note states where to start, so that a long history is not read."""
    note = annotations.note_of("run", _note_name(run))
    if note is None or note.get("branch") != branch:
        return None
    for commit_data in api.history(f"{branch}@{note['entry']}" if note.get("entry") else branch):
        entry = _entry(commit_data, branch, ())
        if entry.commit.run == run and entry.commit.kind in ("publish", "merge"):
            return replace(entry, tables=_changes(api, branch, commit_data, _touched(commit_data)))
        if entry.id == note["seen"]:
            return None
    return None


def note_run(annotations: Annotations, branch: str, run: str, seen: str, entry: str = "") -> None:
    """Store that a run is about to publish, or has published: the branch's head before it, and the commit."""
    if run:
        # A failed attempt does not undo an earlier publish of the same run.
        entry = entry or (annotations.note_of("run", _note_name(run)) or {}).get("entry", "")
        annotations.note("run", _note_name(run), {"branch": branch, "seen": seen, "entry": entry})


def note_revert(annotations: Annotations, branch: str, run: str, entry: str, was_published: bool) -> None:
    """Store that a revert undid the publish of a run, or undid the revert of it."""
    if run:
        places = {"seen": entry, "entry": ""} if was_published else {"seen": "", "entry": entry}
        annotations.note("run", _note_name(run), {"branch": branch, **places})


def _note_name(run: str) -> str:
    return hashlib.sha256(run.encode()).hexdigest()[:32]


def has_hash(hash: str) -> str:
    """Return the CEL filter for one commit."""
    return f"commit.hash == '{hash}'" if hash.isalnum() else "false"


def _touched(commit_data: Mapping[str, Any]) -> dict[Key, str | None]:
    """Return the pointers that a commit set; None for what it removed, which may be a namespace."""
    pointers = {}
    for operation in commit_data.get("operations") or ():
        content = operation.get("content")
        if content is None or content["type"] != NAMESPACE:
            pointers[tuple(operation["key"]["elements"])] = pointer_of(content)
    return pointers


def _changes(
    api: NessieApi, branch: str, commit_data: Mapping[str, Any], touched: Mapping[Key, str | None]
) -> tuple[Change, ...]:
    """Return the changes of a commit. Nessie lists what it set; the parent commit holds what was there before."""
    before = api.contents(f"{branch}@{commit_data['parentCommitHash']}", touched)[0]
    changes = [Change(name_of(key), pointer_of(before.get(key)), after) for key, after in touched.items()]
    return tuple(
        sorted((change for change in changes if change.before != change.after), key=lambda change: change.table)
    )


def _entry(commit_data: Mapping[str, Any], branch: str, changes: tuple[Change, ...]) -> LogEntry:
    meta = commit_data["commitMeta"]
    properties = {name: values[0] for name, values in (meta.get("allProperties") or {}).items() if values}
    commit = Commit(
        kind=properties.get("lake.kind", WRITE),
        author=", ".join(filter(None, meta.get("authors") or ())),
        message=meta.get("message", ""),
        run=properties.get("lake.run", ""),
        pipeline=properties.get("lake.pipeline", ""),
        source=properties.get("lake.source", ""),
    )
    # A commit that was taken over from another catalog has the time that it had there.
    at = properties.get("lake.at") or _time(meta["commitTime"])
    return LogEntry(meta["hash"], at, branch, commit, changes)


def _time(text: str) -> str:
    """Convert a timestamp of Nessie's to milliseconds, as the other catalogs have it."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    at = datetime.fromisoformat(f"{whole}.{fraction[:6]:0<6}+00:00")
    return at.astimezone(UTC).isoformat(timespec="milliseconds")
