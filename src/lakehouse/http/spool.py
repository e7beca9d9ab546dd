"""What an engine has computed and the client has not taken yet: the first part in memory, the rest in a file without a name."""

from __future__ import annotations

import os
import tempfile
import threading
from collections import deque
from pathlib import Path
from typing import IO

from lakehouse.core.errors import LakeError, StatementCanceledError

#: What a spool holds in memory.
_MEMORY = 1 << 20
#: The share of all space that one spool may take.
_LARGEST_SHARE = 4


class SpoolSpace:
    """The disk space that all spools share."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder, self._size, self._used = folder, size, 0
        self._lock = threading.Lock()

    @property
    def used(self) -> int:
        """Bytes on disk."""
        return self._used

    def reserve(self, count: int, own: int) -> bool:
        """Take space for some bytes more than the own ones; False if there is none."""
        with self._lock:
            has_room = self._used + count <= self._size and own + count <= self._size // _LARGEST_SHARE
            self._used += count if has_room else 0
            return has_room

    def free(self, count: int) -> None:
        """Give space back."""
        with self._lock:
            self._used -= count


class Spool:
    """The pieces of one result, put by one thread and taken by another. When it is full, whoever puts waits."""

    def __init__(self, space: SpoolSpace) -> None:
        self._space, self._changed = space, threading.Condition()
        self._pieces: deque[bytes | tuple[int, int]] = deque()
        """Bytes, or offset and length in the file."""
        self._file: IO[bytes] | None = None
        self._in_memory = self._in_file = self._unread = 0
        self._is_complete, self._is_closed, self._is_full = False, False, False
        self._error: LakeError | None = None

    @property
    def is_full(self) -> bool:
        """Whether the next piece would have to wait."""
        return self._is_full and self._in_memory >= _MEMORY

    @property
    def is_in_memory(self) -> bool:
        """Whether no piece is on disk."""
        return not self._unread

    def put(self, piece: bytes) -> None:
        """Add a piece; raises StatementCanceledError once the spool is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or not self.is_full)
            if self._is_closed:
                raise StatementCanceledError("The statement was canceled.")
            place = self._write(piece) if self._in_memory + len(piece) > _MEMORY else None
            self._is_full = place is None and self._in_memory + len(piece) > _MEMORY
            self._in_memory += len(piece) if place is None else 0
            self._pieces.append(piece if place is None else place)
            self._changed.notify_all()

    def finish(self, error: LakeError | None = None) -> None:
        """Say that no piece follows, or why none does."""
        with self._changed:
            self._is_complete, self._error = True, error
            self._changed.notify_all()

    def take(self) -> bytes | None:
        """The next piece, for which this waits; None after the last one."""
        with self._changed:
            self._changed.wait_for(lambda: self._pieces or self._is_complete or self._is_closed)
            return self._take()

    def take_ready(self) -> tuple[bool, bytes | None]:
        """Whether a piece, or the end, is there without waiting or reading from disk, and that piece."""
        if not self._changed.acquire(blocking=False):
            return False, None
        try:
            in_memory = not isinstance(self._pieces[0], tuple) if self._pieces else self._is_complete or self._is_closed
            return in_memory, self._take() if in_memory else None
        finally:
            self._changed.release()

    def _take(self) -> bytes | None:
        if self._is_closed:
            raise StatementCanceledError("The statement was canceled.")
        if not self._pieces:
            if self._error is not None:
                raise self._error
            return None
        piece = self._pieces.popleft()
        if isinstance(piece, tuple):
            piece = self._read(*piece)
        else:
            self._in_memory -= len(piece)
        self._changed.notify_all()
        return piece

    def close(self) -> None:
        """Forget all pieces and remove the file; whoever still puts or takes is told that the statement was canceled."""
        with self._changed:
            self._is_closed = True
            self._pieces.clear()
            if self._file is not None:
                self._file.close()
                self._file = None
            self._space.free(self._in_file)
            self._in_file = 0
            self._changed.notify_all()

    def _write(self, piece: bytes) -> tuple[int, int] | None:
        """Write a piece to the file; None if there is no space for it."""
        if not self._space.reserve(len(piece), self._in_file):
            return None
        place, self._in_file = (self._in_file, len(piece)), self._in_file + len(piece)
        try:
            if self._file is None:
                self._space.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._file = tempfile.TemporaryFile(dir=self._space.folder, buffering=0)  # noqa: SIM115 - closed by close
            written = os.pwrite(self._file.fileno(), piece, place[0])
        except OSError:  # the disk is full, for example: the piece stays in memory
            written = 0
        if written < len(piece):
            self._in_file -= len(piece)
            self._space.free(len(piece))
            return None
        self._unread += 1
        return place

    def _read(self, offset: int, length: int) -> bytes:
        assert self._file is not None
        piece = os.pread(self._file.fileno(), length, offset)
        self._unread -= 1
        if not self._unread:  # the space can be used again
            os.ftruncate(self._file.fileno(), 0)
            self._space.free(self._in_file)
            self._in_file = 0
        return piece
