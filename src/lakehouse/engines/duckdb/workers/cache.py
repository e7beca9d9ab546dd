"""Results of repeated statements on unchanged tables, in memory up to a size.

The key holds the metadata file and the snapshot of every table, which are looked up in the catalog for each statement: a
table that has changed makes another key, so nobody reads stale rows.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from lakehouse.core.dataclass import dataclass

#: A result above this share of the cache is not stored.
_LARGEST_SHARE = 8
#: Words in statements whose result may differ although no table has changed.
_VARYING = re.compile(
    r"\b(rand\w*|uuid\w*|gen_random_uuid|now|today|current_\w+|localtime\w*|get_current_\w+|transaction_timestamp"
    r"|unix_timestamp|tablesample|sample|shuffle|version|user|session_user|txid_current|monotonically_increasing_id|age)\b",
    re.IGNORECASE,
)


def is_repeatable(sql: str) -> bool:
    """Whether a statement gives the same rows again while its tables are the same."""
    return not _VARYING.search(sql)


@dataclass(frozen=True)
class CachedResult:
    """A stored result."""

    header: Mapping[str, Any]
    pieces: Sequence[bytes]
    summary: dict[str, Any]

    @property
    def size(self) -> int:
        return sum(len(piece) for piece in self.pieces) + 1000


class ResultCache:
    """The results that were used last."""

    def __init__(self, size: int) -> None:
        """
        Args:
            size: bytes of results to keep.
        """
        self._size, self._used = size, 0
        self._lock = threading.Lock()
        self._results: OrderedDict[str, CachedResult] = OrderedDict()

    @staticmethod
    def key(job: Mapping[str, Any], format: str, rights: str) -> str:
        """Identifies a statement, the state of its tables, its format, and the rights of its caller."""
        return hashlib.sha256(json.dumps([job, format, rights], sort_keys=True).encode()).hexdigest()

    def get(self, key: str) -> CachedResult | None:
        """The stored result, or None."""
        with self._lock:
            result = self._results.get(key)
            if result is not None:
                self._results.move_to_end(key)
            return result

    def storing(
        self, key: str, header: Mapping[str, Any], pieces: Iterator[bytes], summary: Callable[[], dict[str, Any]]
    ) -> Iterator[bytes]:
        """The same pieces; the result is stored once all of them were read, unless it is too large."""
        kept: list[bytes] | None = []
        size = 0
        for piece in pieces:
            size += len(piece)
            if kept is not None:
                kept = [*kept, piece] if size <= self._size // _LARGEST_SHARE else None
            yield piece
        if kept is not None:
            self._store(key, CachedResult(header, kept, summary()))

    def _store(self, key: str, result: CachedResult) -> None:
        with self._lock:
            if key in self._results:
                return
            self._results[key] = result
            self._used += result.size
            while self._used > self._size and self._results:
                _, oldest = self._results.popitem(last=False)
                self._used -= oldest.size
