"""Rows of the database as an Arrow table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lakehouse.pipelines.postgres.relation import Column
from lakehouse.pipelines.upsert import arrow_type

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_rows(columns: Sequence[Column], rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Fetched rows with the types that their columns have in the lake."""
    import pyarrow as pa

    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    arrays = [pa.array(each, arrow_type(column.kind)) for each, column in zip(values, columns, strict=True)]
    return pa.table(arrays, names=[column.name for column in columns])
