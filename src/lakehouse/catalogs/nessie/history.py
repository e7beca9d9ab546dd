"""The log, read from Nessie's own history: what the lake committed, told apart by what it writes down with a commit."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from lakehouse.catalogs.nessie.api import Key, NessieApi
from lakehouse.catalogs.nessie.contents import NAMESPACE, key_of, name_of, pointer_of
from lakehouse.catalogs.nessie.kept import Kept
from lakehouse.core.names import TableName
from lakehouse.core.refs import Change, Commit, LogEntry

#: What a commit of ours writes down beside its author and message.
_FACTS = ("kind", "run", "pipeline", "source")
_LONGEST_FACT = 4000
#: The kind of a commit that an engine made and not the lake.
WRITE = "write"
#: The condition, in Nessie's language CEL, that a commit is the lake's: published, dropped, brought back or reverted.
OURS = "'lake.kind' in commit.properties"


def meta_of(commit: Commit, tables: str = "") -> dict[str, Any]:
    """A commit in Nessie's words. It wants a message, so one is made up where there is none."""
    told = {name: getattr(commit, name)[:_LONGEST_FACT] for name in _FACTS} if commit.kind != WRITE else {}
    return {
        "message": (commit.message or f"{commit.kind} {tables}".strip())[:_LONGEST_FACT],
        "allProperties": {f"lake.{name}": [value] for name, value in told.items() if value},
        **({"authors": [commit.author]} if commit.author else {}),
    }


def entries(api: NessieApi, branch: str, table: TableName | None = None, only: str = "") -> Iterator[LogEntry]:
    """The commits of a branch that touched tables, or that one table, the newest first; read as they are asked for."""
    for told in api.history(branch, only):
        touched = _touched(told)
        if not touched or (table is not None and key_of(table) not in touched):
            continue
        changes = _changes(api, branch, told, touched)
        if changes:
            yield _entry(told, branch, changes)


def of_run(api: NessieApi, kept: Kept, branch: str, run: str) -> LogEntry | None:
    """What a run published. Its note says after which commit to look, so that a long history need not be read."""
    note = kept.note_of("run", _short(run))
    if note is None or note.get("branch") != branch:
        return None
    for told in api.history(f"{branch}@{note['entry']}" if note.get("entry") else branch):
        entry = _entry(told, branch, ())
        if entry.commit.run == run and entry.commit.kind in ("publish", "merge"):
            return replace(entry, tables=_changes(api, branch, told, _touched(told)))
        if entry.id == note["seen"]:
            return None
    return None


def note_run(kept: Kept, branch: str, run: str, seen: str, entry: str = "") -> None:
    """Write down that a run is about to publish, or did: where the branch was before, and by which commit."""
    if run:
        # An attempt that comes to nothing does not make an earlier publish of the same run undone.
        entry = entry or (kept.note_of("run", _short(run)) or {}).get("entry", "")
        kept.note("run", _short(run), {"branch": branch, "seen": seen, "entry": entry})


def _short(run: str) -> str:
    return hashlib.sha256(run.encode()).hexdigest()[:32]


def of_hash(hash: str) -> str:
    """The condition that a commit is that one."""
    return f"commit.hash == '{hash}'" if hash.isalnum() else "false"


def _touched(told: Mapping[str, Any]) -> dict[Key, str | None]:
    """Where a commit put the tables that it changed; None for what it removed, which may be a namespace too."""
    found = {}
    for operation in told.get("operations") or ():
        content = operation.get("content")
        if content is None or content["type"] != NAMESPACE:
            found[tuple(operation["key"]["elements"])] = pointer_of(content)
    return found


def _changes(
    api: NessieApi, branch: str, told: Mapping[str, Any], touched: Mapping[Key, str | None]
) -> tuple[Change, ...]:
    """Nessie says what a commit put; what was there before is looked up at the commit before it."""
    before = api.contents(f"{branch}@{told['parentCommitHash']}", touched)[0]
    found = [Change(name_of(key), pointer_of(before.get(key)), after) for key, after in touched.items()]
    return tuple(sorted((each for each in found if each.before != each.after), key=lambda each: each.table))


def _entry(told: Mapping[str, Any], branch: str, changes: tuple[Change, ...]) -> LogEntry:
    meta = told["commitMeta"]
    facts = {name: values[0] for name, values in (meta.get("allProperties") or {}).items() if values}
    commit = Commit(
        kind=facts.get("lake.kind", WRITE),
        author=", ".join(filter(None, meta.get("authors") or ())),
        message=meta.get("message", ""),
        run=facts.get("lake.run", ""),
        pipeline=facts.get("lake.pipeline", ""),
        source=facts.get("lake.source", ""),
    )
    return LogEntry(meta["hash"], _time(meta["commitTime"]), branch, commit, changes)


def _time(text: str) -> str:
    """A time of Nessie's, to the millisecond, as the other catalogs write it."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    at = datetime.fromisoformat(f"{whole}.{fraction[:6]:0<6}+00:00")
    return at.astimezone(UTC).isoformat(timespec="milliseconds")
