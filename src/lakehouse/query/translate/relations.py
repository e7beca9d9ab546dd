"""Translate FROM: tables, queries and values as tables, joins, and functions that make rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Protocol

from lakehouse.core.dataclass import dataclass
from lakehouse.core.quoting import name as quoted
from lakehouse.core.tables import Column as TableColumn
from lakehouse.query.sql import ast
from lakehouse.query.translate import operators
from lakehouse.query.translate.expressions import Expressions
from lakehouse.query.translate.generators import GENERATORS, Generated
from lakehouse.query.translate.rules import coerce
from lakehouse.query.translate.scope import Column, Scope, Subqueries, UnknownColumnError
from lakehouse.query.translate.types import NotTranslatedError, Type, common_type, parse_type
from lakehouse.query.translate.values import Value, literal_int


@dataclass(frozen=True)
class SourceTable:
    """A table that a query reads: the view of it in DuckDB, its full name and its columns."""

    view: str
    qualifier: tuple[str, ...]
    columns: tuple[TableColumn, ...]


@dataclass(frozen=True)
class From:
    """A translated FROM clause and the columns that it offers."""

    sql: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Rows:
    """A translated query: its columns are called `c1`, `c2`, … in its SQL."""

    sql: str
    columns: tuple[Value, ...]

    def source(self, alias: str, qualifier: tuple[str, ...], names: Sequence[str] = ()) -> From:
        """The query as a table in FROM."""
        if names and len(names) != len(self.columns):
            raise NotTranslatedError("a list of names that does not fit the columns")
        shown = names or [column.name for column in self.columns]
        columns = tuple(
            Column(qualifier, name, f"{alias}.c{number}", column.type)
            for number, (name, column) in enumerate(zip(shown, self.columns, strict=True), start=1)
        )
        return From(f"({self.sql}) AS {alias}", columns)


class QueryTranslator(Subqueries, Protocol):
    """What FROM asks of the translation of queries."""

    def rows(self, query: ast.Query, parent: Scope | None) -> Rows:
        """Translate a query in FROM; `parent` has the names from around it."""

    def common_table(self, name: str) -> tuple[str, Rows] | None:
        """The common table expression with a name: its name in DuckDB, and its rows."""

    def alias(self) -> str:
        """A name that nothing else in the statement has."""


class Relations:
    """Translates the relations in the FROM clauses of one statement."""

    def __init__(self, tables: Mapping[int, SourceTable], queries: QueryTranslator) -> None:
        """
        Args:
            tables: by the position of the reference in the text.
        """
        self._tables, self._queries = tables, queries

    def translate(self, relation: ast.Relation, parent: Scope | None, left: From | None = None) -> From:
        """Translate a relation; `left` is what a LATERAL one may refer to."""
        match relation:
            case ast.Table():
                return self._table(relation)
            case ast.Derived():
                around = Scope(left.columns, parent) if left is not None and relation.lateral else parent
                rows = self._queries.rows(relation.query, around)
                qualifier = (relation.alias,) if relation.alias else ()
                source = rows.source(self._queries.alias(), qualifier, relation.columns)
                return From(f"LATERAL {source.sql}", source.columns) if relation.lateral else source
            case ast.Values():
                return self.values(relation)
            case ast.Join():
                return self._join(relation, parent)
            case ast.LateralView():
                base = self.translate(relation.source, parent)
                return self._lateral(base, relation.call, relation.outer, relation.alias, relation.columns, parent)
            case ast.TableFunction():
                return self._table_function(relation)
        raise NotTranslatedError("PIVOT")

    def _table(self, table: ast.Table) -> From:
        alias = self._queries.alias()
        common = self._queries.common_table(table.parts[0]) if len(table.parts) == 1 else None
        if common is not None:
            name, rows = common
            source = rows.source(alias, (table.alias or table.parts[0],), table.columns)
            return From(f"{name} AS {alias}", source.columns)
        known = self._tables.get(table.start)
        if known is None:
            raise NotTranslatedError(f"the table {'.'.join(table.parts)}")
        names = table.columns or [column.name for column in known.columns]
        if len(names) != len(known.columns):
            raise NotTranslatedError("a list of names that does not fit the columns")
        qualifier = (table.alias,) if table.alias else known.qualifier
        columns = tuple(
            Column(qualifier, name, f"{alias}.{quoted(column.name)}", _type_or_none(column.type))
            for name, column in zip(names, known.columns, strict=True)
        )
        return From(f"{quoted(known.view)} AS {alias}", columns)

    def values(self, values: ast.Values) -> From:
        expressions = Expressions(Scope(), self._queries)
        rows = [[expressions.translate(item) for item in row] for row in values.rows]
        if len({len(row) for row in rows}) != 1:
            raise NotTranslatedError("VALUES with rows of different lengths")
        kinds: list[Type] = []
        for column in zip(*rows, strict=True):
            kind = reduce(lambda left, right: left and common_type(left, right), (value.type for value in column))
            if kind is None or kind.kind in ("void", "interval"):
                raise NotTranslatedError("VALUES without a common type")
            kinds.append(kind)
        listed = ", ".join(
            f"({', '.join(coerce(value, kind).sql for value, kind in zip(row, kinds, strict=True))})" for row in rows
        )
        names = values.columns or [f"col{number}" for number in range(1, len(kinds) + 1)]
        if len(names) != len(kinds):
            raise NotTranslatedError("a list of names that does not fit the columns")
        alias = self._queries.alias()
        qualifier = (values.alias,) if values.alias else ()
        columns = tuple(
            Column(qualifier, name, f"{alias}.c{number}", kind)
            for number, (name, kind) in enumerate(zip(names, kinds, strict=True), start=1)
        )
        own = ", ".join(f"c{number}" for number in range(1, len(kinds) + 1))
        return From(f"(VALUES {listed}) AS {alias}({own})", columns)

    def _table_function(self, node: ast.TableFunction) -> From:
        call = node.call
        if call.name != "range":
            base = From(f"(SELECT 1) AS {self._queries.alias()}", ())
            try:
                return self._lateral(base, call, False, node.alias, node.columns, None)
            except UnknownColumnError as exc:
                raise NotTranslatedError(f"the name {exc} in a table function") from exc
        expressions = Expressions(Scope(), self._queries)
        numbers = [literal_int(expressions.translate(argument), "range") for argument in call.arguments]
        if not 1 <= len(numbers) <= 3 or (len(numbers) == 3 and numbers[2] == 0):
            raise NotTranslatedError("range with these arguments")
        alias = self._queries.alias()
        qualifier = (node.alias,) if node.alias else ()
        name = node.columns[0] if node.columns else "id"
        listed = ", ".join(str(number) for number in numbers)
        column = Column(qualifier, name, f"{alias}.c1", Type("bigint"))
        return From(f"range({listed}) AS {alias}(c1)", (column,))

    def _lateral(  # noqa: PLR0913 - the parts of LATERAL VIEW
        self,
        base: From,
        call: ast.Call,
        outer: bool,
        table: str,
        names: Sequence[str],
        parent: Scope | None,
    ) -> From:
        generator = GENERATORS.get(call.name)
        if generator is None:
            raise NotTranslatedError(f"the table function {call.name}")
        expressions = Expressions(Scope(base.columns, parent), self._queries)
        generated: Generated = generator([expressions.translate(argument) for argument in call.arguments])
        outer = outer or call.name.endswith("_outer")
        if names and len(names) != len(generated.columns):
            raise NotTranslatedError(f"names for the columns of {call.name}")
        alias = self._queries.alias()
        shown = names or [name for name, _ in generated.columns]
        qualifier = (table,) if table else ()
        columns = tuple(
            Column(qualifier, name, f"{alias}.c{number}", kind)
            for number, (name, (_, kind)) in enumerate(zip(shown, generated.columns, strict=True), start=1)
        )
        join = "LEFT JOIN" if outer else "JOIN"
        return From(f"{base.sql} {join} LATERAL ({generated.sql}) AS {alias} ON TRUE", (*base.columns, *columns))

    def with_generator(
        self, node: ast.Select, source: From, parent: Scope | None
    ) -> tuple[From, Sequence[ast.Expression]]:
        """`SELECT explode(…)` as a lateral join."""
        items = list(node.items)
        for place, item in enumerate(items):
            call = item.operand if isinstance(item, ast.Alias) else item
            if not isinstance(call, ast.Call) or call.name not in GENERATORS:
                continue
            if node.group is not None or any(is_generator(other) for other in items[place + 1 :]):
                raise NotTranslatedError(f"{call.name} in this place")
            base = source if source.sql else From(f"(SELECT 1) AS {self._queries.alias()}", ())
            names = (item.name,) if isinstance(item, ast.Alias) else ()
            joined = self._lateral(base, call, call.name.endswith("_outer"), "", names, parent)
            own = joined.columns[len(base.columns) :]
            # Hidden: neither a star nor another expression of the same SELECT refers to them.
            marked = tuple(replace(column, qualifier=(f"generated {place}",), is_hidden=True) for column in own)
            items[place] = ast.Star((f"generated {place}",))
            return From(joined.sql, (*base.columns, *marked)), items
        return source, items

    # ---- joins ---------------------------------------------------------------------------------------------------

    def _join(self, node: ast.Join, parent: Scope | None) -> From:
        left = self.translate(node.left, parent)
        right = self.translate(node.right, parent, left)
        sql = right.sql if not isinstance(node.right, ast.Join | ast.LateralView) else f"({right.sql})"
        using = node.using
        if node.natural:
            theirs = {column.name.lower() for column in right.columns if not column.is_hidden}
            using = tuple(c.name for c in left.columns if not c.is_hidden and c.name.lower() in theirs)
        condition, columns = "", (*left.columns, *right.columns)
        if using:
            condition, columns = self._using(node, left, right, using)
        elif node.on is not None:
            scope = Scope(columns, parent and parent.close("ON"), takes_correlated=False)
            condition = Expressions(scope, self._queries).boolean(node.on, "ON").sql
        if node.kind in ("semi", "anti"):
            columns = left.columns
        is_cross = not condition and node.kind in ("inner", "cross")
        if not is_cross and not condition:
            condition = "TRUE"
        join = "CROSS JOIN" if is_cross else f"{'INNER' if node.kind == 'cross' else node.kind.upper()} JOIN"
        return From(f"{left.sql} {join} {sql}{f' ON {condition}' if condition else ''}", tuple(columns))

    def _using(self, node: ast.Join, left: From, right: From, names: Sequence[str]) -> tuple[str, tuple[Column, ...]]:
        conditions, keys, hidden = [], [], []
        for name in names:
            pair = [_visible(side.columns, name) for side in (left, right)]
            values = [column.value(column.name) for column in pair]
            conditions.append(operators.comparison("=", *values).sql)
            if node.kind == "full":
                first, second = operators.unified(values)
                merged = f"coalesce({first.settled().sql}, {second.settled().sql})"
                keys.append(Column((), pair[0].name, merged, first.type))
                hidden += [replace(column, is_hidden=True) for column in pair]
            else:
                kept, other = (pair[1], pair[0]) if node.kind == "right" else pair
                keys.append(kept)
                hidden.append(replace(other, is_hidden=True))
        chosen = {column.sql for column in (*keys, *hidden)}
        rest = [column for column in (*left.columns, *right.columns) if column.sql not in chosen]
        return " AND ".join(conditions), (*keys, *rest, *hidden)


def _visible(columns: Sequence[Column], name: str) -> Column:
    matching = [column for column in columns if column.name.lower() == name.lower() and not column.is_hidden]
    if len(matching) != 1:
        raise NotTranslatedError(f"USING ({name})")
    return matching[0]


def is_generator(item: ast.Expression) -> bool:
    call = item.operand if isinstance(item, ast.Alias) else item
    return isinstance(call, ast.Call) and call.name in GENERATORS


def _type_or_none(text: str) -> Type | None:
    try:
        return parse_type(text)
    except NotTranslatedError:
        return None
