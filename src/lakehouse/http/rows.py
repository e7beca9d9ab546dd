"""The body of a light ingest as a file that the ingest reads: JSON rows, CSV, Parquet or an Arrow stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lakehouse.core.errors import BadRequestError, MediaTypeError, RequestTooLargeError

#: The suffix of the file that a body of each content type is saved as.
SUFFIXES = {
    "application/json": "json",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "application/vnd.apache.parquet": "parquet",
    "application/x-parquet": "parquet",
    "application/vnd.apache.arrow.stream": "arrow",
}
#: A table with more columns than this is a mistake, or an attack.
MAX_COLUMNS = 2000
_MAX_JSON = 64 << 20


def suffix_of(content_type: str) -> str:
    """The kind of a body; raises MediaTypeError."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in SUFFIXES:
        raise MediaTypeError(
            f"The content type {kind[:100] or '(none)'!r} is not one that is ingested.",
            f"Send one of: {', '.join(SUFFIXES)}.",
        )
    return SUFFIXES[kind]


def prepare(path: Path, limit: int) -> Path:
    """Check a saved body and turn JSON and Arrow into JSON lines and Parquet."""
    if path.suffix == ".json":
        return _json_lines(path)
    if path.suffix == ".arrow":
        return _parquet(path, limit)
    if path.suffix == ".csv" and _commas(path) > MAX_COLUMNS:
        raise _too_many_columns()
    return path


def _json_lines(path: Path) -> Path:
    if path.stat().st_size > _MAX_JSON:
        raise RequestTooLargeError(f"A JSON body has at most {_MAX_JSON:,} bytes.", "Send application/x-ndjson.")
    try:
        content: Any = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as exc:
        raise BadRequestError("The body is not JSON.", "Send an array of objects, or application/x-ndjson.") from exc
    rows = content.get("rows", [content]) if isinstance(content, dict) else content
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BadRequestError("The body is not an array of objects.", 'Send [{"id": 1}], or {"rows": [...]}.')
    if not rows:
        raise BadRequestError("There are no rows in the body.", "Send at least one.")
    columns: set[str] = set()
    for row in rows:
        columns.update(row)
        if len(columns) > MAX_COLUMNS:
            raise _too_many_columns()
    lines = path.with_suffix(".jsonl")
    with lines.open("w") as out:
        for row in rows:
            out.write(json.dumps(row) + "\n")
    path.unlink()
    return lines


def _parquet(path: Path, limit: int) -> Path:
    import pyarrow
    from pyarrow import parquet

    target, size = path.with_suffix(".parquet"), 0
    try:
        with pyarrow.memory_map(str(path)) as source, pyarrow.ipc.open_stream(source) as reader:
            if len(reader.schema) > MAX_COLUMNS:
                raise _too_many_columns()
            with parquet.ParquetWriter(target, reader.schema) as writer:
                for batch in reader:
                    size += batch.nbytes
                    if size > limit:
                        raise RequestTooLargeError(
                            f"The body is larger than {limit:,} bytes when it is read.", "Send less at once."
                        )
                    writer.write_batch(batch)
    except (OSError, pyarrow.ArrowException) as exc:
        raise BadRequestError("The body is not an Arrow stream.", "Write it with pyarrow.ipc.new_stream.") from exc
    path.unlink()
    return target


def _commas(path: Path) -> int:
    with path.open("rb") as file:
        return file.readline(1 << 20).count(b",")


def _too_many_columns() -> RequestTooLargeError:
    return RequestTooLargeError(f"The body has more than {MAX_COLUMNS} columns.", "Send rows, not columns, or less.")
