"""Read and write Avro files exactly: manifests and manifest lists, with every field of theirs, known to us or not.

PyIceberg reads the fields that it knows. A file that is written again must keep all of them, so values are decoded by the
schema of the file itself, and floating-point numbers, dates and decimals stay as they are encoded.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lakehouse.core.dataclass import dataclass

MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_FIXED_WIDTH = {"float": 4, "double": 8}
#: A byte of a number that is not the last one has this bit.
_MORE = 0x80

Decoder = Callable[["Input"], Any]
Encoder = Callable[[Any, bytearray], None]


class AvroError(ValueError):
    """A file is not Avro, is truncated, or has a schema that these functions do not know."""


@dataclass(frozen=True)
class AvroFile:
    """The content of a file."""

    schema: Mapping[str, Any]
    metadata: Mapping[str, bytes]
    """The header, with the schema in it as text."""
    records: Sequence[dict[str, Any]]


def read(data: bytes) -> AvroFile:
    """Decode a file; AvroError if it is damaged."""
    try:
        return _read(data)
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as exc:
        raise AvroError("its schema is damaged") from exc


def _read(data: bytes) -> AvroFile:
    source = Input(data)
    if source.take(len(MAGIC)) != MAGIC:
        raise AvroError("it does not begin as an Avro file does")
    metadata = dict(_read_map(source, lambda header: header.take(header.long())))
    sync = source.take(_SYNC_BYTES)
    try:
        schema = json.loads(metadata["avro.schema"])
    except (KeyError, ValueError) as exc:
        raise AvroError("it has no schema") from exc
    decode = _decoder(schema, {})
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
    encode, compress = _encoder(file.schema, {}), _codec(file.metadata)[1]
    body = bytearray()
    for record in file.records:
        encode(record, body)
    # Derived from the content, so that the same content gives the same file.
    sync = zlib.crc32(body).to_bytes(4, "big") * 4
    out = bytearray(MAGIC)
    _write_long(len(file.metadata), out)
    for key, value in file.metadata.items():
        _write_bytes(key.encode(), out)
        _write_bytes(value, out)
    _write_long(0, out)
    out += sync
    if file.records:
        _write_long(len(file.records), out)
        _write_bytes(compress(bytes(body)), out)
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


class Input:
    """Bytes and a position in them."""

    __slots__ = ("data", "at")

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        end = self.at + count
        if count < 0 or end > len(self.data):
            raise AvroError("it ends in the middle of a value")
        start, self.at = self.at, end
        return self.data[start:end]

    def long(self) -> int:
        data, at, shift, value = self.data, self.at, 0, 0
        try:
            while (byte := data[at]) & _MORE:
                value |= (byte & 0x7F) << shift
                shift, at = shift + 7, at + 1
        except IndexError:
            raise AvroError("it ends in the middle of a number") from None
        value |= byte << shift
        self.at = at + 1
        return (value >> 1) ^ -(value & 1)


# ---- decoding ---------------------------------------------------------------------------------------------------


def _decoder(schema: Any, named: dict[str, Decoder]) -> Decoder:
    if isinstance(schema, str):
        return named[schema] if schema in named else _primitive_decoder(schema)
    if isinstance(schema, list):
        return _union_decoder([_decoder(branch, named) for branch in schema], schema)
    kind = schema["type"]
    if kind == "record":
        decode = _record_decoder([(field["name"], _decoder(field["type"], named)) for field in schema["fields"]])
    elif kind == "array":
        item = _decoder(schema["items"], named)
        return lambda source: _read_array(source, item)
    elif kind == "map":
        value = _decoder(schema["values"], named)
        return lambda source: dict(_read_map(source, value))
    elif kind == "fixed":
        size = int(schema["size"])
        decode = lambda source: source.take(size)  # noqa: E731 - one of several shapes
    else:
        return _decoder(kind, named)
    if schema.get("name"):
        named[schema["name"]] = decode
    return decode


def _primitive_decoder(kind: str) -> Decoder:
    if kind in ("int", "long", "enum"):
        return lambda source: source.long()
    if kind == "string":
        return _read_text
    if kind == "bytes":
        return lambda source: source.take(source.long())
    if kind == "null":
        return lambda source: None
    if kind == "boolean":
        return lambda source: source.take(1) == b"\x01"
    if kind in _FIXED_WIDTH:
        width = _FIXED_WIDTH[kind]
        return lambda source: source.take(width)
    raise AvroError(f"its schema has the type {kind}, which is not known")


def _read_text(source: Input) -> str:
    try:
        return source.take(source.long()).decode()
    except UnicodeDecodeError as exc:
        raise AvroError("a text in it is not UTF-8") from exc


def _union_decoder(branches: Sequence[Decoder], schema: Sequence[Any]) -> Decoder:
    _null_index(schema)

    def decode(source: Input) -> Any:
        index = source.long()
        if not 0 <= index < len(branches):
            raise AvroError("a value has none of the types of its field")
        return branches[index](source)

    return decode


def _record_decoder(fields: Sequence[tuple[str, Decoder]]) -> Decoder:
    return lambda source: {name: read_value(source) for name, read_value in fields}


def _blocks(source: Input) -> Iterable[int]:
    """Yield the number of items of each block of an array or a map."""
    while count := source.long():
        if count < 0:
            source.long()  # the number of bytes, for readers that skip the block
        if abs(count) > len(source.data) - source.at:
            raise AvroError("a list states an impossible number of items")
        yield abs(count)


def _read_array(source: Input, item: Decoder) -> list[Any]:
    return [item(source) for count in _blocks(source) for _ in range(count)]


def _read_map(source: Input, value: Decoder) -> Iterable[tuple[str, Any]]:
    for count in _blocks(source):
        for _ in range(count):
            yield _read_text(source), value(source)


# ---- encoding ---------------------------------------------------------------------------------------------------


def _encoder(schema: Any, named: dict[str, Encoder]) -> Encoder:
    if isinstance(schema, str):
        return named[schema] if schema in named else _primitive_encoder(schema)
    if isinstance(schema, list):
        return _union_encoder([_encoder(branch, named) for branch in schema], _null_index(schema))
    kind = schema["type"]
    if kind == "record":
        encode = _record_encoder([(field["name"], _encoder(field["type"], named)) for field in schema["fields"]])
    elif kind == "array":
        return _array_encoder(_encoder(schema["items"], named))
    elif kind == "map":
        return _map_encoder(_encoder(schema["values"], named))
    elif kind == "fixed":
        encode = lambda value, out: out.extend(value)  # noqa: E731 - one of several shapes
    else:
        return _encoder(kind, named)
    if schema.get("name"):
        named[schema["name"]] = encode
    return encode


def _primitive_encoder(kind: str) -> Encoder:
    if kind in ("int", "long", "enum"):
        return _write_long
    if kind == "string":
        return lambda value, out: _write_bytes(value.encode(), out)
    if kind == "bytes":
        return _write_bytes
    if kind == "null":
        return lambda value, out: None
    if kind == "boolean":
        return lambda value, out: out.append(1 if value else 0)
    return lambda value, out: out.extend(value)


def _record_encoder(fields: Sequence[tuple[str, Encoder]]) -> Encoder:
    def encode(value: Mapping[str, Any], out: bytearray) -> None:
        for name, write_value in fields:
            write_value(value[name], out)

    return encode


def _union_encoder(branches: Sequence[Encoder], null: int) -> Encoder:
    def encode(value: Any, out: bytearray) -> None:
        index = null if value is None else 1 - null
        _write_long(index, out)
        branches[index](value, out)

    return encode


def _array_encoder(item: Encoder) -> Encoder:
    def encode(value: Sequence[Any], out: bytearray) -> None:
        if value:
            _write_long(len(value), out)
            for element in value:
                item(element, out)
        _write_long(0, out)

    return encode


def _map_encoder(item: Encoder) -> Encoder:
    def encode(value: Mapping[str, Any], out: bytearray) -> None:
        if value:
            _write_long(len(value), out)
            for key, element in value.items():
                _write_bytes(key.encode(), out)
                item(element, out)
        _write_long(0, out)

    return encode


def _null_index(schema: Sequence[Any]) -> int:
    """Return where null is in a union; Iceberg has unions only for optional values."""
    if len(schema) != 2 or "null" not in schema:
        raise AvroError("its schema has a union that is not an optional value")
    return schema.index("null")


def _write_long(value: int, out: bytearray) -> None:
    rest = (value << 1) ^ (value >> 63)
    while rest > 0x7F:
        out.append(rest & 0x7F | _MORE)
        rest >>= 7
    out.append(rest)


def _write_bytes(value: bytes, out: bytearray) -> None:
    _write_long(len(value), out)
    out.extend(value)
