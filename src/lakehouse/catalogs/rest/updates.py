"""The way from one state of a table to another in the protocol's words: what must still be true, and what changes.

Over REST nobody can point a table at a metadata file. Two files are compared instead, the older of which the newer was made
from, and the difference is sent; the server writes a file of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Metadata = Mapping[str, Any]
Json = dict[str, Any]
_MAIN = "main"
#: What of a table is numbered: where it is, its number's name, which number is current, and the words of the protocol.
_NUMBERED = (
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
    """The requirements and updates that make `after` of `before`, or of nothing."""
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
    for every, number, current, add, word, choose, chosen in _NUMBERED:
        known = {each[number] for each in start.get(every, ())}
        for each in after[every]:
            if each[number] not in known:
                more = {"last-column-id": after["last-column-id"]} if every == "schemas" else {}
                yield {"action": add, word: each, **more}
        if start.get(current) != after[current]:
            yield {"action": choose, chosen: after[current]}
    if start.get("location") != after["location"]:
        yield {"action": "set-location", "location": after["location"]}
    yield from _properties(start.get("properties", {}), after.get("properties", {}))
    yield from _snapshots(start, after)


def _properties(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Json]:
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    if changed:
        yield {"action": "set-properties", "updates": changed}
    gone = sorted(set(before) - set(after))
    if gone:
        yield {"action": "remove-properties", "removals": gone}


def _snapshots(before: Metadata, after: Metadata) -> Iterator[Json]:
    known = {each["snapshot-id"] for each in before.get("snapshots") or ()}
    for each in after.get("snapshots") or ():
        if each["snapshot-id"] not in known:
            yield {"action": "add-snapshot", "snapshot": each}
    refs, then = after.get("refs") or {}, before.get("refs") or {}
    for name, ref in refs.items():
        if then.get(name) != ref:
            yield {"action": "set-snapshot-ref", "ref-name": name, **ref}
    for name in sorted(set(then) - set(refs)):
        yield {"action": "remove-snapshot-ref", "ref-name": name}
