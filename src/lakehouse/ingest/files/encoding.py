"""Convert text files to UTF-8: decompress, detect the encoding, check every byte."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BinaryFileError, DiskFullError, NulBytesError, UnknownChoiceError
from lakehouse.core.requests import ReadOptions
from lakehouse.ingest.files.discover import SourceFile, unreadable_file
from lakehouse.ingest.files.file_kind import open_decompressed, read_head
from lakehouse.ingest.files.model import Compression, FilePlan

_CHUNK = 4 << 20
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
#: Control characters that text does not contain.
_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\f\x0b\x1b\x00"))
_MAX_CONTROL_SHARE = 0.05
_LINE_END = re.compile(rb"\r\n|\n|\r")
_VALID_NON_ASCII = re.compile("[\x80-\ud7ff\ue000-\U0010ffff]")


@dataclass(frozen=True)
class Utf8File:
    """A UTF-8 copy of a text file, or the file itself, and what its bytes show."""

    path: Path
    has_quote: bool
    lines: int
    """Number of line ends after the skipped lines, including those of blank lines; the last line may have none."""
    encoding: str


def detect_encoding(start: bytes, name: str) -> str:
    """Detect the encoding of text from its first bytes; BinaryFileError if it is not text."""
    for bom, encoding in _BOMS:
        if start.startswith(bom):
            return encoding
    if (wide := _utf16_by_zeros(start)) is not None:
        return wide
    if len(start.translate(None, _CONTROL)) < len(start) * (1 - _MAX_CONTROL_SHARE):
        raise BinaryFileError(
            f"{name} is neither text nor Parquet.", "Use a CSV, TSV, JSON, Parquet, Arrow or Excel file.", file=name
        )
    if b"\x00" in start:
        raise _nul_bytes_error(name, start[: start.index(b"\x00")].count(b"\n") + 1)
    # One valid multi-byte character is enough, since they do not occur by accident; invalid bytes then reject their row.
    is_utf8 = _is_utf8(start) or _VALID_NON_ASCII.search(start.decode("utf-8", errors="surrogateescape"))
    return "utf-8" if is_utf8 else single_byte_encoding(start)


def single_byte_encoding(data: bytes) -> str:
    """cp1252 if its own characters (euro, curly quotes) occur, which are control codes in Latin-1; else Latin-1."""
    try:
        data.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252" if re.search(rb"[\x80-\x9f]", data) else "latin-1"


def decode_head(file: SourceFile, compression: Compression, encoding: str | None, size: int) -> tuple[str, str, bool]:
    """The first characters of a text file, its encoding, and whether they are the whole file."""
    start = read_head(file, compression, size)
    chosen = encoding or detect_encoding(start[: 1 << 20], file.name)
    decoder = _decoder(chosen)(errors="replace")
    text = decoder.decode(start, final=len(start) < size)
    return text.removeprefix("\ufeff"), chosen, len(start) < size


def ensure_utf8(plan: FilePlan, settings: ReadOptions, into: Path) -> Utf8File:
    """The file as uncompressed UTF-8: the file itself if it is that and no line is to be skipped, else a copy at `into`."""
    file, compression, encoding, quote = plan.file, plan.compression, plan.dialect.encoding, plan.dialect.quote
    detected, skipped = settings.encoding is None, settings.skip_rows
    is_plain = not compression and _same_encoding(encoding, "utf-8") and not skipped
    path = Path(file.path) if is_plain else into
    if not is_plain:
        with open_decompressed(file, compression) as stream:
            _copy(stream, path, encoding, skipped)
    has_quote, lines, valid = _scan(path, file.name, quote)
    lines -= skipped
    if valid or not detected or encoding != "utf-8":
        return Utf8File(path, has_quote, lines, encoding)
    if (fallback := _single_byte_fallback(path)) is None:
        return Utf8File(path, has_quote, lines, encoding)
    # The whole file has no valid multi-byte character: it is not UTF-8, only its first part was ASCII.
    converted = into.with_suffix(".recoded")
    with open(path, "rb") as stream:
        _copy(stream, converted, fallback)
    return Utf8File(converted, has_quote, lines, fallback)


def _copy(stream: IO[bytes], path: Path, encoding: str, skipped: int = 0) -> None:
    try:
        with open(path, "wb") as out:
            chunks = _chunks(stream)
            if not _same_encoding(encoding, "utf-8"):
                chunks = _convert(chunks, encoding)
            for chunk in _blank_first_lines(chunks, skipped) if skipped else chunks:
                out.write(chunk)
    except OSError as exc:
        if exc.errno == 28:
            raise DiskFullError(f"{path.parent} has no space for a decompressed copy.", "Free some space.") from exc
        raise


def _blank_first_lines(chunks: Iterator[bytes], count: int) -> Iterator[bytes]:
    """Keep only the ends of the first lines: the reader skips blank lines, and later ones keep their numbers."""
    start, ends = b"", list[re.Match[bytes]]()
    for chunk in chunks:
        start += chunk
        ends = list(islice(_LINE_END.finditer(start), count))
        # A CR at the end of what was read may be half of a line end.
        if len(ends) == count and ends[-1].end() < len(start):
            break
    yield b"".join(end[0] for end in ends)
    yield start[ends[-1].end() :] if len(ends) == count else b""
    yield from chunks


def _convert(chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    # Invalid bytes stay invalid, so that their row is rejected instead of silently changed.
    decoder = _decoder(encoding)(errors="surrogateescape" if encoding != "latin-1" else "strict")
    first = True
    for chunk in chunks:
        text = decoder.decode(chunk)
        yield (text.removeprefix("\ufeff") if first else text).encode("utf-8", errors="surrogateescape")
        first = False
    yield decoder.decode(b"", final=True).encode("utf-8", errors="surrogateescape")


def _scan(path: Path, name: str, quote: str) -> tuple[bool, int, bool]:
    """Whether a quote occurs, the number of line ends, and whether all bytes are UTF-8; NulBytesError for a NUL."""
    has_quote, lines, valid, offset, quote_byte = False, 0, True, 0, quote.encode()
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with open(path, "rb") as stream:
            for chunk in _chunks(stream):
                if b"\x00" in chunk:
                    raise _nul_bytes_error(name, line_number_at(path, offset + chunk.index(b"\x00")))
                has_quote = has_quote or (bool(quote_byte) and quote_byte in chunk)
                lines += chunk.count(b"\n")
                valid = valid and _is_valid_utf8(decoder, chunk)
                offset += len(chunk)
    except OSError as exc:
        raise unreadable_file(name, exc) from exc
    return has_quote, lines, valid and _is_valid_utf8(decoder, b"", final=True)


def line_number_at(path: Path, offset: int) -> int:
    """The number, from 1, of the line that contains a byte."""
    lines = 1
    with open(path, "rb") as stream:
        while offset > 0 and (chunk := stream.read(min(_CHUNK, offset))):
            lines += chunk.count(b"\n")
            offset -= len(chunk)
    return lines


def _is_valid_utf8(decoder: codecs.IncrementalDecoder, chunk: bytes, final: bool = False) -> bool:
    try:
        if not (chunk.isascii() and decoder.getstate()[0] == b"" and not final):
            decoder.decode(chunk, final)
    except UnicodeDecodeError:
        return False
    return True


def _single_byte_fallback(path: Path) -> str | None:
    """The single-byte encoding of a file without a valid UTF-8 multi-byte character; None if it has one."""
    non_ascii = bytearray()
    decoder = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape")
    with open(path, "rb") as stream:
        for chunk in _chunks(stream):
            if _VALID_NON_ASCII.search(decoder.decode(chunk)):
                return None
            non_ascii = bytearray(set(non_ascii) | set(chunk)) if not chunk.isascii() else non_ascii
    return single_byte_encoding(bytes(byte for byte in non_ascii if byte >= 0x80))


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK):
        yield bytes(chunk)


def _nul_bytes_error(name: str, line: int) -> NulBytesError:
    return NulBytesError(
        f"{name} contains NUL bytes, the first in line {line}: it is damaged or not a text file.",
        f"Copy it again, or remove them: tr -d '\\000' < '{name}' > clean.csv",
        file=name,
        line=line,
    )


def _utf16_by_zeros(start: bytes) -> str | None:
    """Detect UTF-16 without a byte order mark: in Western text every other byte is zero."""
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
        codecs.getincrementaldecoder("utf-8")().decode(start)  # the last character may be incomplete
    except UnicodeDecodeError:
        return False
    return True


def _decoder(encoding: str) -> type[codecs.IncrementalDecoder] | codecs._IncrementalDecoder:
    try:
        return codecs.getincrementaldecoder(encoding)
    except LookupError as exc:
        raise UnknownChoiceError("encoding", encoding, ["utf-8", "utf-16", "latin-1", "cp1252"]) from exc


def _same_encoding(one: str, other: str) -> bool:
    try:
        return codecs.lookup(one).name.replace("-sig", "") == codecs.lookup(other).name
    except LookupError as exc:
        raise UnknownChoiceError("encoding", one, ["utf-8", "utf-16", "latin-1", "cp1252"]) from exc
