"""The requirements and updates of the REST protocol that lead from one metadata file to another.

Over REST a client cannot set a table's metadata file. So it sends the difference of two files, and the server writes a file
of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Metadata = Mapping[str, Any]
Json = dict[str, Any]
_MAIN = "main"
#: Per kind of versioned object: its list, its id, the current id, and the names of its two updates and their fields.
_VERSIONED = (
    ("schemas", "schema-id", "current-schema-id", "add-schema", "schema", "set-current-schema", "schema-id"),
    ("partition-specs", "spec-id", "default-spec-id", "add-spec", "spec", "set-default-spec", "spec-id"),
    (
        "sort-orders",
        "order-id",
        "default-sort-order-id",
        "add-sort-order",
        "sort-order",
        "set-default-sort-order",
        "sort-order-id",
    ),
)


def change_of(before: Metadata | None, after: Metadata) -> Json:
    """Return the requirements and updates that lead from `before`, or from no table, to `after`."""
    return {"requirements": _requirements(before), "updates": list(_updates(before, after))}


def _requirements(before: Metadata | None) -> list[Json]:
    if before is None:
        return [{"type": "assert-create"}]
    refs = {_MAIN: {"snapshot-id": None}, **before.get("refs", {})}
    return [
        {"type": "assert-table-uuid", "uuid": before["table-uuid"]},
        {"type": "assert-current-schema-id", "current-schema-id": before["current-schema-id"]},
        {"type": "assert-default-spec-id", "default-spec-id": before["default-spec-id"]},
        *(
            {"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": ref["snapshot-id"]}
            for name, ref in refs.items()
        ),
    ]


def _updates(before: Metadata | None, after: Metadata) -> Iterator[Json]:
    start: Metadata = before or {}
    if before is None:
        yield {"action": "assign-uuid", "uuid": after["table-uuid"]}
    if start.get("format-version") != after["format-version"]:
        yield {"action": "upgrade-format-version", "format-version": after["format-version"]}
    for listed, id_name, current, add, added, select, selected in _VERSIONED:
        known = {item[id_name] for item in start.get(listed, ())}
        for item in after[listed]:
            if item[id_name] not in known:
                more = {"last-column-id": after["last-column-id"]} if listed == "schemas" else {}
                yield {"action": add, added: item, **more}
        if start.get(current) != after[current]:
            yield {"action": select, selected: after[current]}
    if start.get("location") != after["location"]:
        yield {"action": "set-location", "location": after["location"]}
    yield from _properties(start.get("properties", {}), after.get("properties", {}))
    yield from _snapshots(start, after)


def _properties(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Json]:
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    if changed:
        yield {"action": "set-properties", "updates": changed}
    removed = sorted(set(before) - set(after))
    if removed:
        yield {"action": "remove-properties", "removals": removed}


def _snapshots(before: Metadata, after: Metadata) -> Iterator[Json]:
    known = {snapshot["snapshot-id"] for snapshot in before.get("snapshots") or ()}
    for snapshot in after.get("snapshots") or ():
        if snapshot["snapshot-id"] not in known:
            yield {"action": "add-snapshot", "snapshot": snapshot}
    refs, old_refs = after.get("refs") or {}, before.get("refs") or {}
    for name, ref in refs.items():
        if old_refs.get(name) != ref:
            yield {"action": "set-snapshot-ref", "ref-name": name, **ref}
    for name in sorted(set(old_refs) - set(refs)):
        yield {"action": "remove-snapshot-ref", "ref-name": name}
