"""Records of a CSV file cut out one by one, for the rare file that DuckDB's parser cannot be trusted with.

DuckDB's reader is fast, but after a quote that is never closed it drops rows without a word, it refuses files with
mixed line ends, and it cannot tell in which line a row stood. This is slower and knows all of that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lakehouse.ingest.files.model import Dialect

_CHUNK = 4 << 20
_BOM = b"\xef\xbb\xbf"
#: A quoted value longer than this is taken for a quote that was never closed.
LONGEST_RECORD = 64 << 20


@dataclass(frozen=True)
class Record:
    """One record: its first line (from 1), its first byte (from 0), its bytes with the line end, whether it is sound."""

    line: int
    offset: int
    raw: bytes
    sound: bool

    @property
    def blank(self) -> bool:
        return not self.raw.strip(b"\r\n")

    @property
    def text(self) -> str:
        return self.raw.rstrip(b"\r\n").decode("utf-8", errors="replace")


def records(stream: IO[bytes], dialect: Dialect) -> Iterator[Record]:
    """Every record; where the quotes do not make sense, the one line is a record that is not sound."""
    match_record = _pattern(dialect).match
    start, ended = 0, False
    buffer = stream.read(3)
    line, offset = 1, 3 if buffer == _BOM else 0
    buffer = buffer.removeprefix(_BOM)
    while True:
        found = match_record(buffer, start)
        end = found.end() if found else -1
        # What touches the end of what was read so far may go on after it, be it sound or not.
        if not ended and end in (-1, len(buffer)) and len(buffer) - start < LONGEST_RECORD:
            more = stream.read(_CHUNK)
            offset, buffer, start, ended = offset + start, buffer[start:] + more, 0, not more
            continue
        if start == len(buffer):
            return
        sound = end > start
        end = end if sound else _line_end(buffer, start)
        raw = buffer[start:end]
        yield Record(line, offset + start, raw, sound)
        line += raw.count(b"\n") or raw.count(b"\r")
        start = end


def mend(path: Path, dialect: Dialect, into: Path, reject: Callable[[Record], None]) -> int:
    """Write a copy that DuckDB reads rightly, with one kind of line end; how many records it has.

    A line that makes no sense becomes a blank one: the reader skips those, and the lines after it keep their numbers.
    """
    count = 0
    with open(path, "rb") as stream, open(into, "wb") as out:
        for record in records(stream, dialect):
            if record.sound:
                out.write(record.raw.rstrip(b"\r\n") + b"\n")
                count += not record.blank
            else:
                reject(record)
                out.write(b"\n")
    return count


def count_lines(path: Path) -> int:
    """The lines of a file that are not blank."""
    with open(path, "rb") as stream:
        if b"\n" in stream.read(_CHUNK):
            stream.seek(0)
            return sum(1 for line in stream if line.strip(b"\r\n"))
        stream.seek(0)
        return sum(not record.blank for record in records(stream, Dialect("\x01", "", "")))


def _line_end(buffer: bytes, start: int) -> int:
    found = re.compile(rb"\r\n|\n|\r").search(buffer, start)
    return found.end() if found else len(buffer)


def _pattern(dialect: Dialect) -> re.Pattern[bytes]:
    """One whole, sound record with its line end. Possessive, so that a bad record costs one look, not many."""
    delimiter = re.escape(dialect.delimiter.encode())
    bare = rb"[^\r\n%s]*+" % delimiter
    value = bare
    if dialect.quote:
        quote, escape = re.escape(dialect.quote.encode()), re.escape(dialect.escape.encode())
        inside = rb"[^%s]|%s%s" % (quote, quote, quote)
        if dialect.escape != dialect.quote:
            inside = rb"[^%s%s]|%s." % (quote, escape, escape)
        value = rb"(?:\x20*+%s(?:%s)*+%s\x20*+|(?!\x20*+%s)%s)" % (quote, inside, quote, quote, bare)
    return re.compile(rb"%s(?:%s%s)*+(?:\r\n|\n|\r|\Z)" % (value, delimiter, value), re.DOTALL)
