"""Which names an expression may use, and what each refers to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import NamedTuple, Protocol

from lakehouse.core.dataclass import dataclass
from lakehouse.core.quoting import text as quoted_text
from lakehouse.query.sql import ast
from lakehouse.query.translate.types import NotTranslatedError, Type
from lakehouse.query.translate.values import Value


class UnknownColumnError(Exception):
    """A name that no table in the query has."""

    def __init__(self, name: ast.Name, candidates: Sequence[str]) -> None:
        super().__init__(".".join(name.parts))
        self.name, self.candidates = name, candidates


@dataclass(frozen=True)
class Column:
    """A column of a table in FROM."""

    qualifier: tuple[str, ...]
    name: str
    sql: str
    type: Type | None
    """None if DuckDB has no type with the same values."""
    is_hidden: bool = False
    """Only a qualified name reaches it: the second column of a join with USING."""

    def value(self, name: str) -> Value:
        if self.type is None:
            raise NotTranslatedError(f"the type of the column {self.name}")
        return Value(self.sql, self.type, name)

    def matches(self, qualifier: Sequence[str], name: str) -> bool:
        if self.name.lower() != name.lower() or (self.is_hidden and not qualifier):
            return False
        own = [part.lower() for part in self.qualifier]
        return not qualifier or own[-len(qualifier) :] == [part.lower() for part in qualifier]


@dataclass(frozen=True)
class Scope:
    """The columns in FROM, the names that expressions of the same query define, and the scope around a subquery."""

    columns: tuple[Column, ...] = ()
    parent: Scope | None = None
    lambdas: Mapping[str, Value] = field(default_factory=dict)
    aliases: Mapping[str, Value] = field(default_factory=dict)
    """Names that earlier items of SELECT define; a column of the same name comes first."""
    outputs: Mapping[str, Value] = field(default_factory=dict)
    """For ORDER BY and HAVING: the columns of the result, which come before those of FROM."""
    windows: Mapping[str, ast.Window] = field(default_factory=dict)
    grouped: tuple[ast.Expression, ...] = ()
    """The keys of grouping sets, in the order of GROUP BY."""
    from_around: list[ast.Name] | None = None
    """For the border of a subquery, which has no columns itself: collects the names that come from around it."""
    takes_correlated: bool = True
    """Whether a subquery of these expressions may use their names: Spark refuses it in ON, ORDER BY and a grouped SELECT."""
    closed: str = ""
    """The clauses for which nothing may come from around: Spark refuses many of them."""

    def close(self, clauses: str) -> Scope:
        """The same scope around a subquery, for clauses of it that may not use its names."""
        return self if self.from_around is None else replace(self, closed=clauses)

    def with_lambdas(self, variables: Mapping[str, Value]) -> Scope:
        return replace(self, lambdas={**self.lambdas, **variables})

    def resolve(self, name: ast.Name) -> Value:
        """What a name refers to.

        Raises:
            UnknownColumnError: nothing.
            NotTranslatedError: it is not certain what Spark would choose, or that Spark accepts it here.
        """
        scope: Scope | None = self
        borders: list[Scope] = []
        while scope is not None:
            value = scope._own(name)
            if value is not None:
                _cross(borders, name)
                return value
            if scope.from_around is not None:
                borders.append(scope)
            scope = scope.parent
        raise UnknownColumnError(name, self._candidates())

    def _own(self, name: ast.Name) -> Value | None:
        parts = name.parts
        variable = self.lambdas.get(parts[0].lower())
        if variable is not None:
            return with_fields(variable, parts[1:])
        output = self.outputs.get(parts[0].lower()) if len(parts) == 1 else None
        column = self._column(parts)
        if output is not None and column is not None and output.sql != column.sql:
            raise NotTranslatedError(f"the name {parts[0]}, which is a column and an alias,")
        if output is not None or column is not None:
            return output.named(parts[0]) if output is not None else column
        alias = self.aliases.get(parts[0].lower())
        # Spark shows an expression with a lateral alias in words of its own.
        return with_fields(alias.named(""), parts[1:]) if alias is not None else None

    def _column(self, parts: Sequence[str]) -> Value | None:
        for split in range(len(parts) - 1, -1, -1):
            matching = [column for column in self.columns if column.matches(parts[:split], parts[split])]
            if len({column.sql for column in matching}) > 1:
                raise NotTranslatedError(f"the name {'.'.join(parts)}, which several tables have,")
            if matching:
                return with_fields(matching[0].value(parts[split]), parts[split + 1 :])
        return None

    def _candidates(self) -> list[str]:
        return [".".join((*column.qualifier, column.name)) for column in self.columns if not column.is_hidden]

    def star(self, qualifier: Sequence[str]) -> list[Column]:
        """The columns that `*` or `t.*` stands for."""
        columns = [column for column in self.columns if not column.is_hidden or qualifier]
        if not qualifier:
            return columns
        wanted = [part.lower() for part in qualifier]
        chosen = [column for column in columns if [part.lower() for part in column.qualifier][-len(wanted) :] == wanted]
        if not chosen:
            raise NotTranslatedError(f"{'.'.join(qualifier)}.*")
        return chosen


def _cross(borders: Sequence[Scope], name: ast.Name) -> None:
    """Note that a name comes from around the subqueries with these borders."""
    shown = f"the name {'.'.join(name.parts)} from around a subquery"
    if len(borders) > 1:
        raise NotTranslatedError(f"{shown} of a subquery")
    for border in borders:
        assert border.from_around is not None
        if border.closed:
            raise NotTranslatedError(f"{shown} in {border.closed}")
        border.from_around.append(name)


def with_fields(value: Value, fields: Iterable[str]) -> Value:
    """A field within a struct, by its path."""
    for name in fields:
        value = struct_field(value, name).named(f"{value.name}.{name}" if value.name else "")
    return value


def struct_field(value: Value, name: str) -> Value:
    if value.type.kind == "array" and value.type.parts[0].kind == "struct":
        field = struct_field(Value("e", value.type.parts[0], ""), name)
        return Value(f"list_transform({value.sql}, lambda e: {field.sql})", Type("array", parts=(field.type,)), name)
    if value.type.kind != "struct":
        raise NotTranslatedError(f"the field {name} of {value.type}")
    lower = [known.lower() for known in value.type.names]
    if name.lower() not in lower:
        raise NotTranslatedError(f"the field {name}, which the struct does not have,")
    place = lower.index(name.lower())
    sql = f"struct_extract({value.sql}, {quoted_text(value.type.names[place])})"
    return Value(sql, value.type.parts[place], name)


class TranslatedSubquery(NamedTuple):
    """A query within an expression."""

    sql: str
    columns: Sequence[Value]
    is_correlated: bool
    """It uses names from around it."""


class Subqueries(Protocol):
    """Translates what expressions refer to outside of their scope: queries within them, and parameters."""

    def subquery(self, query: ast.Query, scope: Scope) -> TranslatedSubquery:
        """Translate a query that may use the names of a scope."""

    def parameter(self, name: str) -> Value:
        """The value of a marker `:name`."""


class ExpressionTranslator(Protocol):
    """What the translation of a function with a syntax of its own may ask for."""

    @property
    def scope(self) -> Scope: ...

    def within(self, scope: Scope) -> ExpressionTranslator:
        """The same translator with other names, as in the body of a lambda function."""

    def translate(self, node: ast.Expression) -> Value:
        """Translate an expression."""

    def boolean(self, node: ast.Expression, what: str) -> Value:
        """Translate a condition."""

    def call_rules(self, function: str, values: Sequence[Value]) -> Value:
        """Call a scalar function by its rules."""

    def tail(self, node: ast.Call, name: str, kind: str) -> tuple[str, str]:
        """FILTER and OVER of a call as SQL, and its name with them."""


#: Translates a call whose arguments' types are not enough: lambdas, syntax of its own, several aggregates.
Special = Callable[[ExpressionTranslator, ast.Call], Value]
