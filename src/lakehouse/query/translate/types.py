"""Spark's types: how they are written, how DuckDB stores them, and which one two of them have in common."""

from __future__ import annotations

import re
from functools import lru_cache

from lakehouse.core.dataclass import dataclass
from lakehouse.core.quoting import name as quoted
from lakehouse.core.tables import split_arguments


class NotTranslatedError(Exception):
    """A part of a statement has no rule, so Spark runs the statement. The message names the part."""


@dataclass(frozen=True)
class Type:
    """A type of Spark. `parts` are the types within an array, a map or a struct, `names` the fields of a struct."""

    kind: str
    precision: int = 0
    scale: int = 0
    parts: tuple[Type, ...] = ()
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As Spark writes it in a schema."""
        match self.kind:
            case "decimal":
                return f"decimal({self.precision},{self.scale})"
            case "array" | "map":
                return f"{self.kind}<{','.join(map(str, self.parts))}>"
            case "struct":
                fields = zip(self.names, self.parts, strict=True)
                return f"struct<{','.join(f'{name}:{part}' for name, part in fields)}>"
        return self.kind

    @property
    def duckdb(self) -> str:
        """The type in which DuckDB holds its values."""
        match self.kind:
            case "decimal":
                return f"DECIMAL({self.precision}, {self.scale})"
            case "array":
                return f"{self.parts[0].duckdb}[]"
            case "map":
                return f"MAP({self.parts[0].duckdb}, {self.parts[1].duckdb})"
            case "struct":
                fields = zip(self.names, self.parts, strict=True)
                return f"STRUCT({', '.join(f'{quoted(name)} {part.duckdb}' for name, part in fields)})"
        return _DUCKDB[self.kind]

    @property
    def is_integer(self) -> bool:
        return self.kind in _INTEGERS

    @property
    def is_fraction(self) -> bool:
        return self.kind in ("float", "double")

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self.is_fraction or self.kind == "decimal"

    @property
    def is_nested(self) -> bool:
        return self.kind in ("array", "map", "struct")

    def holds(self, *kinds: str) -> bool:
        """Whether it is of one of these kinds, or has a part that is."""
        return self.kind in kinds or any(part.holds(*kinds) for part in self.parts)

    @property
    def is_time(self) -> bool:
        return self.kind in ("date", "timestamp", "timestamp_ntz")


_INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_NUMBERS = [*_INTEGERS, "float", "double"]
_DUCKDB = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
    "void": "INTEGER",
}
_SYNONYMS = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "real": "float"}
_SYNONYMS |= {"timestamp_ltz": "timestamp", "dec": "decimal", "numeric": "decimal"}
_VARCHAR = re.compile(r"varchar\(\d+\)")
_DECIMAL = re.compile(r"decimal(?:\((\d+)(?:,\s*(\d+))?\))?")

BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, STRING, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ, VOID = map(
    Type,
    "boolean tinyint smallint int bigint float double string binary date timestamp timestamp_ntz void".split(),
)
LARGEST_PRECISION = 38


@lru_cache(maxsize=4096)
def parse_type(text: str) -> Type:
    """The type that a text such as `array<decimal(10,2)>` names.

    Raises:
        NotTranslatedError: DuckDB has no type with the same values.
    """
    text = text.strip()
    name, _, inside = text.partition("<")
    lower = name.lower()
    if inside and lower in ("array", "map", "struct"):
        parts = split_arguments(inside.removesuffix(">"))
        if lower == "struct":
            fields = [part.partition(":") for part in parts]
            names = tuple(field.strip().strip("`") for field, _, _ in fields)
            if len({field.lower() for field in names}) < len(names):
                raise NotTranslatedError("a struct whose fields differ only in case")
            return Type("struct", parts=tuple(parse_type(kind) for _, _, kind in fields), names=names)
        return Type(lower, parts=tuple(map(parse_type, parts)))
    base = lower.partition("(")[0].strip()
    lower = lower.replace(base, _SYNONYMS.get(base, base), 1)
    if match := _DECIMAL.fullmatch(lower):
        return decimal(int(match[1] or 10), int(match[2] or 0))
    if _VARCHAR.fullmatch(lower):
        return Type("string")  # Spark ignores the length in a query
    if lower not in _DUCKDB:
        raise NotTranslatedError(f"the type {text}")
    return Type(lower)


def decimal(precision: int, scale: int) -> Type:
    if precision > LARGEST_PRECISION or scale > precision:
        raise NotTranslatedError(f"the type decimal({precision},{scale})")
    return Type("decimal", precision, scale)


def adjusted_decimal(precision: int, scale: int) -> Type:
    """Spark's type for a result that may need more than 38 digits: it keeps at least 6 of the fraction."""
    if precision <= LARGEST_PRECISION:
        return decimal(precision, scale)
    whole = precision - scale
    return decimal(LARGEST_PRECISION, max(LARGEST_PRECISION - whole, min(scale, 6)))


def as_decimal(kind: Type) -> Type:
    """The decimal type that holds all values of an integer type."""
    return kind if kind.kind == "decimal" else decimal(_INTEGERS[kind.kind], 0)


def wider_decimal(left: Type, right: Type) -> Type:
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    # Spark cuts the fraction, then the whole, at 38 digits each.
    return decimal(min(whole + scale, LARGEST_PRECISION), min(scale, LARGEST_PRECISION))


def common_number(left: Type, right: Type) -> Type:
    """The type in which two numbers are added or compared."""
    if left == right:
        return left
    if "decimal" in (left.kind, right.kind):
        if left.is_fraction or right.is_fraction:
            return DOUBLE
        return wider_decimal(as_decimal(left), as_decimal(right))
    return Type(max(left.kind, right.kind, key=_NUMBERS.index))


def common_type(left: Type, right: Type) -> Type | None:  # noqa: C901, PLR0911 - one line for each pair of kinds
    """The type of a column with values of both, as in UNION, CASE or COALESCE; None if Spark refuses."""
    if left == right or right.kind == "void":
        return left
    if left.kind == "void":
        return right
    if left.is_numeric and right.is_numeric:
        return common_number(left, right)
    kinds = {left.kind, right.kind}
    if "string" in kinds and not (kinds & {"binary", "boolean"}) and not left.is_nested and not right.is_nested:
        return STRING
    if kinds == {"date", "timestamp"}:
        return TIMESTAMP
    if kinds == {"date", "timestamp_ntz"}:
        return TIMESTAMP_NTZ
    if kinds == {"timestamp", "timestamp_ntz"}:
        return TIMESTAMP
    if left.kind == right.kind and left.is_nested and len(left.parts) == len(right.parts):
        parts = [common_type(one, other) for one, other in zip(left.parts, right.parts, strict=True)]
        same_names = [name.lower() for name in left.names] == [name.lower() for name in right.names]
        if same_names and None not in parts:
            return Type(left.kind, parts=tuple(part for part in parts if part), names=left.names)
    return None


def compared_type(left: Type, right: Type) -> Type | None:
    """The type in which two values are compared; None if Spark refuses."""
    if left == right:
        return left
    for text, other in ((left, right), (right, left)):
        if text.kind == "string" and other.kind not in ("string", "void") and not other.is_nested:
            return DOUBLE if other.kind == "decimal" else other
    if {left.kind, right.kind} == {"boolean"} | {kind for kind in (left.kind, right.kind) if kind in _NUMBERS}:
        raise NotTranslatedError("a comparison of a boolean with a number")
    return common_type(left, right)
