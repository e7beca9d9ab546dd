"""Copy an Arrow file (Feather) to Parquet, which DuckDB reads in parallel and within its memory limit."""

from __future__ import annotations

from pathlib import Path

from lakehouse.core.errors import DamagedFileError
from lakehouse.ingest.files.discover import SourceFile

#: How an Arrow file begins.
MAGIC = b"ARROW1"


def write_parquet(file: SourceFile, into: Path) -> None:
    """Write the batches of an Arrow file to Parquet, one at a time."""
    import pyarrow
    from pyarrow import parquet

    try:
        with (
            pyarrow.memory_map(file.path) as source,
            pyarrow.ipc.open_file(source) as batches,
            parquet.ParquetWriter(into, batches.schema, compression="lz4") as out,
        ):
            for number in range(batches.num_record_batches):
                out.write_batch(batches.get_batch(number))
    except pyarrow.ArrowException as exc:
        raise DamagedFileError(
            f"{file.name} cannot be read: {exc}", "Check the file, or save it as Parquet.", file=file.name
        ) from exc
