"""Rows of a program as a file that an ingest reads."""

from __future__ import annotations

import hashlib
import json
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
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
                    out.write(json.dumps(jsonable(dict(row))) + "\n")
        yield file
