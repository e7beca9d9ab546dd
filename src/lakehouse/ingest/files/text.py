"""Bytes into plain UTF-8: unpacking, guessing the encoding, and a look at every byte before a parser sees it."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lakehouse.core.errors import DiskFullError, UnknownChoiceError
from lakehouse.ingest.files.discover import SourceFile, unreadable
from lakehouse.ingest.files.errors import BinaryFileError, NulBytesError
from lakehouse.ingest.files.kinds import head, opened
from lakehouse.ingest.files.model import Compression, FilePlan

_CHUNK = 4 << 20
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
#: Control bytes that no text has.
_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\f\x0b\x1b\x00"))
_MOST_CONTROL = 0.05
_VALID_BEYOND_ASCII = re.compile("[\x80-\ud7ff\ue000-\U0010ffff]")


@dataclass(frozen=True)
class PlainText:
    """A UTF-8 file that can be parsed, and what was seen on the way."""

    path: Path
    has_quote: bool
    lines: int
    """Line ends; that of the last line may be missing, and some may end blank lines."""
    encoding: str


def guess_encoding(start: bytes, name: str) -> str:
    """The encoding of a text by its first bytes; BinaryFileError if it is no text."""
    for bom, encoding in _BOMS:
        if start.startswith(bom):
            return encoding
    if (wide := _utf16_by_zeros(start)) is not None:
        return wide
    if len(start.translate(None, _CONTROL)) < len(start) * (1 - _MOST_CONTROL):
        raise BinaryFileError(
            f"{name} is neither text nor Parquet.", "Give a CSV, TSV, JSON lines or Parquet file.", file=name
        )
    if b"\x00" in start:
        raise _nul(name, start[: start.index(b"\x00")].count(b"\n") + 1)
    # One valid letter beyond ASCII is enough: by accident they do not come about. What is broken then is a row.
    is_utf8 = _is_utf8(start) or _VALID_BEYOND_ASCII.search(start.decode("utf-8", errors="surrogateescape"))
    return "utf-8" if is_utf8 else single_byte(start)


def single_byte(data: bytes) -> str:
    """Windows' own Latin-1 where it fits: what it adds (the euro, curly quotes) Latin-1 proper has as control codes."""
    try:
        data.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252" if re.search(rb"[\x80-\x9f]", data) else "latin-1"


def decode_head(file: SourceFile, packed: Compression, encoding: str | None, size: int) -> tuple[str, str, bool]:
    """The first characters of a text file, its encoding, and whether that is all of it."""
    start = head(file, packed, size)
    chosen = encoding or guess_encoding(start[: 1 << 20], file.name)
    decoder = _decoder(chosen)(errors="replace")
    text = decoder.decode(start, final=len(start) < size)
    return text.removeprefix("\ufeff"), chosen, len(start) < size


def make_plain(plan: FilePlan, guessed: bool, into: Path) -> PlainText:
    """The file as plain UTF-8: itself if it is that already, else a copy in `into`."""
    file, packed, encoding, quote = plan.file, plan.compression, plan.dialect.encoding, plan.dialect.quote
    plain_already = not packed and _same(encoding, "utf-8")
    path = Path(file.path) if plain_already else into
    if not plain_already:
        with opened(file, packed) as stream:
            _copy(stream, path, encoding)
    has_quote, lines, valid = _scan(path, file.name, quote)
    if valid or not guessed or encoding != "utf-8":
        return PlainText(path, has_quote, lines, encoding)
    if (fallback := _only_single_bytes(path)) is None:
        return PlainText(path, has_quote, lines, encoding)
    # Not one valid UTF-8 letter beyond ASCII in the whole file: it never was UTF-8, its first part only looked so.
    recoded = into.with_suffix(".recoded")
    with open(path, "rb") as stream:
        _copy(stream, recoded, fallback)
    return PlainText(recoded, has_quote, lines, fallback)


def _copy(stream: IO[bytes], path: Path, encoding: str) -> None:
    try:
        with open(path, "wb") as out:
            pieces = _pieces(stream)
            if not _same(encoding, "utf-8"):
                pieces = _recoded(pieces, encoding)
            for piece in pieces:
                out.write(piece)
    except OSError as exc:
        if exc.errno == 28:
            raise DiskFullError(f"There is no room for an unpacked copy in {path.parent}.", "Free some space.") from exc
        raise


