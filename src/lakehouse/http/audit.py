"""The audit log: one line of JSON per request, appended at once, rotated by size, and readable as a table."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lakehouse.core.masking import mask
from lakehouse.core.quoting import text
from lakehouse.core.tables import Column, Scan

FILE, _KEPT = "audit.jsonl", 10
#: The columns of the log as a table.
COLUMNS = {
    "at": "timestamp",
    "request": "string",
    "who": "string",
    "name": "string",
    "scope": "string",
    "client": "string",
    "method": "string",
    "path": "string",
    "status": "int",
    "error": "string",
    "ms": "double",
    "bytes_out": "bigint",
    "statement": "string",
    "kind": "string",
    "engine": "string",
    "branch": "string",
    "tables": "array<string>",
    "rows": "bigint",
    "cached": "boolean",
}
_DUCKDB = {"string": "VARCHAR", "int": "INTEGER", "array<string>": "VARCHAR[]", "timestamp": "TIMESTAMPTZ"}


class AuditLog:
    """Appends entries to a file. A line that a crash cut off is skipped when the log is read."""

    def __init__(self, folder: Path, largest: int) -> None:
        """
        Args:
            largest: bytes at which the file is renamed and a new one begun.
        """
        self._folder, self._largest = folder, largest
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file, self._lock = folder / FILE, threading.Lock()
        self._handle = self._open()

    def write(self, entry: Mapping[str, Any]) -> None:
        """Append an entry; it is with the operating system when this returns, so a kill of the service keeps it."""
        line = json.dumps({"at": datetime.now(UTC).isoformat(timespec="milliseconds"), **entry}, ensure_ascii=False)
        content = (mask(line) + "\n").encode("utf-8", "replace")
        with self._lock:
            os.write(self._handle, content)
            if os.fstat(self._handle).st_size > self._largest:
                self._rotate()

    def files(self) -> list[Path]:
        """The files of the log, oldest first."""
        return [*sorted(self._folder.glob("audit-*.jsonl")), self._file]

    def tail(self, count: int) -> list[dict[str, Any]]:
        """The newest entries of the current file, newest first."""
        with self._file.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - count * 2000))
            lines = file.read().decode("utf-8", "replace").splitlines()
        entries = [parsed for line in reversed(lines) if (parsed := _parsed(line)) is not None]
        return entries[:count]

    def scan(self, folder: Path) -> Scan:
        """The whole log as a table: a Parquet file that is written anew in the folder."""
        import duckdb

        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        target = folder / f"audit-{threading.get_ident()}.parquet"
        types = ", ".join(f"{text(name)}: {text(_DUCKDB.get(kind, kind.upper()))}" for name, kind in COLUMNS.items())
        files = ", ".join(text(str(file)) for file in self.files())
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute(
                f"COPY (SELECT * FROM read_json([{files}], format = 'newline_delimited', columns = {{{types}}},"
                f" ignore_errors = true)) TO {text(str(target))} (FORMAT parquet)"
            )
        return Scan(tuple(Column(name, kind) for name, kind in COLUMNS.items()), files=(str(target),))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            os.close(self._handle)

    def _open(self) -> int:
        # A line that a crash cut off ends here, so that the next one is whole.
        handle = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        size = os.fstat(handle).st_size
        if size and os.pread(handle, 1, size - 1) != b"\n":
            os.write(handle, b"\n")
        return handle

    def _rotate(self) -> None:
        os.close(self._handle)
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
        self._file.rename(self._folder / f"audit-{stamp}.jsonl")
        self._handle = self._open()
        for old in sorted(self._folder.glob("audit-*.jsonl"))[:-_KEPT]:
            old.unlink(missing_ok=True)


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None
