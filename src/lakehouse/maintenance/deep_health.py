"""Details of the health of tables from manifests and listings: manifests, skew, and which bytes a branch or tag holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from lakehouse.core.catalog import Catalog
from lakehouse.core.files import Files
from lakehouse.core.metadata_file import load_metadata
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.refs import ReachableFile
from lakehouse.formats.iceberg.references import normalized
from lakehouse.maintenance.health import Reason, TableHealth
from lakehouse.maintenance.inventory import Inventories, Inventory
from lakehouse.maintenance.policy import Policy
from lakehouse.maintenance.sorting import is_decayed, overlap, sort_columns
from lakehouse.maintenance.sweep import Sweeper
from lakehouse.tables.rewrite import SnapshotFiles, partition_sizes, read_snapshot, too_many_manifests

#: What holds a file, the strongest first: a file counts for the first holder that needs it.
HOLDERS = ("current", "old_snapshots", "branches", "tags", "dropped", "log")
#: A partition this many times the median is skewed.
_SKEW = 10
_MAX_MANIFESTS, _MAX_SKEW, _MAX_UNSORTED = 10, 5, 10


def deepen(
    tables: Sequence[TableHealth],
    catalog: Catalog,
    inventories: Inventories,
    sweeper: Sweeper,
    policy_of: Callable[[TableName], Policy],
) -> list[TableHealth]:
    """Return the health of Iceberg tables with details from their manifests and folders, the worst first."""
    unneeded, _, inventory = sweeper.find()
    held = bytes_by_holder(inventory, inventories)
    deepened = []
    for health in tables:
        if health.format != "iceberg" or health.problem:
            deepened.append(health)
            continue
        name = TableName.parse(health.table)
        pointer = catalog.pointer(name)
        metadata = inventory.tables.get(pointer or "")
        place = normalized(metadata.location).rstrip("/") + "/" if metadata else ""
        unneeded_here = [file for file in unneeded if place and normalized(file.uri).startswith(place)]
        bytes_held = dict(held.get(name, {}))
        deep: dict[str, Any] = {"bytes": {**bytes_held, "unreachable": sum(file.size for file in unneeded_here)}}
        deep["branches"] = branch_bytes(inventory, inventories, name)
        reasons: list[Reason] = []
        if pointer:
            deep |= _manifests(pointer, catalog, inventories.files, policy_of(name), reasons)
        known = tuple(reason for reason in health.reasons if not (unneeded_here and reason.what == "unnamed"))
        if unneeded_here:
            size = deep["bytes"]["unreachable"]
            text = f"{len(unneeded_here)} files with {size} bytes that nothing refers to."
            reasons.append(Reason("unreachable", 1, text, "remove_files", f"{size} bytes"))
        score = max(0, 100 - sum(reason.points for reason in (*known, *reasons)))
        deepened.append(replace(health, score=score, reasons=(*known, *reasons), deep=deep))
    return sorted(deepened, key=lambda health: (health.score, health.table))


def _manifests(pointer: str, catalog: Catalog, storage: Files, policy: Policy, reasons: list[Reason]) -> dict[str, Any]:
    from lakehouse.pyiceberg_internals import table_at

    table = table_at(pointer, catalog.pyiceberg_properties())
    files = read_snapshot(table)
    if too_many_manifests(files):
        text = f"{len(files.manifests)} manifests for {len(files.data)} files: every query reads each of them."
        reasons.append(Reason("manifests", _MAX_MANIFESTS, text, "rewrite_manifests", "faster planning"))
    sizes = partition_sizes(files)
    largest, middle = max(sizes.values(), default=0), median(sizes.values()) if sizes else 0
    if len(sizes) > 2 and largest > _SKEW * middle:
        text = f"The largest of {len(sizes)} partitions has {largest} bytes, the median one {middle:.0f}."
        reasons.append(Reason("skew", _MAX_SKEW, text))
    figures = {"manifests": len(files.manifests), "partitions": len(sizes), "largest_partition_bytes": largest}
    return {**figures, **_sort_overlap(table, files, load_metadata(pointer, storage), policy, reasons)}


def _sort_overlap(
    table: Any, files: SnapshotFiles, raw: Mapping[str, Any], policy: Policy, reasons: list[Reason]
) -> dict[str, Any]:
    """Return how far files overlap in the sort columns; nothing if the table has no sort order or too few files."""
    columns = sort_columns(policy.sort, table)
    share = overlap(table, files, columns)
    if share is None:
        return {}
    if is_decayed(share, raw):
        named = ", ".join(columns)
        text = (
            f"A file overlaps with {share:.0%} of the others of its partition in {named}: queries by it skip few files."
        )
        # Only a policy sorts a whole table again: the table's own order applies to the files of one compaction.
        action = "compact" if policy.sort else ""
        gain = f"queries by {named} skip files" if action else "set maintenance.sort for this table"
        reasons.append(Reason("unsorted", _MAX_UNSORTED, text, action, gain))
    return {"sort_overlap": round(share, 3)}


def bytes_by_holder(inventory: Inventory, inventories: Inventories) -> dict[TableName, dict[str, int]]:
    """Return the bytes of each table by what holds them; each file counts once, for the strongest holder."""
    seen: set[str] = set()
    bytes_of: dict[TableName, dict[str, int]] = {}
    for holder in HOLDERS:
        for reference in dict.fromkeys(inventory.references):
            snapshots = _snapshots(holder, reference, inventory)
            if snapshots is None:
                continue
            counts = bytes_of.setdefault(reference.table, dict.fromkeys(HOLDERS, 0))
            for file in inventories.references.table(reference.pointer, snapshots):
                key = normalized(file.uri)
                if key not in seen:
                    seen.add(key)
                    counts[holder] += max(file.size, 0)
    return bytes_of


def branch_bytes(inventory: Inventory, inventories: Inventories, table: TableName) -> dict[str, int]:
    """Return the bytes of a table that only one branch needs, by branch."""
    by_branch: dict[str, set[str]] = {}
    sizes: dict[str, int] = {}
    for reference in inventory.references:
        if reference.table == table and reference.pointer in inventory.tables and not reference.by.startswith("log "):
            for file in inventories.references.table(reference.pointer):
                key = normalized(file.uri)
                sizes[key] = max(file.size, 0)
                by_branch.setdefault(reference.by, set()).add(key)
    return {
        name.removeprefix("branch "): sum(
            sizes[key] for key in files if not any(key in other for by, other in by_branch.items() if by != name)
        )
        for name, files in by_branch.items()
        if name.startswith("branch ")
    }


def _snapshots(holder: str, reference: ReachableFile, inventory: Inventory) -> frozenset[str] | None:
    """Return the snapshots of a reference that count for a holder; None if the reference is of another holder."""
    metadata = inventory.tables.get(reference.pointer)
    if metadata is None:
        return None
    everything = frozenset(metadata.manifest_lists)
    if reference.by == MAIN:
        by_holder: Mapping[str, frozenset[str]] = {
            "current": frozenset({metadata.current}),
            "old_snapshots": everything,
        }
        return by_holder.get(holder)
    kinds = {"branches": ("branch ", "base of "), "tags": ("tag ",), "dropped": ("dropped",), "log": ("log ",)}
    return everything if reference.by.startswith(kinds.get(holder, ("\0",))) else None
