"""Scores tables from 0 to 100 by their metadata files alone: what slows readers down, and which action helps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, field, fields, replace
from datetime import datetime
from typing import Any

from lakehouse.core.catalog import Catalog
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import LakeError
from lakehouse.core.files import Files, size_text
from lakehouse.core.format import TableFormat
from lakehouse.core.metadata_file import parse_metadata
from lakehouse.core.names import TableName
from lakehouse.maintenance import hudi
from lakehouse.maintenance.compact import MIN_FILES, SMALL_SHARE, files_needed
from lakehouse.maintenance.expire import expirable
from lakehouse.maintenance.layout import Layout, layout_of, utc_now
from lakehouse.maintenance.policy import MaintenanceSettings, Policy, policies
from lakehouse.maintenance.unnamed_files import FileCount, UnnamedFiles
from lakehouse.storage.s3 import is_remote

#: Maximum number of points that one reason takes off the score; _MAX_GUESSED is for small files of a guessed layout.
_MAX_GUESSED = 15
_MAX_SMALL_FILES, _MAX_DELETES, _MAX_SNAPSHOTS, _MAX_METADATA = 45, 35, 15, 15
_LARGE_METADATA = 2**20
_MANY_SNAPSHOTS = 100


@dataclass(frozen=True)
class Reason:
    """One thing that is wrong with a table."""

    what: str
    """small_files, delete_files, snapshots, metadata, manifests, skew, unsorted, unnamed, unreachable, held."""
    points: int
    """By how much it lowers the score."""
    text: str
    action: str = ""
    """What `lake maintain` does about it: compact, expire, rewrite_manifests, remove_files; empty if nothing."""
    gain: str = ""


@dataclass(frozen=True)
class TableHealth:
    """The score of a table and its reasons."""

    table: str
    format: str
    score: int
    rows: int
    files: int
    bytes: int
    delete_files: int
    snapshots: int
    metadata_bytes: int
    unnamed_files: int = 0
    """Files in the table's folder that nothing names, and their bytes; in an object store only of tables asked for by name."""
    unnamed_bytes: int = 0
    reasons: tuple[Reason, ...] = ()
    deep: dict[str, Any] = field(default_factory=dict)
    """What only `--deep` finds: manifests, partitions, bytes by what holds them."""
    problem: str = ""
    """Why the table cannot be read; its score is then 0."""

    def as_dict(self) -> dict[str, Any]:
        # `asdict` copies every value; it took a fifth of `lake health -o json` for 1,000 tables.
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        return {**values, "reasons": [asdict(reason) for reason in self.reasons]}


@dataclass(frozen=True)
class HealthCheck:
    """Scores the tables of one lake."""

    catalog: Catalog
    files: Files
    settings: MaintenanceSettings
    unnamed: UnnamedFiles
    formats: Sequence[TableFormat] = ()
    now: Callable[[], datetime] = utc_now

    def tables(self, only: Sequence[TableName] = ()) -> list[TableHealth]:
        """Return the health of some tables, or of all, the worst first."""
        names = list(only) or list(self.catalog.tables())
        pointers, policy_of = self.catalog.pointers(names), policies(self.settings)
        scored = [
            self._table(name, pointer, policy_of(name), bool(only)) for name, pointer in pointers.items() if pointer
        ]
        scored += self._others(set(only) if only else None, policy_of)
        return sorted(scored, key=lambda health: (health.score, health.table))

    def _table(self, name: TableName, pointer: str, policy: Policy, named: bool) -> TableHealth:
        """Return the health of the Iceberg table that a pointer refers to."""
        try:
            content = self.files.read(pointer)
            raw = parse_metadata(pointer, content)
            layout = layout_of(raw, len(content), policy.target_file_size)
            # A listing of an object store takes a request for each table.
            is_listed = named or not is_remote(raw["location"])
            unnamed = self.unnamed.of_iceberg(name, raw) if is_listed else FileCount()
        except (LakeError, OSError, KeyError, TypeError) as exc:
            return TableHealth(str(name), "iceberg", 0, 0, 0, 0, 0, 0, 0, problem=f"{pointer} cannot be read: {exc}")
        return with_unnamed(score(str(name), layout, len(expirable(raw, policy, self.now()))), unnamed)

    def _others(self, only: set[TableName] | None, policy_of: Callable[[TableName], Policy]) -> Iterator[TableHealth]:
        """Yield the health of tables of other formats, as far as it is known from their history."""
        for tables in self.formats:
            if tables.name == "iceberg" or tables.spark is None:  # a read-only format is not maintained
                continue
            for name in tables.tables():
                if only is None or name in only:
                    yield self._hudi(tables, name, policy_of(name), only is not None)

    def _hudi(self, tables: TableFormat, name: TableName, policy: Policy, named: bool) -> TableHealth:
        health = _hudi_health(tables, name, policy)
        location = "" if health.problem else tables.describe(name).location
        if not location or (is_remote(location) and not named):
            return health
        return with_unnamed(health, self.unnamed.of_hudi(location, tables.file_slices(name)))


