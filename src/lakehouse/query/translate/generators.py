"""Functions that make several rows of one value: `explode` and its like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from lakehouse.core.dataclass import dataclass
from lakehouse.core.quoting import text as quoted_text
from lakehouse.query.translate.rules import coerce
from lakehouse.query.translate.types import INT, VOID, NotTranslatedError, Type
from lakehouse.query.translate.values import Value, literal_int

NULL = Value("NULL", VOID, "NULL", is_literal=True)


@dataclass(frozen=True)
class Generated:
    """A query that makes the rows; its columns are `c1`, `c2`, …"""

    sql: str
    columns: tuple[tuple[str, Type], ...]
    """The names that Spark gives them, and their types."""


def _single(values: Sequence[Value], function: str) -> Value:
    if len(values) != 1 or not values[0].type.is_nested:
        raise NotTranslatedError(f"{function} of {', '.join(str(value.type) for value in values)}")
    return values[0]


def explode(values: Sequence[Value]) -> Generated:
    value = _single(values, "explode")
    if value.type.kind == "map":
        key, content = value.type.parts
        sql = f"SELECT unnest(map_keys({value.sql})) AS c1, unnest(map_values({value.sql})) AS c2"
        return Generated(sql, (("key", key), ("value", content)))
    return Generated(f"SELECT unnest({value.sql}) AS c1", (("col", value.type.parts[0]),))


def posexplode(values: Sequence[Value]) -> Generated:
    value = _single(values, "posexplode")
    if value.type.kind not in ("array", "map"):
        raise NotTranslatedError(f"posexplode of {value.type}")
    count = f"{'len' if value.type.kind == 'array' else 'cardinality'}({value.sql})"
    place = f"CAST(unnest(range(CAST({count} AS BIGINT))) AS INTEGER)"
    if value.type.kind == "map":
        sql = f"SELECT {place} AS c1, unnest(map_keys({value.sql})) AS c2, unnest(map_values({value.sql})) AS c3"
        return Generated(sql, (("pos", INT), ("key", value.type.parts[0]), ("value", value.type.parts[1])))
    return Generated(f"SELECT {place} AS c1, unnest({value.sql}) AS c2", (("pos", INT), ("col", value.type.parts[0])))


def inline(values: Sequence[Value]) -> Generated:
    value = _single(values, "inline")
    if value.type.kind != "array" or value.type.parts[0].kind != "struct":
        raise NotTranslatedError(f"inline of {value.type}")
    struct = value.type.parts[0]
    fields = ", ".join(
        f"struct_extract(u.s, {quoted_text(name)}) AS c{number}" for number, name in enumerate(struct.names, start=1)
    )
    sql = f"SELECT {fields} FROM (SELECT unnest({value.sql}) AS s) AS u"
    return Generated(sql, tuple(zip(struct.names, struct.parts, strict=True)))


def stack(values: Sequence[Value]) -> Generated:
    """A number of rows, filled from left to right; NULLs fill the last one."""
    count = literal_int(values[0], "stack of a number of rows") if values else 0
    cells = values[1:]
    if count < 1 or not cells:
        raise NotTranslatedError("stack of no rows")
    width = -(-len(cells) // count)
    selected, columns = [], []
    for place in range(width):
        column = [*cells[place::width], *[NULL] * count][:count]
        kinds = {value.type for value in column if value.type != VOID}
        if len(kinds) != 1:
            raise NotTranslatedError("stack of different types")
        kind = kinds.pop()
        listed = ", ".join(coerce(value, kind).sql for value in column)
        selected.append(f"unnest([{listed}]) AS c{place + 1}")
        columns.append((f"col{place}", kind))
    return Generated(f"SELECT {', '.join(selected)}", tuple(columns))


GENERATORS: Mapping[str, Callable[[Sequence[Value]], Generated]] = {
    "explode": explode,
    "explode_outer": explode,
    "posexplode": posexplode,
    "posexplode_outer": posexplode,
    "inline": inline,
    "inline_outer": inline,
    "stack": stack,
}
