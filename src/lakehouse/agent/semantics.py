"""The semantic layer of a lake: which words stand for which tables, columns and aggregates. It is read from TOML or drafted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field, fields, replace
from typing import Any, TypeVar

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BadSettingError
from lakehouse.core.names import TableName, nearest

FILE_NAME = "semantics.toml"
#: What a dimension holds. A key is a number that nobody adds up.
TEXT, NUMBER, KEY, TIME, BOOLEAN = "text", "number", "key", "time", "boolean"
KINDS = (TEXT, NUMBER, KEY, TIME, BOOLEAN)
AGGREGATES = ("sum", "avg", "min", "max", "count", "median")
_PLAIN_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CALL = re.compile(r"(sum|avg|min|max|count|median)\((?!.*\).*\()", re.IGNORECASE)

_COLUMN_PREFIXES = {"sum": "total", "avg": "average", "min": "lowest", "max": "highest", "count": "count"}

T = TypeVar("T")


@dataclass(frozen=True)
class Dimension:
    """A column, or an expression over columns, by which rows are grouped, filtered or, if it is a number, aggregated."""

    name: str
    expression: str = ""
    """SQL over the columns of the table (default: the column of that name)."""
    kind: str = TEXT
    synonyms: tuple[str, ...] = ()
    description: str = ""
    unit: str = ""
    """In the plural, as people write it: miles, minutes."""
    aggregate: str = ""
    """The aggregate that the name alone means; empty if the question must say which."""
    values: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Words that people use for a value: `card = "credit card"`."""
    type: str = ""
    """The type of the column in Spark's words; found in the table."""

    @property
    def sql(self) -> str:
        return quoted(self.expression or self.name)


@dataclass(frozen=True)
class Metric:
    """An aggregate with a name."""

    name: str
    expression: str
    filter: str = ""
    """SQL condition on the rows that it counts."""
    synonyms: tuple[str, ...] = ()
    description: str = ""
    unit: str = ""

    @property
    def aggregate(self) -> str:
        """The one function of the expression, such as sum; empty if it has another shape."""
        call = _CALL.match(self.expression)
        return call[1].lower() if call and self.expression.endswith(")") else ""

    @property
    def column(self) -> str:
        """The name of its column in the result: not that of a column in its expression, which would be hard to tell apart."""
        is_taken = re.search(rf"\b{re.escape(self.name)}\b", self.expression)
        return f"{_COLUMN_PREFIXES.get(self.aggregate, 'metric')}_{self.name}" if is_taken else self.name

    @property
    def adds_up(self) -> bool:
        """Whether the values of parts sum to the value of the whole."""
        return self.aggregate in ("sum", "count") and "distinct" not in self.expression.lower()


@dataclass(frozen=True)
class Entity:
    """What one row of a table is."""

    name: str
    table: str
    synonyms: tuple[str, ...] = ()
    description: str = ""
    time: str = ""
    """The dimension that "yesterday" and "by month" are about; empty if there is none or the question must name it."""
    key: tuple[str, ...] = ()
    """Columns that are unique together."""
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    dimensions: Mapping[str, Dimension] = field(default_factory=dict)
    is_draft: bool = field(default=False, metadata={"internal": True})

    @property
    def count(self) -> Metric:
        """The number of rows."""
        return Metric(self.name.rpartition(".")[2].replace(" ", "_"), "count(*)")

    def times(self) -> list[Dimension]:
        return [dimension for dimension in self.dimensions.values() if dimension.kind == TIME]


@dataclass(frozen=True)
class Join:
    """Every row of one entity belongs to at most one row of another."""

    entity: str
    column: str
    to_entity: str
    to_column: str


@dataclass(frozen=True)
class Semantics:
    """All entities of a lake, by name, and the joins between them."""

    entities: Mapping[str, Entity] = field(default_factory=dict)
    joins: tuple[Join, ...] = ()

    def joined(self, entity: Entity) -> list[tuple[Join, Entity]]:
        """The entities that each row of an entity belongs to."""
        return [(join, self.entities[join.to_entity]) for join in self.joins if join.entity == entity.name]

    def of_tables(self, tables: Iterable[str]) -> Semantics:
        """Only what is about these tables."""
        known = set(tables)
        entities = {name: entity for name, entity in self.entities.items() if entity.table in known}
        joins = tuple(join for join in self.joins if join.entity in entities and join.to_entity in entities)
        return Semantics(entities, joins)

    def merged(self, other: Semantics) -> Semantics:
        """This layer, and of another one what this one says nothing about."""
        tables = {entity.table for entity in self.entities.values()}
        added = {
            (name if name not in self.entities else entity.table): entity
            for name, entity in other.entities.items()
            if entity.table not in tables
        }
        named = {name: replace(entity, name=name) for name, entity in added.items()}
        joins = [join for join in other.joins if join.entity in named and join.to_entity in named]
        return Semantics({**self.entities, **named}, (*self.joins, *joins))


