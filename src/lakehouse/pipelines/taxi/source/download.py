"""Bring one file here over HTTP: resumed where it broke off, tried again, and never half of it under its own name."""

from __future__ import annotations

import errno
import http.client
import json
import os
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lakehouse.core.errors import DiskFullError, SourceError
from lakehouse.pipelines.taxi.source.address import Address
from lakehouse.pipelines.taxi.source.marks import Mark, begins_at, mark_of
from lakehouse.pipelines.taxi.source.whole import NotWhole, check_whole
from lakehouse.pipelines.taxi.source.wire import Answered, Transient, ask, failed, refusal

_CHUNK = 1 << 20
_LONGEST_WAIT_S = 30.0


@dataclass(frozen=True)
class RetryPolicy:
    """How long a download is kept up."""

    tries: int = 5
    """Failures in a row without a new byte."""
    timeout_s: float = 30.0
    """A connection that is silent for so long has stalled."""
    wait_s: float = 1.0
    """Before the second try; twice as long before each further one."""


@dataclass(frozen=True)
class Order:
    """What to download, and who is told of it."""

    address: Address
    month: str
    patience: RetryPolicy = field(default_factory=RetryPolicy)
    say: Callable[[str], None] = lambda text: None
    progress: Callable[[int, int | None], None] = lambda done, size: None
    """Called with the bytes that are here and, if the server tells, those that there are."""


def look(order: Order) -> Mark:
    """What the server says of the file now."""
    with ask(order.address, "HEAD", {}, order.patience.timeout_s) as answer:
        return mark_of(answer.headers)


def download(order: Order, into: Path) -> Mark:
    """The whole, checked file at `into`; what was there before is replaced in one step."""
    part = _Part(into, order.address.shown)
    most, failures = part.size, 0
    while True:
        try:
            mark = _finish(order, part)
            break
        except Answered as exc:
            if exc.status != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise refusal(exc, order.address, order.month) from None
            part.clear()  # the file is shorter now than what is here of it
            problem = Transient("it has changed")
        except Transient as exc:
            problem = exc
        failures = 1 if part.size > most else failures + 1
        most = max(most, part.size)
        _wait(order, problem, failures)
    part.become(into)
    return mark


def _wait(order: Order, problem: Transient, failures: int) -> None:
    patience = order.patience
    if failures >= patience.tries:
        raise SourceError(
            f"{order.address.shown} could not be fetched in {patience.tries} tries: {problem.reason}.",
            "Run the same again later: what is here already is not fetched twice. sources.taxi.tries allows more.",
        ) from None
    pause = max(patience.wait_s * 2 ** (failures - 1), problem.wait_s)
    order.say(f"{order.address.shown}: {problem.reason}; trying again ({failures + 1} of {patience.tries})")
    # Jitter, so that several that were thrown out together do not all come back together.
    time.sleep(min(pause, _LONGEST_WAIT_S) * random.uniform(0.8, 1.2))


def _finish(order: Order, part: _Part) -> Mark:
    """One try: all that is missing, and the check that it is whole."""
    resumed = _fetch_rest(order, part)
    mark = part.mark
    if mark.size is not None and part.size != mark.size:
        if part.size > mark.size:
            part.clear()
        raise Transient(f"it ended after {part.size} of {mark.size} bytes")
    try:
        check_whole(part.file)
    except NotWhole as exc:
        part.clear()
        if resumed:
            raise Transient("its parts do not fit together") from None
        raise SourceError(
            f"What {order.address.shown} gave is not a whole Parquet file: {exc}.",
            "Look at the address in a browser: a page may be answering in place of the file.",
        ) from exc
    return mark


def _fetch_rest(order: Order, part: _Part) -> bool:
    """Append what is missing to the part; whether something was there already."""
    have, known = part.size, part.mark
    resumable = bool(have and known.validator and (known.size is None or have < known.size))
    headers = {"Range": f"bytes={have}-", "If-Range": known.validator} if resumable else {}
    with ask(order.address, "GET", headers, order.patience.timeout_s) as answer:
        told = mark_of(answer.headers)
        goes_on = answer.status == http.client.PARTIAL_CONTENT
        if goes_on and not (begins_at(answer.headers) == have and told.same_as(known)):
            part.clear()
            raise Transient("it has changed")
        if not goes_on:
            part.begin(told)
        _copy(order, answer, part)
    return goes_on


def _copy(order: Order, answer: http.client.HTTPResponse, part: _Part) -> None:
    done, size = part.size, part.mark.size
    with part.file.open("ab") as out:
        while True:
            try:
                chunk = answer.read1(_CHUNK)
            except (OSError, http.client.HTTPException) as exc:
                raise failed(exc, order.address) from None
            if not chunk:
                return
            _write(out.write, chunk, part.file)
            done += len(chunk)
            order.progress(done, size)


def _write(write: Callable[[bytes], object], chunk: bytes, file: Path) -> None:
    try:
        write(chunk)
    except OSError as exc:
        if exc.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(f"No room is left for {file}.", "Free some; the download goes on from there.") from exc
        raise


class _Part:
    """The beginning of a file, and beside it what the server said of the whole when it was begun."""

    def __init__(self, whole: Path, source: str) -> None:
        self.file = whole.with_name(whole.name + ".part")
        self._told = whole.with_name(whole.name + ".part.json")
        self._source = source

    @property
    def size(self) -> int:
        return self.file.stat().st_size if self.file.exists() else 0

    @property
    def mark(self) -> Mark:
        """Nothing at all if the part is of another address: its bytes say nothing about this one's."""
        try:
            told = json.loads(self._told.read_text())
            return Mark(**told["mark"]) if told["source"] == self._source else Mark()
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return Mark()

    def begin(self, mark: Mark) -> None:
        self.clear()
        self._told.write_text(json.dumps({"source": self._source, "mark": asdict(mark)}))
        self.file.touch()

    def clear(self) -> None:
        self.file.unlink(missing_ok=True)
        self._told.unlink(missing_ok=True)

    def become(self, whole: Path) -> None:
        with self.file.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(self.file, whole)
        self._told.unlink(missing_ok=True)
