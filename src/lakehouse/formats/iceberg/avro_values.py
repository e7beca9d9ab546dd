"""Decode and encode the values of an Avro file by its schema. Numbers that nobody looks at stay the bytes that they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

_FIXED_WIDTH = {"float": 4, "double": 8}
#: A byte of a number that is not the last one has this bit.
_MORE = 0x80

Decoder = Callable[["Input"], Any]
Encoder = Callable[[Any, bytearray], None]


class AvroError(ValueError):
    """A file is not Avro, is truncated, or has a schema that these functions do not know."""


class Input:
    """Bytes and a position in them."""

    __slots__ = ("data", "at")

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        end = self.at + count
        if count < 0 or end > len(self.data):
            raise AvroError("it ends in the middle of a value")
        found = self.data[self.at : end]
        self.at = end
        return found

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


def decoder(schema: Any, named: dict[str, Decoder], only: frozenset[str]) -> Decoder:
    if isinstance(schema, str):
        return named[schema] if schema in named else _primitive_decoder(schema)
    if isinstance(schema, list):
        return _union_decoder([decoder(each, named, only) for each in schema], schema)
    kind = schema["type"]
    if kind == "record":
        decode = _record_decoder(schema, named, only)
    elif kind == "array":
        item = decoder(schema["items"], named, only)
        return lambda source: _read_array(source, item)
    elif kind == "map":
        value = decoder(schema["values"], named, only)
        return lambda source: dict(read_map(source, value))
    elif kind == "fixed":
        size = int(schema["size"])
        decode = lambda source: source.take(size)  # noqa: E731 - one of several shapes
    else:
        return decoder(kind, named, only)
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


def _record_decoder(schema: Mapping[str, Any], named: dict[str, Decoder], only: frozenset[str]) -> Decoder:
    fields = []
    for field in schema["fields"]:
        name = field["name"]
        below = frozenset(each.partition(".")[2] for each in only if each.startswith(f"{name}."))
        wanted = not only or name in only or bool(below)
        fields.append((name if wanted else "", decoder(field["type"], named, below)))

    def decode(source: Input) -> dict[str, Any]:
        found = {}
        for name, read_value in fields:
            value = read_value(source)
            if name:
                found[name] = value
        return found

    return decode


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


def read_map(source: Input, value: Decoder) -> Iterable[tuple[str, Any]]:
    for count in _blocks(source):
        for _ in range(count):
            yield _read_text(source), value(source)


# ---- encoding ---------------------------------------------------------------------------------------------------


def encoder(schema: Any, named: dict[str, Encoder]) -> Encoder:
    if isinstance(schema, str):
        return named[schema] if schema in named else _primitive_encoder(schema)
    if isinstance(schema, list):
        return _union_encoder([encoder(each, named) for each in schema], _null_index(schema))
    kind = schema["type"]
    if kind == "record":
        encode = _record_encoder([(each["name"], encoder(each["type"], named)) for each in schema["fields"]])
    elif kind == "array":
        return _array_encoder(encoder(schema["items"], named))
    elif kind == "map":
        return _map_encoder(encoder(schema["values"], named))
    elif kind == "fixed":
        encode = lambda value, out: out.extend(value)  # noqa: E731 - one of several shapes
    else:
        return encoder(kind, named)
    if schema.get("name"):
        named[schema["name"]] = encode
    return encode


def _primitive_encoder(kind: str) -> Encoder:
    if kind in ("int", "long", "enum"):
        return write_long
    if kind == "string":
        return lambda value, out: write_bytes(value.encode(), out)
    if kind == "bytes":
        return write_bytes
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
        write_long(index, out)
        branches[index](value, out)

    return encode


def _array_encoder(item: Encoder) -> Encoder:
    def encode(value: Sequence[Any], out: bytearray) -> None:
        if value:
            write_long(len(value), out)
            for each in value:
                item(each, out)
        write_long(0, out)

    return encode


def _map_encoder(item: Encoder) -> Encoder:
    def encode(value: Mapping[str, Any], out: bytearray) -> None:
        if value:
            write_long(len(value), out)
            for key, each in value.items():
                write_bytes(key.encode(), out)
                item(each, out)
        write_long(0, out)

    return encode


def _null_index(schema: Sequence[Any]) -> int:
    """Return where null is in a union; Iceberg has unions only for optional values."""
    if len(schema) != 2 or "null" not in schema:
        raise AvroError("its schema has a union that is not an optional value")
    return schema.index("null")


def write_long(value: int, out: bytearray) -> None:
    rest = (value << 1) ^ (value >> 63)
    while rest > 0x7F:
        out.append(rest & 0x7F | _MORE)
        rest >>= 7
    out.append(rest)


def write_bytes(value: bytes, out: bytearray) -> None:
    write_long(len(value), out)
    out.extend(value)
