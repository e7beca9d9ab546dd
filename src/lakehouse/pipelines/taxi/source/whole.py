"""Whether a file is a whole Parquet file, and what its bytes hash to."""

from __future__ import annotations

import hashlib
from pathlib import Path

_MAGIC = b"PAR1"
#: Magic, an empty footer's length, magic.
_SHORTEST = 12


class NotWhole(Exception):
    """The file is not Parquet, or not all of it."""


def check_whole(file: Path) -> None:
    """Raise NotWhole unless Parquet's magic stands at both ends and the footer can be read."""
    import pyarrow
    from pyarrow import parquet

    if file.stat().st_size < _SHORTEST:
        raise NotWhole("it is too short")
    with file.open("rb") as content:
        begins = content.read(4)
        content.seek(-4, 2)
        ends = content.read(4)
    if begins != _MAGIC:
        raise NotWhole("it does not begin like one")
    if ends != _MAGIC:
        raise NotWhole("its end is missing")
    try:
        parquet.read_metadata(file)
    except (pyarrow.ArrowException, OSError) as exc:
        raise NotWhole("its footer cannot be read") from exc


def sha256_of(file: Path) -> str:
    """The SHA-256 of a file's bytes."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
