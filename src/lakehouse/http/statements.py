"""Statements that outlive their request: their state, their result in chunks on disk, and when they are forgotten."""

from __future__ import annotations

import secrets
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.core.encoding import ArrowChunks, JsonChunks
from lakehouse.core.errors import LakeError, NotFoundError, StatementCanceledError, TooManyRequestsError
from lakehouse.http.errors import unexpected
from lakehouse.http.execution import Execution
from lakehouse.http.principal import Principal

PENDING, RUNNING, SUCCEEDED, FAILED, CANCELED = "PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELED"
ENDED = (SUCCEEDED, FAILED, CANCELED)
#: How long the result of a statement is kept, and how many at most.
_LIFETIME_S, _MAX_KEPT = 3600.0, 1000


@dataclass(frozen=True)
class Chunk:
    """A part of a result: where it begins, and its size."""

    row_offset: int
    row_count: int
    byte_count: int


class StoredStatement:
    """One statement and its result."""

    def __init__(self, execution: Execution, owner: Principal, folder: Path, request_id: str) -> None:
        self.id = f"st_{secrets.token_hex(12)}"
        self.execution, self.owner, self._request_id = execution, owner, request_id
        execution.id = self.id
        self._folder = folder / self.id
        self.state = PENDING
        self.error: LakeError | None = None
        self.created, self._canceled = time.monotonic(), False
        self.chunks: list[Chunk] = []
        self.ended = threading.Event()

    def run(self) -> None:
        """Run the statement and write its chunks; blocks."""
        try:
            self.state = RUNNING if not self._canceled else CANCELED
            if self._canceled:
                raise StatementCanceledError("The statement was canceled.")
            self.execution.start()
            self._folder.mkdir(parents=True, mode=0o700)
            count, offset = (ArrowChunks if self.is_arrow else JsonChunks).count, 0
            for number, piece in enumerate(piece for piece in self.execution.pieces() if piece):
                (self._folder / str(number)).write_bytes(piece)
                self.chunks.append(Chunk(offset, count(piece), len(piece)))
                offset += self.chunks[-1].row_count
            self.state = SUCCEEDED
        except LakeError as exc:
            self.error, self.state = exc, CANCELED if isinstance(exc, StatementCanceledError) else FAILED
        except Exception as exc:  # noqa: BLE001 - kept as the outcome of the statement
            self.error, self.state = unexpected(exc, self._request_id), FAILED
        finally:
            self.ended.set()

    def cancel(self) -> None:
        """Stop the statement, if it still runs."""
        self._canceled = True
        if self.state not in ENDED:
            self.execution.cancel()

    def chunk(self, number: int) -> bytes:
        """The content of a chunk."""
        if self.state != SUCCEEDED or not 0 <= number < len(self.chunks):
            raise NotFoundError(
                f"The statement {self.id} is {self.state} and has {len(self.chunks)} chunks; {number} is none of them.",
                f"GET /statements/{self.id}",
            )
        return (self._folder / str(number)).read_bytes()

    def forget(self) -> None:
        """Stop it, wait for nothing of it, and remove its result."""
        self._canceled = True
        if self.state not in ENDED:
            self.execution.abandon()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def is_arrow(self) -> bool:
        return self.execution.format == "arrow_chunks"

    @property
    def manifest(self) -> dict[str, Any]:
        """The columns and chunks of the result."""
        columns = [
            {"name": column.name, "type_text": column.type, "position": position}
            for position, column in enumerate(self.execution.columns)
        ]
        return {
            "format": "ARROW_STREAM" if self.is_arrow else "JSON_ARRAY",
            "schema": {"column_count": len(columns), "columns": columns},
            "total_chunk_count": len(self.chunks),
            "total_row_count": self.execution.summary.get("row_count", 0),
            "total_byte_count": sum(chunk.byte_count for chunk in self.chunks),
            "chunks": [{"chunk_index": number, **asdict(chunk)} for number, chunk in enumerate(self.chunks)],
            "truncated": self.execution.summary.get("truncated", False),
            **self.execution.changes,
        }


class StatementStore:
    """The statements of a service, by id."""

    def __init__(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)  # results of a service that ended
        self._folder, self._lock = folder, threading.Lock()
        self._statements: dict[str, StoredStatement] = {}

    def add(self, execution: Execution, owner: Principal, request_id: str) -> StoredStatement:
        """Keep a new statement."""
        self._forget_old()
        statement = StoredStatement(execution, owner, self._folder, request_id)
        with self._lock:
            if len(self._statements) >= _MAX_KEPT:
                raise TooManyRequestsError(f"{_MAX_KEPT} statements are kept already.", "Try again later.", 60)
            self._statements[statement.id] = statement
        return statement

    def get(self, identifier: str, caller: Principal) -> StoredStatement:
        """A statement of the caller, or of anybody for an admin."""
        statement = self._statements.get(identifier)
        if statement is None or not (statement.owner.id == caller.id or caller.is_owner):
            raise NotFoundError(
                f"There is no statement {identifier[:40]!r}.", f"Results are kept for {_LIFETIME_S / 60:.0f} minutes."
            )
        return statement

    def close(self) -> None:
        """Stop all statements and remove their results."""
        self._forget(lambda statement: True)

    def _forget_old(self) -> None:
        oldest = time.monotonic() - _LIFETIME_S
        self._forget(lambda statement: statement.state in ENDED and statement.created < oldest)

    def _forget(self, is_old: Callable[[StoredStatement], bool]) -> None:
        with self._lock:
            old = [statement for statement in self._statements.values() if is_old(statement)]
            for statement in old:
                del self._statements[statement.id]
        for statement in old:
            statement.forget()
