"""Split a CSV file into records, for the rare files that DuckDB's reader does not read correctly.

DuckDB's reader is fast, but it silently drops rows after a quote that is never closed, refuses files with mixed line
ends, and does not report the line of a row. This parser is slower and handles all three.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from lakehouse.core.dataclass import dataclass
from lakehouse.ingest.files.model import Dialect

_CHUNK = 4 << 20
_BOM = b"\xef\xbb\xbf"
#: A longer quoted value counts as a quote that is never closed.
_MAX_RECORD = 64 << 20


@dataclass(frozen=True)
class Record:
    """One record: first line (from 1), first byte (from 0), bytes with line end, and whether its quotes are valid."""

    line: int
    offset: int
    raw: bytes
    valid: bool

    @property
    def blank(self) -> bool:
        return not self.raw.strip(b"\r\n")

    @property
    def text(self) -> str:
        return self.raw.rstrip(b"\r\n").decode("utf-8", errors="replace")


def records(stream: IO[bytes], dialect: Dialect) -> Iterator[Record]:
    """All records; a line with invalid quotes is a record of its own that is not valid."""
    match_record = _pattern(dialect).match
    start, ended = 0, False
    buffer = stream.read(3)
    line, offset = 1, 3 if buffer == _BOM else 0
    buffer = buffer.removeprefix(_BOM)
    while True:
        record = match_record(buffer, start)
        end = record.end() if record else -1
        # A record that reaches the end of the buffer may continue after it.
        if not ended and end in (-1, len(buffer)) and len(buffer) - start < _MAX_RECORD:
            more = stream.read(_CHUNK)
            offset, buffer, start, ended = offset + start, buffer[start:] + more, 0, not more
            continue
        if start == len(buffer):
            return
        valid = end > start
        end = end if valid else _line_end(buffer, start)
        raw = buffer[start:end]
        yield Record(line, offset + start, raw, valid)
        line += raw.count(b"\n") or raw.count(b"\r")
        start = end


def repair(path: Path, dialect: Dialect, into: Path, reject: Callable[[Record], None]) -> int:
    """Write a copy that DuckDB reads correctly, with uniform line ends; returns its number of records.

    An invalid line becomes a blank line, which the reader skips, so later lines keep their numbers.
    """
    count = 0
    with open(path, "rb") as stream, open(into, "wb") as out:
        for record in records(stream, dialect):
            if record.valid:
                out.write(record.raw.rstrip(b"\r\n") + b"\n")
                count += not record.blank
            else:
                reject(record)
                out.write(b"\n")
    return count


def count_lines(path: Path) -> int:
    """Count the lines of a file that are not blank."""
    with open(path, "rb") as stream:
        if b"\n" in stream.read(_CHUNK):
            stream.seek(0)
            return sum(1 for line in stream if line.strip(b"\r\n"))
        stream.seek(0)
        return sum(not record.blank for record in records(stream, Dialect("\x01", "", "")))


def _line_end(buffer: bytes, start: int) -> int:
    line_end = re.compile(rb"\r\n|\n|\r").search(buffer, start)
    return line_end.end() if line_end else len(buffer)


def _pattern(dialect: Dialect) -> re.Pattern[bytes]:
    """A pattern for a valid record with its line end; possessive, so that an invalid record causes no backtracking."""
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