def score(name: str, layout: Layout, expired: int, table_format: str = "iceberg") -> TableHealth:
    """Return the health of a table with this layout, of which a number of snapshots have expired."""
    reasons = tuple(_reasons(layout, expired))
    return TableHealth(
        table=name,
        format=table_format,
        score=max(0, 100 - sum(reason.points for reason in reasons)),
        rows=layout.rows - layout.deleted_rows,
        files=layout.data_files,
        bytes=layout.bytes,
        delete_files=layout.delete_files,
        snapshots=layout.snapshots,
        metadata_bytes=layout.metadata_bytes,
        reasons=reasons,
    )


def with_unnamed(health: TableHealth, unnamed: FileCount) -> TableHealth:
    """Return the health of a table with the files that nothing names."""
    if not unnamed.files:
        return health
    text = (
        f"{unnamed.files} files with {size_text(unnamed.bytes)} that nothing names: a writer is at work, or was stopped."
        " lake verify --deep lists them."
    )
    reason = Reason("unnamed", 1, text, "remove_files", size_text(unnamed.bytes))
    return replace(
        health,
        score=max(0, health.score - reason.points),
        unnamed_files=unnamed.files,
        unnamed_bytes=unnamed.bytes,
        reasons=(*health.reasons, reason),
    )


def _reasons(layout: Layout, expired: int) -> Iterator[Reason]:
    excess = layout.data_files - layout.min_files
    if layout.data_files >= MIN_FILES and excess > 0 and layout.mean_file_bytes < SMALL_SHARE * layout.target:
        limit = _MAX_SMALL_FILES if layout.is_exact else _MAX_GUESSED
        points = _points(8 * math.log2(layout.data_files / layout.min_files), limit)
        yield Reason(
            "small_files",
            points,
            f"{layout.data_files} files of {size_text(layout.mean_file_bytes)} on average: every query opens each of them.",
            "compact",
            f"about {layout.min_files} files instead of {layout.data_files}"
            + ("" if layout.is_exact else ", or one for each partition"),
        )
    if layout.delete_files:
        share = layout.delete_files / max(layout.data_files, 1)
        rows = layout.deleted_rows / max(layout.rows, 1)
        points = _points(5 + 20 * share + 40 * rows, _MAX_DELETES)
        marked = f"{layout.deleted_rows} deleted rows" if layout.deleted_rows else "deleted rows"
        yield Reason(
            "delete_files",
            points,
            f"{layout.delete_files} delete files: every query reads them to skip {marked}.",
            "compact",
            "no delete files to read",
        )
    if expired:
        points = _points(expired / 10, _MAX_SNAPSHOTS)
        yield Reason(
            "snapshots",
            points,
            f"{expired} of {layout.snapshots} snapshots are older than the policy keeps.",
            "expire",
            "smaller metadata, and their files can be removed",
        )
    if layout.metadata_bytes > _LARGE_METADATA and layout.snapshots > _MANY_SNAPSHOTS:
        points = _points(5 * layout.metadata_bytes / _LARGE_METADATA, _MAX_METADATA)
        yield Reason(
            "metadata",
            points,
            f"The metadata file has {size_text(layout.metadata_bytes)}, most of it for {layout.snapshots} snapshots:"
            " every query reads it, every commit writes it.",
            "expire" if expired else "",
            f"about {size_text(layout.metadata_bytes * (layout.snapshots - expired) // layout.snapshots)}",
        )


def _hudi_health(tables: TableFormat, name: TableName, policy: Policy) -> TableHealth:
    try:
        history, slices = tables.history(name), tables.file_slices(name)
    except LakeError as exc:
        return TableHealth(str(name), tables.name, 0, 0, 0, 0, 0, 0, 0, problem=str(exc))
    target = policy.target_file_size or hudi.DEFAULT_TARGET
    latest = hudi.latest_slices(slices)
    clustered = hudi.small_files(slices, target)
    excess = sum(len(group) - files_needed(hudi.total_bytes(group), target) for group in clustered.values())
    layout = Layout(
        data_files=len(latest),
        bytes=hudi.total_bytes(latest),
        rows=(history[-1].rows_total or 0) if history else 0,
        delete_files=sum(file_slice.log_files for file_slice in latest),
        deleted_rows=0,
        snapshots=len(history),
        metadata_bytes=0,
        min_files=len(latest) - excess,
        is_exact=True,
        target=target,
    )
    health = score(str(name), layout, 0, tables.name)
    figures = {"file_slices": len(slices), "log_files": layout.delete_files, "instants": len(history)}
    return replace(health, reasons=tuple(map(_of_log_files, health.reasons)), deep=figures)


def _of_log_files(reason: Reason) -> Reason:
    """Return a reason in the terms of Hudi: what Iceberg has in delete files, Hudi has in log files."""
    if reason.what != "delete_files":
        return reason
    text = reason.text.split(" delete files")[0] + " log files with unmerged changes: only Spark can read the table."
    return replace(reason, what="log_files", text=text, gain="no log files to merge with every query")


def _points(value: float, limit: int) -> int:
    return max(1, min(limit, round(value)))
