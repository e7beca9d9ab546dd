"""Tables as our own writers can leave them: many small files, delete files, tiny partitions, rows out of order."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow
from tests.support.damaged_tables import BY_DAY, append, catalog_of, create, delete_by_position, rows
from tests.support.light_runs import pyiceberg

from lakehouse.core.metadata_file import load_metadata
from lakehouse.core.names import TableName
from lakehouse.lake import Lake
from lakehouse.pyiceberg_internals import fast_commits, merging_append, write_data_file

ROWS = 200_000
#: Appends merge manifests when there are this many, so after many commits each manifest has this many files.
_MERGED = 100

Damage = Callable[[Lake, str, int], None]


def one_row_commits(lake: Lake, table: str, count: int) -> None:
    """A table after a number of commits of one row: the files, manifests and snapshots that they leave.

    Ten thousand commits would take hours, because each writes the list of all snapshots: the files are committed in groups, and
    the snapshots of the commits in between are added to the metadata.
    """
    fast_commits()
    create(lake, table)
    append(lake, range(ROWS), table)
    held = pyiceberg(lake).load_table(table)
    for start in range(0, count, _MERGED):
        ids = range(ROWS + start, ROWS + min(start + _MERGED, count))
        files = [write_data_file(held, rows([id]).to_batches(), _no_partition(), None) for id in ids]
        with held.transaction() as change, merging_append(change, {}) as added:
            for file in files:
                added.append_data_file(file)
    _add_snapshots(lake, TableName.parse(table), count + 1)


def _no_partition() -> Any:
    from pyiceberg.typedef import Record

    return Record()


def _add_snapshots(lake: Lake, table: TableName, count: int) -> None:
    """Give the table this number of snapshots: copies of its own ones, with the time of the snapshot before."""
    catalog, files = catalog_of(lake), lake._components.maintainer().files
    pointer = catalog.pointer(table)
    assert pointer is not None
    raw = load_metadata(pointer, files)
    made: list[dict[str, Any]] = [raw["snapshots"][0]]
    missing = count - len(raw["snapshots"])
    for snapshot in raw["snapshots"][1:]:
        copies, time = min(_MERGED - 1, missing), made[-1]["timestamp-ms"]
        missing -= copies
        for _ in range(copies):
            made.append(_child({**snapshot, "snapshot-id": 1_000_000 + len(made), "timestamp-ms": time}, made[-1]))
        made.append(_child(snapshot, made[-1]))
    log = [{"snapshot-id": snapshot["snapshot-id"], "timestamp-ms": snapshot["timestamp-ms"]} for snapshot in made]
    raw |= {"snapshots": made, "snapshot-log": log, "last-sequence-number": len(made)}
    new = f"{pointer.rpartition('/')[0]}/09999-with-snapshots.metadata.json"
    files.write(new, json.dumps(raw).encode())
    assert catalog.swap_pointer(table, pointer, new)


def _child(snapshot: dict[str, Any], parent: dict[str, Any]) -> dict[str, Any]:
    return {**snapshot, "parent-snapshot-id": parent["snapshot-id"]}


def merge_on_read_deletes(lake: Lake, table: str, count: int) -> None:
    """Ten files, each with delete files of a twentieth of the count."""
    create(lake, table)
    for start in range(0, ROWS, ROWS // 10):
        append(lake, range(start, start + ROWS // 10), table)
    for number in range(max(1, count // 20)):
        delete_by_position(lake, list(range(number, ROWS, 1000)), table)


def tiny_partitions(lake: Lake, table: str, count: int) -> None:
    """Partitions with three small files each."""
    create(lake, table, partition_spec=BY_DAY)
    held = pyiceberg(lake).load_table(table)
    for _ in range(3):
        ids = list(range(ROWS))
        held.append(pyarrow.table({"id": ids, "day": [f"d{id % count}" for id in ids]}, schema=rows([]).schema))


def unsorted_appends(lake: Lake, table: str, count: int) -> None:
    """Files that each have ids of the whole range."""
    create(lake, table)
    for number in range(max(2, count // 4)):
        append(lake, range(number, ROWS, max(2, count // 4)), table)


DAMAGES: tuple[Damage, ...] = (one_row_commits, merge_on_read_deletes, tiny_partitions, unsorted_appends)


def copied(lake: Lake, table: str, name: str) -> str:
    """The same table under another name: it shares all files with the first, and the lake deletes none that either needs."""
    pointer = catalog_of(lake).pointer(TableName.parse(table))
    assert pointer is not None
    theirs = pyiceberg(lake)
    theirs.register_table(name, pointer)
    theirs.close()
    return name
