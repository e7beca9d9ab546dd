"""DuckDB for reading source files: a connection with a memory limit, and SQL that reads files as strings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.core.errors import DamagedFileError, DiskFullError, EngineError, NotInstalledError
from lakehouse.core.quoting import text
from lakehouse.ingest.files.discover import SourceFile
from lakehouse.ingest.files.model import Dialect

if TYPE_CHECKING:
    import duckdb

#: Maximum row sizes; a file with a longer row is read again with the next size.
LINE_SIZES = (2 << 20, 16 << 20, 128 << 20)
#: A null word for DuckDB that never occurs, because its list must not be empty.
_UNUSED_WORD = "\x02\x03"
#: JSON escapes control characters, so this never occurs in a line.
_NO_DELIMITER = "\x01"


def connect(memory_limit: int, threads: int, spill: Path) -> duckdb.DuckDBPyConnection:
    """Open an in-memory database that spills to a folder when it reaches its memory limit."""
    try:
        import duckdb
    except ImportError as exc:
        raise NotInstalledError("duckdb", "duckdb") from exc
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"})
    connection.execute(
        f"SET TimeZone = 'UTC'; SET memory_limit = '{memory_limit}B'; SET temp_directory = {text(str(spill))};"
        " SET enable_progress_bar = true; SET enable_progress_bar_print = false"  # so that it can be asked
    )
    if threads:
        connection.execute(f"SET threads = {threads}")
    return connection


@contextmanager
def translate_errors(file: SourceFile) -> Iterator[None]:
    """Translate errors of DuckDB into a LakeError about the file."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as exc:
        raise EngineError(f"{file.name} needs more memory than the limit.", "Raise query.memory_limit.") from exc
    except duckdb.Error as exc:
        if "No space left" in str(exc):
            raise DiskFullError(
                "The disk is full.", "Free some space; files are staged on disk before they are written."
            ) from exc
        first = str(exc).splitlines()[0] if str(exc) else type(exc).__name__
        raise DamagedFileError(
            f"{file.name} cannot be read: {first}", "Check the file, or copy it again.", file=file.name
        ) from exc


def literal_path(path: str, folder: Path) -> str:
    """The path, or a symbolic link to it in the folder if DuckDB would treat its name as a pattern."""
    if not any(character in path for character in "*?["):
        return path
    link = folder / f"link-{hashlib.sha256(path.encode()).hexdigest()[:16]}"
    if not link.is_symlink():
        link.symlink_to(path)
    return str(link)


def field(index: int) -> str:
    """The name of a column in our SQL; headers are never part of SQL."""
    return f"f{index}"


def csv_scan(path: Path, dialect: Dialect, width: int, nulls: Sequence[str], **options: object) -> str:
    """SQL for the rows of a CSV file, every value a string."""
    replaced = _words_to_replace(dialect, width, nulls)
    words = [word for word in nulls if word not in replaced] or [_UNUSED_WORD]
    settings = {
        "auto_detect": "false",
        "compression": "'none'",  # otherwise the name of the file decides
        "header": str(dialect.header).lower(),
        "skip": str(dialect.lines_above),  # otherwise a blank line counts as the header
        "delim": text(dialect.delimiter),
        "quote": text(dialect.quote),
        "escape": text(dialect.escape),
        "nullstr": "[" + ", ".join(map(text, words)) + "]",
        "columns": "{" + ", ".join(f"'{field(index)}': 'VARCHAR'" for index in range(width)) + "}",
        **{key: str(value).lower() for key, value in options.items()},
    }
    scan = f"read_csv({text(str(path))}, " + ", ".join(f"{key} = {value}" for key, value in settings.items()) + ")"
    if not replaced:
        return f"SELECT * FROM {scan}"
    listed = ", ".join(map(text, replaced))
    selected = (
        f"CASE WHEN {field(at)} IN ({listed}) THEN NULL ELSE {field(at)} END AS {field(at)}" for at in range(width)
    )
    return f"SELECT {', '.join(selected)} FROM {scan}"


def _words_to_replace(dialect: Dialect, width: int, nulls: Sequence[str]) -> list[str]:
    """Null words that must be replaced after DuckDB's reader.

    The reader refuses words that contain a delimiter or quote. With the word "" it reads a blank line as a row if the
    file has one column.
    """
    if width == 1:
        return list(nulls)
    special = {dialect.delimiter, dialect.quote, dialect.escape} - {""}
    return [word for word in nulls if any(character in word for character in special)]


def lines_scan(path: Path, **options: object) -> str:
    """SQL for the lines of a file as column f0, without blank lines."""
    return csv_scan(path, Dialect(_NO_DELIMITER, "", "", header=False), 1, (), **options)


def parquet(path: str) -> str:
    """SQL that reads a Parquet file; folders named like `day=1` do not become columns."""
    return f"read_parquet({text(path)}, hive_partitioning = false)"
