"""Export a table to a file with DuckDB; the file appears complete or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from lakehouse.core.errors import LakeError, UnknownChoiceError
from lakehouse.core.names import TableName
from lakehouse.core.progress import report
from lakehouse.core.quoting import text
from lakehouse.core.tables import Scan
from lakehouse.engines.duckdb import DuckDB, DuckDBRows, read_batches

_COPY = {
    ".csv": "FORMAT csv, HEADER true",
    ".tsv": "FORMAT csv, HEADER true, DELIMITER '\t'",
    ".jsonl": "FORMAT json",
    ".ndjson": "FORMAT json",
    ".parquet": "FORMAT parquet, COMPRESSION zstd",
}
_ARROW = (".arrow", ".feather")
_COMPRESSION = {".gz": "gzip", ".zst": "zstd"}
_BATCH_ROWS = 100_000


def export_scan(duckdb: DuckDB, scan: Scan, file: Path) -> int:
    """Write the rows of a scan to a file; returns their number."""
    compression = _COMPRESSION.get(file.suffix.lower(), "")
    kind = (file.with_suffix("") if compression else file).suffix.lower()
    if kind not in _COPY and kind not in _ARROW:
        raise UnknownChoiceError("file suffix", file.suffix or file.name, [*_COPY, *_ARROW, ".csv.gz"])
    if not file.absolute().parent.is_dir():
        raise LakeError(f"{file} cannot be written: there is no folder {file.parent}.", "Create it first.")
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    views: dict[TableName | str, Scan] = {"exported": scan}
    try:
        rows = (
            _arrow(duckdb, views, temporary)
            if kind in _ARROW
            else _copy(duckdb, views, temporary, _COPY[kind], compression)
        )
        temporary.replace(file)
    except OSError as exc:
        raise LakeError(f"{file} cannot be written: {exc.strerror}.", "Choose another path.") from exc
    finally:
        temporary.unlink(missing_ok=True)
    return rows


def _copy(duckdb: DuckDB, views: dict[TableName | str, Scan], temporary: Path, options: str, compression: str) -> int:
    size = views["exported"].total_rows or 0
    if compression and "parquet" not in options:
        options += f", COMPRESSION {compression}"
    rows = duckdb.execute(f"COPY (SELECT * FROM exported) TO {text(str(temporary))} ({options})", views, size)
    return int(rows[0][0])


def _arrow(duckdb: DuckDB, views: dict[TableName | str, Scan], temporary: Path) -> int:
    import pyarrow

    rows = duckdb.query("SELECT * FROM exported", views, "export").source
    assert isinstance(rows, DuckDBRows)
    reader, count = rows.reader(_BATCH_ROWS), 0
    with pyarrow.OSFile(str(temporary), "wb") as sink, pyarrow.ipc.new_file(sink, reader.schema) as writer:
        for batch in read_batches(reader):
            writer.write_batch(batch)
            count += batch.num_rows
            report(count, max(views["exported"].total_rows or 0, count), "rows")
    return count