def quoted(expression: str) -> str:
    """An expression as it is, a plain column in backticks if it is a word of SQL."""
    if not _PLAIN_COLUMN.fullmatch(expression):
        return expression
    return f"`{expression}`" if expression.lower() in _SQL_WORDS else expression


_SQL_WORDS = frozenset(
    "all and any array as at between by case cast column date day desc describe distinct else end exists false filter from"
    " full group having hour in interval is join left like limit minute month natural not null offset on or order outer over"
    " partition position quarter range right row rows second select set table then time timestamp to true type union user"
    " using values week when where window with year".split()
)


def parse(text: str, origin: str) -> Semantics:
    """The layer in a TOML text; BadSettingError names what is wrong, and where.

    Args:
        origin: the name of the file, for messages.
    """
    import tomllib

    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise BadSettingError(f"{origin} is not TOML: {exc}.", "`lake semantics draft` prints an example.") from exc
    _check_names(origin, "", content, ("entities", "joins"))
    entities = {name: _entity(origin, name, given) for name, given in content.get("entities", {}).items()}
    joins = tuple(_join(origin, given, entities) for given in content.get("joins", []))
    return Semantics(entities, joins)


def _entity(origin: str, name: str, given: Any) -> Entity:
    place = f"entities.{name}"
    entity = _built(Entity, origin, place, {"name": name, **_table(origin, place, given)})
    metrics = _parts(Metric, origin, f"{place}.metrics", entity.metrics)
    dimensions = _parts(Dimension, origin, f"{place}.dimensions", entity.dimensions)
    for dimension in dimensions.values():
        _check_choice(origin, f"{place}.dimensions.{dimension.name}.kind", dimension.kind, KINDS)
        _check_choice(origin, f"{place}.dimensions.{dimension.name}.aggregate", dimension.aggregate, ("", *AGGREGATES))
    _check_choice(origin, f"{place}.time", entity.time, ("", *dimensions))
    table = str(TableName.parse(entity.table))
    return replace(entity, table=table, metrics=metrics, dimensions=dimensions)


def _parts(kind: type[T], origin: str, place: str, given: Mapping[str, Any]) -> dict[str, T]:
    return {
        name: _built(kind, origin, f"{place}.{name}", {"name": name, **_table(origin, f"{place}.{name}", part)})
        for name, part in given.items()
    }


def _built(kind: type[T], origin: str, place: str, given: Mapping[str, Any]) -> T:
    """A dataclass from a TOML table: arrays become tuples, unknown names are refused."""
    known = [part.name for part in fields(kind) if not part.metadata.get("internal")]  # type: ignore[arg-type]
    _check_names(origin, place, given, known)
    for name, value in given.items():
        wanted: type[Any] = (
            list if name in ("synonyms", "key") else dict if name in ("metrics", "dimensions", "values") else str
        )
        if not isinstance(value, wanted):
            raise BadSettingError(f"{origin}: {place}.{name} is not a {_TOML[wanted]}.", "See docs/ask.md.")
    try:
        return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})
    except TypeError as exc:  # a field without a default is missing
        missing = ", ".join(re.findall(r"'(\w+)'", str(exc)))
        raise BadSettingError(f"{origin}: {place} needs {missing}.", "See docs/ask.md.") from exc


_TOML: dict[type[Any], str] = {list: "list", dict: "table", str: "text"}


def _table(origin: str, place: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise BadSettingError(f"{origin}: {place} is not a table.", f"Write [{place}].")
    return given


def _join(origin: str, given: Any, entities: Mapping[str, Entity]) -> Join:
    parts = _table(origin, "joins", given)
    _check_names(origin, "joins", parts, ("from", "to"))
    ends = []
    for side in ("from", "to"):
        entity, _, column = str(parts.get(side, "")).rpartition(".")
        _check_choice(origin, f"joins.{side}", entity, tuple(entities))
        ends += [entity, column]
    return Join(*ends)


def _check_names(origin: str, place: str, given: Mapping[str, Any], known: Iterable[str]) -> None:
    for name in given:
        if name not in known:
            near = nearest(name, known)
            hint = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(known)}."
            raise BadSettingError(f"{origin}: {place}{'.' * bool(place)}{name} is not known.", hint)


def _check_choice(origin: str, place: str, given: str, choices: Iterable[str]) -> None:
    if given not in choices:
        known = ", ".join(choice for choice in choices if choice)
        raise BadSettingError(f"{origin}: {place} = {given!r} is not known.", f"Choose from: {known}.")