def _recoded(pieces: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    # What cannot be decoded stays as broken bytes, so that its row is rejected instead of silently changed.
    decoder = _decoder(encoding)(errors="surrogateescape" if encoding != "latin-1" else "strict")
    first = True
    for piece in pieces:
        text = decoder.decode(piece)
        yield (text.removeprefix("\ufeff") if first else text).encode("utf-8", errors="surrogateescape")
        first = False
    yield decoder.decode(b"", final=True).encode("utf-8", errors="surrogateescape")


def _scan(path: Path, name: str, quote: str) -> tuple[bool, int, bool]:
    """Whether a quote occurs, how many lines end, and whether every byte is UTF-8; a NUL byte is an error."""
    has_quote, lines, valid, offset, mark = False, 0, True, 0, quote.encode()
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with open(path, "rb") as stream:
            for piece in _pieces(stream):
                if b"\x00" in piece:
                    raise _nul(name, line_at(path, offset + piece.index(b"\x00")))
                has_quote = has_quote or (bool(mark) and mark in piece)
                lines += piece.count(b"\n")
                valid = valid and _decodes(decoder, piece)
                offset += len(piece)
    except OSError as exc:
        raise unreadable(name, exc) from exc
    return has_quote, lines, valid and _decodes(decoder, b"", final=True)


def line_at(path: Path, offset: int) -> int:
    """The number, counted from 1, of the line in which a byte lies."""
    lines = 1
    with open(path, "rb") as stream:
        while offset > 0 and (piece := stream.read(min(_CHUNK, offset))):
            lines += piece.count(b"\n")
            offset -= len(piece)
    return lines


def _decodes(decoder: codecs.IncrementalDecoder, piece: bytes, final: bool = False) -> bool:
    try:
        if not (piece.isascii() and decoder.getstate()[0] == b"" and not final):
            decoder.decode(piece, final)
    except UnicodeDecodeError:
        return False
    return True


def _only_single_bytes(path: Path) -> str | None:
    """The single-byte encoding of a file in which nothing beyond ASCII is UTF-8; None if something is."""
    seen = bytearray()
    decoder = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape")
    with open(path, "rb") as stream:
        for piece in _pieces(stream):
            if _VALID_BEYOND_ASCII.search(decoder.decode(piece)):
                return None
            seen = bytearray(set(seen) | set(piece)) if not piece.isascii() else seen
    return single_byte(bytes(byte for byte in seen if byte >= 0x80))


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    while piece := stream.read(_CHUNK):
        yield bytes(piece)


def _nul(name: str, line: int) -> NulBytesError:
    return NulBytesError(
        f"{name} holds NUL bytes, the first in line {line}: it is damaged, or not a text file.",
        f"Fetch it again, or take them out: tr -d '\\000' < '{name}' > clean.csv",
        file=name,
        line=line,
    )


def _utf16_by_zeros(start: bytes) -> str | None:
    """UTF-16 without a mark: in western text every other byte is zero."""
    even, odd = start[0:4096:2], start[1:4096:2]
    if not odd:
        return None
    if odd.count(0) > 0.4 * len(odd) and even.count(0) == 0:
        return "utf-16-le"
    if even.count(0) > 0.4 * len(even) and odd.count(0) == 0:
        return "utf-16-be"
    return None


def _is_utf8(start: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)  # the last letter may be cut
    except UnicodeDecodeError:
        return False
    return True


def _decoder(encoding: str) -> type[codecs.IncrementalDecoder] | codecs._IncrementalDecoder:
    try:
        return codecs.getincrementaldecoder(encoding)
    except LookupError as exc:
        raise UnknownChoiceError("encoding", encoding, ["utf-8", "utf-16", "latin-1", "cp1252"]) from exc


def _same(one: str, other: str) -> bool:
    try:
        return codecs.lookup(one).name.replace("-sig", "") == codecs.lookup(other).name
    except LookupError as exc:
        raise UnknownChoiceError("encoding", one, ["utf-8", "utf-16", "latin-1", "cp1252"]) from exc
