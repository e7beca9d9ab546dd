"""Append JSON lines to a file that rotates, also from several processes at once."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lakehouse.core.jsonable import jsonable
from lakehouse.process.files import locked

_KEPT = 5
_PRIVATE, _SHARED = 0o600, 0o660


class RotatingLines:
    """A file of JSON lines. Each line is written whole; a full file becomes `.1`, and `.5` is the oldest."""

    def __init__(self, file: Path, most_bytes: int) -> None:
        self.file, self._most_bytes = file, most_bytes

    def write(self, line: Mapping[str, Any]) -> None:
        """Append a line; raises OSError."""
        data = (json.dumps(jsonable(dict(line)), ensure_ascii=False) + "\n").encode()
        self.file.parent.mkdir(parents=True, exist_ok=True)
        if self._is_full(len(data)):
            self._rotate(len(data))
        # One write to a file opened for appending: lines of several processes do not mix.
        mode = _SHARED if self.file.parent.stat().st_mode & stat.S_IWGRP else _PRIVATE
        descriptor = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, mode)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)

    def lines(self) -> Iterator[str]:
        """Every line that is kept, oldest first."""
        for number in range(_KEPT, -1, -1):
            file = self.file.with_name(f"{self.file.name}.{number}") if number else self.file
            try:
                with file.open(encoding="utf-8", errors="replace") as content:
                    yield from content
            except FileNotFoundError:
                continue  # never that full, or rotated at this moment

    def _is_full(self, added: int) -> bool:
        try:
            return self.file.stat().st_size + added > self._most_bytes
        except FileNotFoundError:
            return False

    def _rotate(self, added: int) -> None:
        with locked(self.file.with_name(f".{self.file.name}.lock")):
            if not self._is_full(added):
                return  # another process was first
            for number in range(_KEPT - 1, 0, -1):
                older = self.file.with_name(f"{self.file.name}.{number}")
                if older.exists():
                    older.replace(self.file.with_name(f"{self.file.name}.{number + 1}"))
            self.file.replace(self.file.with_name(f"{self.file.name}.1"))
