"""Download one file over HTTP: retried, resumed where it broke off, and complete or not there at all.

The resume loop is our own: no library continues a body that broke off with Range and If-Range.
"""

from __future__ import annotations

import errno
import http.client
import json
import os
import random
import time
from collections.abc import Callable
from dataclasses import asdict, field
from pathlib import Path
from typing import BinaryIO

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import DiskFullError, SourceError
from lakehouse.pipelines.taxi.source.web import (
    Address,
    FileVersion,
    HttpStatusError,
    TransientError,
    refused,
    send,
    start_of,
    version_of,
)

_CHUNK_BYTES = 1 << 20
_MAX_WAIT_S = 30.0


@dataclass(frozen=True)
class RetryPolicy:
    """When a download is repeated and when it fails."""

    tries: int = 5
    """Failed attempts in a row without a new byte."""
    timeout_s: float = 30.0
    """Seconds of silence after which a connection has stalled."""
    wait_s: float = 1.0
    """Wait before the second attempt, doubled before each further one."""


@dataclass(frozen=True)
class DownloadRequest:
    """What to download, the retry policy, and callbacks for progress."""

    address: Address
    month: str
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    progress: Callable[[str], None] = lambda text: None
    on_bytes: Callable[[int, int | None], None] = lambda done, size: None
    """Called with the bytes received and, if known, the size."""


def fetch_version(request: DownloadRequest) -> FileVersion:
    """The version of the file on the server now."""
    with send(request.address, "HEAD", {}, request.retry.timeout_s) as response:
        return version_of(response.headers)


def download(request: DownloadRequest, target: Path) -> FileVersion:
    """Download and check the file, then replace `target` atomically; returns its version."""
    part = _PartialFile(target, request.address.shown)
    most, failures = part.size, 0
    while True:
        try:
            version = _attempt(request, part)
            break
        except HttpStatusError as exc:
            if exc.status != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise refused(exc.status, request.address, request.month) from None
            part.clear()  # the file on the server is shorter than the partial file
            problem = TransientError("it has changed")
        except TransientError as exc:
            problem = exc
        failures = 1 if part.size > most else failures + 1
        most = max(most, part.size)
        _wait(request, problem, failures)
    part.move_to(target)
    return version


def check_parquet(file: Path | BinaryIO) -> None:
    """Raise ValueError unless the file ends with a readable Parquet footer."""
    import pyarrow
    from pyarrow import parquet

    try:
        parquet.read_metadata(file)
    except (pyarrow.ArrowException, OSError) as exc:
        raise ValueError(str(exc).splitlines()[0].rstrip(".")) from exc


def _wait(request: DownloadRequest, problem: TransientError, failures: int) -> None:
    retry, shown = request.retry, request.address.shown
    if failures >= retry.tries:
        raise SourceError(
            f"{shown} could not be downloaded in {retry.tries} tries: {problem.reason}.",
            "Run it again later: the download continues where it stopped. sources.taxi.tries allows more tries.",
        ) from None
    wait_s = max(retry.wait_s * 2 ** (failures - 1), problem.wait_s)
    request.progress(f"{shown}: {problem.reason}; trying again ({failures + 1} of {retry.tries})")
    # Jitter: clients that were refused together must not all return together.
    time.sleep(min(wait_s, _MAX_WAIT_S) * random.uniform(0.8, 1.2))


def _attempt(request: DownloadRequest, part: _PartialFile) -> FileVersion:
    """Receive the missing bytes and check that the file is complete."""
    resumed = _receive(request, part)
    version = part.version
    if version.size is not None and part.size != version.size:
        if part.size > version.size:
            part.clear()
        raise TransientError(f"it ended after {part.size} of {version.size} bytes")
    try:
        check_parquet(part.file)
    except ValueError as exc:
        part.clear()
        if resumed:
            raise TransientError("its parts do not fit together") from None
        raise SourceError(
            f"{request.address.shown} is not a complete Parquet file: {exc}.",
            "Open the address in a browser: the server may answer with a page instead of the file.",
        ) from exc
    return version


def _receive(request: DownloadRequest, part: _PartialFile) -> bool:
    """Append the missing bytes to the partial file; returns whether the download was resumed."""
    start, known = part.size, part.version
    resumable = bool(start and known.validator and (known.size is None or start < known.size))
    headers = {"Range": f"bytes={start}-", "If-Range": known.validator} if resumable else {}
    with send(request.address, "GET", headers, request.retry.timeout_s) as response:
        version = version_of(response.headers)
        resumed = response.status == http.client.PARTIAL_CONTENT
        if resumed and not (start_of(response.headers) == start and version.matches(known)):
            part.clear()
            raise TransientError("it has changed")
        if not resumed:
            part.begin(version)
        done = part.size
        with part.file.open("ab") as out:
            # What has arrived is written at once, so a connection that breaks loses nothing.
            while chunk := response.read_available(_CHUNK_BYTES):
                _write(out.write, chunk, part.file)
                done += len(chunk)
                request.on_bytes(done, part.version.size)
    return resumed


def _write(write: Callable[[bytes], object], chunk: bytes, file: Path) -> None:
    try:
        write(chunk)
    except OSError as exc:
        if exc.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(f"No space is left for {file}.", "Free some; the download then continues.") from exc
        raise


class _PartialFile:
    """The first bytes of a file, and beside them the version that they belong to."""

    def __init__(self, target: Path, source: str) -> None:
        self.file = target.with_name(target.name + ".part")
        self._state = target.with_name(target.name + ".part.json")
        self._source = source

    @property
    def size(self) -> int:
        return self.file.stat().st_size if self.file.exists() else 0

    @property
    def version(self) -> FileVersion:
        """Unknown if the bytes come from another address."""
        try:
            state = json.loads(self._state.read_text())
            return FileVersion(**state["version"]) if state["source"] == self._source else FileVersion()
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return FileVersion()

    def begin(self, version: FileVersion) -> None:
        self.clear()
        self._state.write_text(json.dumps({"source": self._source, "version": asdict(version)}))
        self.file.touch()

    def clear(self) -> None:
        self.file.unlink(missing_ok=True)
        self._state.unlink(missing_ok=True)

    def move_to(self, target: Path) -> None:
        with self.file.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(self.file, target)
        self._state.unlink(missing_ok=True)
