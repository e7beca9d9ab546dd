"""Read and write Avro files exactly: manifests and manifest lists, with every field of theirs, known to us or not.

PyIceberg reads the fields that it knows. A file that is written again must keep all of them, so that values are decoded by the
schema of the file itself and numbers that nobody looks at stay the bytes that they are.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakehouse.formats.iceberg.avro_values import AvroError, Input, decoder, encoder, read_map, write_bytes, write_long

MAGIC = b"Obj\x01"
_SYNC_BYTES = 16


@dataclass(frozen=True)
class AvroFile:
    """The content of a file."""

    schema: Mapping[str, Any]
    metadata: Mapping[str, bytes]
    """The header, with the schema in it as text."""
    records: Sequence[dict[str, Any]]


def read(data: bytes, only: Iterable[str] = ()) -> AvroFile:
    """Decode a file; AvroError if it is damaged.

    Args:
        only: decode these fields alone (`data_file.file_path`) and skip the others. Such a file cannot be written again.
    """
    try:
        return _read(data, frozenset(only))
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as exc:
        raise AvroError("its schema is damaged") from exc


def _read(data: bytes, only: frozenset[str]) -> AvroFile:
    source = Input(data)
    if source.take(len(MAGIC)) != MAGIC:
        raise AvroError("it does not begin as an Avro file does")
    metadata = dict(read_map(source, lambda each: each.take(each.long())))
    sync = source.take(_SYNC_BYTES)
    try:
        schema = json.loads(metadata["avro.schema"])
    except (KeyError, ValueError) as exc:
        raise AvroError("it has no schema") from exc
    decode = decoder(schema, {}, only)
    decompress = _codec(metadata)[0]
    records: list[dict[str, Any]] = []
    while source.at < len(data):
        count, block = source.long(), Input(decompress(source.take(source.long())))
        if source.take(_SYNC_BYTES) != sync:
            raise AvroError("a block does not end with the mark of the file")
        if not 0 <= count <= len(block.data):
            raise AvroError("a block states an impossible number of records")
        records.extend(decode(block) for _ in range(count))
        if block.at != len(block.data):
            raise AvroError("a block is longer than its records")
    return AvroFile(schema, metadata, records)


def write(file: AvroFile) -> bytes:
    """Encode a file with the schema, the header and the codec that it had."""
    encode, compress = encoder(file.schema, {}), _codec(file.metadata)[1]
    body = bytearray()
    for record in file.records:
        encode(record, body)
    # Derived from the content, so that the same content gives the same file.
    sync = zlib.crc32(body).to_bytes(4, "big") * 4
    out = bytearray(MAGIC)
    write_long(len(file.metadata), out)
    for key, value in file.metadata.items():
        write_bytes(key.encode(), out)
        write_bytes(value, out)
    write_long(0, out)
    out += sync
    if file.records:
        write_long(len(file.records), out)
        write_bytes(compress(bytes(body)), out)
        out += sync
    return bytes(out)


# ---- codecs -----------------------------------------------------------------------------------------------------


def _codec(metadata: Mapping[str, bytes]) -> tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]:
    """Return the functions that decompress and compress a block."""
    name = metadata.get("avro.codec", b"null").decode(errors="replace")
    if name == "null":
        return bytes, bytes
    if name == "deflate":
        return _inflate, _deflate
    if name == "zstandard":
        return _unpack_zstd, _pack_zstd
    raise AvroError(f"its codec {name} is not known")


def _inflate(data: bytes) -> bytes:
    try:
        return zlib.decompress(data, wbits=-15)
    except zlib.error as exc:
        raise AvroError("a block cannot be decompressed") from exc


def _deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def _unpack_zstd(data: bytes) -> bytes:
    import pyarrow

    try:
        with pyarrow.CompressedInputStream(pyarrow.BufferReader(data), "zstd") as stream:
            return bytes(stream.read())
    except (OSError, pyarrow.ArrowException) as exc:
        raise AvroError("a block cannot be decompressed") from exc


def _pack_zstd(data: bytes) -> bytes:
    import pyarrow

    return bytes(pyarrow.compress(data, "zstd", asbytes=True))
