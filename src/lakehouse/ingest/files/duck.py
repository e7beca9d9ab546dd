"""DuckDB as this room uses it: a connection with bounded memory, and the SQL that reads a file as texts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.core.errors import DiskFullError, EngineError, NotInstalledError
from lakehouse.core.quoting import text
from lakehouse.ingest.files.discover import SourceFile
from lakehouse.ingest.files.errors import DamagedFileError
from lakehouse.ingest.files.model import Dialect

if TYPE_CHECKING:
    import duckdb

#: How long a row may be; a file with a longer one is read again with the next size.
LINE_SIZES = (2 << 20, 16 << 20, 128 << 20)
#: Stands where DuckDB wants a null word and there is none; no text has these two in a row.
_NO_WORD = "\x02\x03"
#: JSON must escape control characters, so none can stand in a line of it.
_NO_DELIMITER = "\x01"


def connect(memory_limit: int, threads: int, spill: Path) -> duckdb.DuckDBPyConnection:
    """A database in memory that spills into a folder rather than use more than it may."""
    try:
        import duckdb
    except ImportError as exc:
        raise NotInstalledError("duckdb", "duckdb") from exc
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"})
    connection.execute(
        f"SET TimeZone = 'UTC'; SET memory_limit = '{memory_limit}B'; SET temp_directory = {text(str(spill))}"
    )
    if threads:
        connection.execute(f"SET threads = {threads}")
    return connection


@contextmanager
def translated(file: SourceFile) -> Iterator[None]:
    """Let no error of DuckDB out of this room."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as exc:
        raise EngineError(f"{file.name} needs more memory than it may use.", "Raise the memory limit.") from exc
    except duckdb.Error as exc:
        if "No space left" in str(exc):
            raise DiskFullError("The disk is full.", "Free some space; files are staged before they go in.") from exc
        first = str(exc).splitlines()[0] if str(exc) else type(exc).__name__
        raise DamagedFileError(f"{file.name} cannot be read: {first}", "Fetch it again.", file=file.name) from exc


def reachable(path: str, folder: Path) -> str:
    """The path, or a link to it in the folder if DuckDB would take its name for a pattern."""
    if not any(mark in path for mark in "*?["):
        return path
    link = folder / f"link-{hashlib.sha256(path.encode()).hexdigest()[:16]}"
    if not link.is_symlink():
        link.symlink_to(path)
    return str(link)


def field(place: int) -> str:
    """The name of a file's column inside our SQL; headers never get that far."""
    return f"f{place}"


def csv_scan(path: Path, dialect: Dialect, width: int, nulls: Sequence[str], **options: object) -> str:
    """The rows of a CSV file, every value a text."""
    late = _late_words(dialect, width, nulls)
    words = [word for word in nulls if word not in late] or [_NO_WORD]
    settings = {
        "auto_detect": "false",
        "compression": "'none'",  # else the file's name decides
        "header": str(dialect.header).lower(),
        "delim": text(dialect.delimiter),
        "quote": text(dialect.quote),
        "escape": text(dialect.escape),
        "nullstr": "[" + ", ".join(map(text, words)) + "]",
        "columns": "{" + ", ".join(f"'{field(place)}': 'VARCHAR'" for place in range(width)) + "}",
        **{key: str(value).lower() for key, value in options.items()},
    }
    scan = f"read_csv({text(str(path))}, " + ", ".join(f"{key} = {value}" for key, value in settings.items()) + ")"
    if not late:
        return f"SELECT * FROM {scan}"
    listed = ", ".join(map(text, late))
    kept = (f"CASE WHEN {field(at)} IN ({listed}) THEN NULL ELSE {field(at)} END AS {field(at)}" for at in range(width))
    return f"SELECT {', '.join(kept)} FROM {scan}"


def _late_words(dialect: Dialect, width: int, nulls: Sequence[str]) -> list[str]:
    """Null words that DuckDB's reader must not be given, so that they are taken out of what it read.

    It refuses those with a delimiter or quote in them; and with "" it takes a blank line for a row if there is but one
    column, though it is no row anywhere else.
    """
    if width == 1:
        return list(nulls)
    special = {dialect.delimiter, dialect.quote, dialect.escape} - {""}
    return [word for word in nulls if any(mark in word for mark in special)]


def lines_scan(path: Path, **options: object) -> str:
    """The lines of a file as f0, without the blank ones."""
    return csv_scan(path, Dialect(_NO_DELIMITER, "", "", header=False), 1, (), **options)


def parquet(path: str) -> str:
    """A Parquet file as a table; folders named `day=1` above it are no columns of it."""
    return f"read_parquet({text(path)}, hive_partitioning = false)"
