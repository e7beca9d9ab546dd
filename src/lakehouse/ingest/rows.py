"""Rows of a program as a file that an ingest reads."""

from __future__ import annotations

import hashlib
import json
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.core.jsonable import jsonable

if TYPE_CHECKING:
    import pyarrow

#: The media type of each kind of file.
MEDIA_TYPES = {".jsonl": "application/x-ndjson", ".parquet": "application/vnd.apache.parquet"}


def rows_identity(idempotency_key: str) -> str:
    """What identifies rows: their Idempotency-Key, else nothing that other rows have."""
    return hashlib.sha256(idempotency_key.encode()).hexdigest() if idempotency_key else uuid.uuid4().hex


@contextmanager
def rows_file(rows: Iterable[Mapping[str, Any]] | pyarrow.Table) -> Iterator[Path]:
    """The rows in a temporary file: dicts as JSON lines, an Arrow table as Parquet."""
    with tempfile.TemporaryDirectory(prefix="lake_rows_") as folder:
        if hasattr(rows, "schema"):
            from pyarrow import parquet

            file = Path(folder) / "rows.parquet"
            parquet.write_table(rows, file)
        else:
            file = Path(folder) / "rows.jsonl"
            with file.open("w") as out:
                for row in rows:
                    out.write(json.dumps(jsonable(_with_numbers(dict(row)))) + "\n")
        yield file


def _with_numbers(value: Any) -> Any:
    """The same value with numbers for decimals that a double holds to the last digit: a file has no type that says what a text is."""
    if isinstance(value, Decimal) and value.is_finite() and Decimal(repr(float(value))) == value:
        return float(value)
    if isinstance(value, dict):
        return {name: _with_numbers(part) for name, part in value.items()}
    return [_with_numbers(part) for part in value] if isinstance(value, list | tuple) else value
