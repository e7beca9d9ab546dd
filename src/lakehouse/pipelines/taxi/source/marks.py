"""What tells one version of a published file from the next: its ETag, its time and its size."""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.message import Message

_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


@dataclass(frozen=True)
class Mark:
    """What a server says of a file, as far as it says it."""

    etag: str = ""
    last_modified: str = ""
    size: int | None = None

    @property
    def validator(self) -> str:
        """What If-Range may hold: a weak ETag does not promise the same bytes."""
        return self.etag if self.etag and not self.etag.startswith("W/") else self.last_modified

    def same_as(self, other: Mark) -> bool:
        """Whether both speak of the same content. A size alone counts only where nothing better is known."""
        if self.size is not None and other.size is not None and self.size != other.size:
            return False
        if self.etag and other.etag:
            return self.etag == other.etag
        if self.last_modified and other.last_modified:
            return self.last_modified == other.last_modified
        return self.size is not None and self.size == other.size


def mark_of(headers: Message) -> Mark:
    """The mark in the headers of a whole file, or of a part of it."""
    ranged = _RANGE.fullmatch(headers.get("Content-Range", ""))
    told = ranged[2] if ranged else headers.get("Content-Length", "")
    size = int(told) if told.isdigit() else None
    return Mark(headers.get("ETag", ""), headers.get("Last-Modified", ""), size)


def begins_at(headers: Message) -> int | None:
    """Where the part begins that a server sends."""
    ranged = _RANGE.fullmatch(headers.get("Content-Range", ""))
    return int(ranged[1]) if ranged else None
