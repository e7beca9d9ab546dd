"""Read the rows of a source for a run, and refuse rows that are not all there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakehouse.core.errors import SourceError
from lakehouse.pipelines.model import Batch, Source
from lakehouse.runs.context import RunContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def read_batch(context: RunContext, source: Source, partitions: Sequence[str] | None, cursor: str) -> Batch:
    """The rows of a source in some partitions, or all of them after a cursor, as one batch."""
    if source.read_many and partitions and len(partitions) > 1:
        batches = [_batch(source.read_many(context.source_context("", cursor), partitions))]
    else:
        batches = [_batch(source.read(context.source_context(key, cursor))) for key in partitions or [""]]
    for batch in batches:
        _refuse_missing_rows(source, batch)
    first, rows = batches[0], batches[0].rows
    for more in batches[1:]:
        rows = rows.unionByName(more.rows, allowMissingColumns=True)
    notes = {key: ", ".join(dict.fromkeys(b.notes[key] for b in batches if key in b.notes)) for key in first.notes}
    counts = [each.row_count for each in batches]
    row_count = sum(each or 0 for each in counts) if None not in counts else None
    return Batch(rows, first.cursor, first.present, notes, first.fingerprint, row_count)


def _refuse_missing_rows(source: Source, batch: Batch) -> None:
    """Rows that the source has and Spark does not see would be deleted from the table."""
    counts = [("rows", batch.rows, batch.row_count)]
    if batch.present is not None:
        counts.append(("keys", batch.present, batch.present_count))
    for what, frame, expected in counts:
        if expected is not None and (found := frame.count()) != expected:
            raise SourceError(
                f"{source.name} has {expected} {what}, and Spark read {found}: nothing was changed.",
                "On a cluster, all executors must reach the lake's storage: set warehouse to s3://bucket/prefix "
                "or to a folder that every machine shares.",
            )


def _batch(rows: DataFrame | Batch) -> Batch:
    return rows if isinstance(rows, Batch) else Batch(rows)
