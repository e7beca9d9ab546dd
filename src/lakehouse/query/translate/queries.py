"""Translate queries: WITH, WHERE, GROUP BY, SELECT, ORDER BY, set operations; relations.py translates FROM.

Every table, subquery and column gets a name of our own (`t1`, `c1`), so which column a name refers to is decided here, by
Spark's rules, and never by DuckDB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from lakehouse.core.quoting import name as quoted
from lakehouse.query.sql import ast
from lakehouse.query.translate.expressions import Expressions, check_groupable, group_key, sort_key
from lakehouse.query.translate.functions.basics import CAST_FUNCTIONS
from lakehouse.query.translate.relations import From, Relations, Rows, SourceTable, is_generator
from lakehouse.query.translate.rules import coerce
from lakehouse.query.translate.scope import Scope, TranslatedSubquery, UnknownColumnError
from lakehouse.query.translate.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    STRING,
    VOID,
    NotTranslatedError,
    common_type,
)
from lakehouse.query.translate.values import Value, literal_int


class Queries:
    """Translates the queries of one statement."""

    def __init__(self, tables: Mapping[int, SourceTable], parameters: Mapping[str, Any]) -> None:
        """
        Args:
            tables: by the position of the reference in the text.
        """
        self._relations, self._parameters = Relations(tables, self), parameters
        self.bound: set[str] = set()
        """The parameters that the translation uses."""
        self._ctes: list[dict[str, tuple[str, Rows]]] = []
        self._numbers = count(1)

    def translate(self, query: ast.Query) -> Rows:
        """Translate a statement; its columns have Spark's names."""
        return self.rows(query, None, is_result=True)

    def subquery(self, query: ast.Query, scope: Scope) -> TranslatedSubquery:
        """Translate a query within an expression, which may use names of the query around it."""
        names: list[ast.Name] = []
        rows = self.rows(query, Scope(parent=scope, from_around=names))
        is_plain = isinstance(query.body, ast.Select) and query.limit is None and query.offset is None
        if names and not (is_plain and scope.takes_correlated):
            raise NotTranslatedError(f"the name {'.'.join(names[0].parts)} from around a subquery of this kind")
        return TranslatedSubquery(rows.sql, rows.columns, is_correlated=bool(names))

    def parameter(self, name: str) -> Value:
        """The value of a marker, bound by DuckDB; its type is that of the Python value, as in PySpark."""
        if name not in self._parameters:
            raise NotTranslatedError(f"the parameter {name}, which has no value,")
        given = self._parameters[name]
        if given is None:
            return Value("NULL", VOID, "", is_literal=True)
        kinds = {bool: BOOLEAN, float: DOUBLE, str: STRING}
        kind = kinds.get(type(given)) or (INT if -(2**31) <= given < 2**31 else BIGINT)
        self.bound.add(name)
        return Value(f"CAST(${name} AS {kind.duckdb})", kind, "")

    def alias(self) -> str:
        return f"t{next(self._numbers)}"

    def common_table(self, name: str) -> tuple[str, Rows] | None:
        """The innermost common table expression with a name: its name in DuckDB, and its rows."""
        return next((ctes[name.lower()] for ctes in reversed(self._ctes) if name.lower() in ctes), None)

    # ---- queries -------------------------------------------------------------------------------------------------

    def rows(self, query: ast.Query, parent: Scope | None, is_result: bool = False) -> Rows:
        own: dict[str, tuple[str, Rows]] = {}
        self._ctes.append(own)
        try:
            for name, columns, inner in query.ctes:
                rows = self.rows(inner, None)
                if columns:
                    if len(columns) != len(rows.columns):
                        raise NotTranslatedError("a list of names that does not fit the columns")
                    named = tuple(value.named(column) for value, column in zip(rows.columns, columns, strict=True))
                    rows = Rows(rows.sql, named)
                own[name.lower()] = (f"w{next(self._numbers)}", rows)
            rows = self._ordered(query, parent, is_result)
        finally:
            self._ctes.pop()
        if not own:
            return rows
        definitions = ", ".join(f"{alias} AS ({inner.sql})" for alias, inner in own.values())
        return Rows(f"WITH {definitions} {rows.sql}", rows.columns)

    def _ordered(self, query: ast.Query, parent: Scope | None, is_result: bool) -> Rows:
        if isinstance(query.body, ast.Select):
            rows = self._select(query.body, parent, query.order_by, is_result)
        elif query.order_by:
            rows = self._order_rows(self._sortable(query.body, parent, is_result), query.order_by)
        else:
            rows = self._body(query.body, parent, is_result)
        sql = rows.sql
        if query.limit is not None:
            sql += f" LIMIT {self._count(query.limit)}"
        if query.offset is not None:
            sql += f" OFFSET {self._count(query.offset)}"
        return Rows(sql, rows.columns)

    def _count(self, node: ast.Expression) -> int:
        number = literal_int(Expressions(Scope(), self).translate(node), "LIMIT")
        if number < 0:
            raise NotTranslatedError("a negative LIMIT")
        return number

    def _body(self, body: ast.Body, parent: Scope | None, is_result: bool) -> Rows:
        match body:
            case ast.Select():
                return self._select(body, parent, (), is_result)
            case ast.Query():
                rows = self.rows(body, parent, is_result)
                return Rows(f"({rows.sql})", rows.columns)
            case ast.Values():
                source = self._relations.values(body)
                return self._select_columns(source, is_result)
        return self._set_operation(body, parent, is_result)

    def _select_columns(self, source: From, is_result: bool) -> Rows:
        values = [column.value(column.name) for column in source.columns]
        return Rows(f"SELECT {_listed(values, is_result)} FROM {source.sql}", tuple(values))

    def _sortable(self, body: ast.Body, parent: Scope | None, is_result: bool) -> Rows:
        """A body to which ORDER BY can be added: that of a query in parentheses is behind them."""
        if not isinstance(body, ast.Query):
            return self._body(body, parent, is_result)
        return self._select_columns(self.rows(body, parent).source(self.alias(), ()), is_result)

    def _order_rows(self, rows: Rows, keys: Sequence[ast.SortKey]) -> Rows:
        """ORDER BY behind a set operation, VALUES or parentheses: by columns of the result."""
        sorted_by = []
        for key in keys:
            place = self._output_place(key.expression, rows.columns)
            if place is None:
                raise NotTranslatedError("ORDER BY of an expression behind a set operation")
            _check_sortable(rows.columns[place])
            sorted_by.append(sort_key(_sorted_output(rows.columns[place], place), key))
        return Rows(f"{rows.sql} ORDER BY {', '.join(sorted_by)}", rows.columns)

    def _output_place(self, node: ast.Expression, columns: Sequence[Value]) -> int | None:
        """The column of the result that a sort key names by its position or its name."""
        if isinstance(node, ast.Literal) and node.type == "int":
            place = int(str(node.value)) - 1
            if not 0 <= place < len(columns):
                raise NotTranslatedError("a position that the result does not have")
            return place
        if not isinstance(node, ast.Name) or len(node.parts) != 1:
            return None
        places = [n for n, column in enumerate(columns) if column.name.lower() == node.parts[0].lower()]
        if len(places) > 1:
            raise NotTranslatedError(f"ORDER BY {node.parts[0]}, which several columns are called,")
        return places[0] if places else None

    def _set_operation(self, node: ast.SetOperation, parent: Scope | None, is_result: bool) -> Rows:
        left, right = self._body(node.left, parent, False), self._body(node.right, parent, False)
        if len(left.columns) != len(right.columns):
            raise NotTranslatedError(f"{node.operator.upper()} of different numbers of columns")
        columns = []
        for one, other in zip(left.columns, right.columns, strict=True):
            common = common_type(one.type, other.type)
            if common is None:
                raise NotTranslatedError(f"{node.operator.upper()} of {one.type} and {other.type}")
            if node.operator != "union" or not node.all:
                check_groupable(common, node.operator.upper())
            columns.append(Value("", common, one.name))
        is_set = not node.all
        sides = [self._aligned(rows, columns, is_set) for rows in (left, right)]
        word = node.operator.upper() + ("" if is_set else " ALL")
        alias = self.alias()
        inner = f"{sides[0]} {word} {sides[1]}"
        named = [replace(column, sql=f"{alias}.c{number}") for number, column in enumerate(columns, start=1)]
        return Rows(f"SELECT {_listed(named, is_result)} FROM ({inner}) AS {alias}", tuple(named))

    def _aligned(self, rows: Rows, columns: Sequence[Value], is_set: bool) -> str:
        alias = self.alias()
        values = [
            coerce(replace(own, sql=f"{alias}.c{number}", is_literal=False), column.type)
            for number, (own, column) in enumerate(zip(rows.columns, columns, strict=True), start=1)
        ]
        keys = [group_key(value) if is_set else value.sql for value in values]
        listed = ", ".join(f"{key} AS c{number}" for number, key in enumerate(keys, start=1))
        return f"SELECT {listed} FROM ({rows.sql}) AS {alias}"

    # ---- SELECT --------------------------------------------------------------------------------------------------

    def _select(self, node: ast.Select, parent: Scope | None, order: Sequence[ast.SortKey], is_result: bool) -> Rows:
        try:
            return self._selected(node, parent, order, is_result)
        except UnknownColumnError as exc:
            if not any(map(is_generator, node.items)):
                raise
            raise NotTranslatedError(f"the name {exc} beside a function that makes rows") from exc

    def _selected(self, node: ast.Select, parent: Scope | None, order: Sequence[ast.SortKey], is_result: bool) -> Rows:
        source = self._relations.translate(node.source, parent) if node.source is not None else From("", ())
        source, items = self._relations.with_generator(node, source, parent)
        scope = Scope(source.columns, parent, windows=dict(node.windows))
        where = Expressions(scope, self).condition(node.where, "WHERE").sql if node.where is not None else ""
        scope = replace(scope, parent=parent and parent.close("SELECT, GROUP BY or HAVING"))
        if node.group is not None:
            scope = _grouped_scope(node, node.group, items, scope)
        outputs = self._items(items, scope)
        if not outputs:
            raise NotTranslatedError("SELECT of nothing")
        groups = self._group_by(node.group, outputs, scope) if node.group is not None else ""
        if node.distinct:
            for value in outputs:
                check_groupable(value.type, "DISTINCT")
            outputs = [replace(value, sql=group_key(value)) for value in outputs]
        having = self._having(node.having, outputs, scope)
        ordered = self._order_by(order, outputs, scope, node.distinct)
        clauses = [
            f"SELECT {'DISTINCT ' if node.distinct else ''}{_listed(outputs, is_result)}",
            f"FROM {source.sql}" if source.sql else "",
            f"WHERE {where}" if where else "",
            groups,
            f"HAVING {having}" if having else "",
            f"ORDER BY {ordered}" if ordered else "",
        ]
        return Rows(" ".join(filter(None, clauses)), tuple(outputs))

    def _items(self, items: Sequence[ast.Expression], scope: Scope) -> list[Value]:
        outputs: list[Value] = []
        aliases: dict[str, Value] = {}
        for item in items:
            if isinstance(item, ast.Star):
                outputs += [column.value(column.name) for column in scope.star(item.qualifier)]
                continue
            value = Expressions(replace(scope, aliases=dict(aliases)), self).translate(item)
            if value.type.kind == "interval":
                raise NotTranslatedError("an interval as a column")
            outputs.append(value.settled().named(_item_name(item, value)))
            if isinstance(item, ast.Alias):
                aliases.setdefault(item.name.lower(), value.settled())
        return outputs

    def _group_by(self, group: ast.Grouping, outputs: Sequence[Value], scope: Scope) -> str:
        if group.all:
            raise NotTranslatedError("GROUP BY ALL")
        keys = []
        for node in group.expressions:
            value = self._grouped_value(node, outputs, scope)
            check_groupable(value.type, "GROUP BY")
            if value.is_literal:
                raise NotTranslatedError("GROUP BY of a constant")
            keys.append(value.settled().sql)
        if group.sets is None:
            return f"GROUP BY {', '.join(keys)}"
        sets = [tuple(dict.fromkeys(keys[place] for place in places)) for places in group.sets]
        if len(set(map(frozenset, sets))) < len(sets):
            raise NotTranslatedError("the same grouping set twice")
        listed = ", ".join(f"({', '.join(chosen)})" for chosen in sets)
        return f"GROUP BY GROUPING SETS ({listed})"

    def _grouped_value(self, node: ast.Expression, outputs: Sequence[Value], scope: Scope) -> Value:
        if isinstance(node, ast.Literal) and node.type == "int":
            place = self._output_place(node, outputs)
            assert place is not None
            return outputs[place]
        aliases = {value.name.lower(): value for value in outputs}
        value = Expressions(replace(scope, aliases=aliases), self).translate(node)
        if value.type.is_fraction and not any(column.sql == value.sql for column in scope.columns):
            raise NotTranslatedError("GROUP BY of a floating-point expression")
        return value

    def _having(self, node: ast.Expression | None, outputs: Sequence[Value], scope: Scope) -> str:
        if node is None:
            return ""
        names = {value.name.lower(): value for value in outputs}
        # Spark refuses `grouping` here, so it is not known.
        scope = replace(scope, outputs=names, grouped=(), takes_correlated=False)
        return Expressions(scope, self).condition(node, "HAVING").sql

    def _order_by(self, keys: Sequence[ast.SortKey], outputs: Sequence[Value], scope: Scope, is_distinct: bool) -> str:
        names = {value.name.lower(): value for value in outputs}
        sorted_by = []
        for key in keys:
            place = self._output_place(key.expression, outputs)
            if place is None:
                sorting = replace(scope, outputs=names, takes_correlated=False)
                value = Expressions(sorting, self).translate(key.expression).settled()
                place = next((n for n, output in enumerate(outputs) if output.sql == value.sql), None)
                _check_sortable(value)
                if value.is_literal:
                    continue
                if place is None and is_distinct:
                    raise NotTranslatedError("ORDER BY of an expression behind DISTINCT")
            else:
                _check_sortable(outputs[place])
            if place is None:
                sorted_by.append(sort_key(value.sql, key))
            else:
                sorted_by.append(
                    sort_key(str(place + 1) if is_distinct else _sorted_output(outputs[place], place), key)
                )
        return ", ".join(sorted_by)


def _listed(values: Sequence[Value], is_result: bool) -> str:
    if is_result and not all(value.name for value in values):
        raise NotTranslatedError("a column without a name")
    names = [quoted(value.name) if is_result else f"c{number}" for number, value in enumerate(values, start=1)]
    return ", ".join(f"{_written(value)} AS {name}" for value, name in zip(values, names, strict=True))


def _written(value: Value) -> str:
    # NULL alone has no type; Spark's `void` is shown as such, and DuckDB holds it as an INTEGER.
    return f"CAST(NULL AS {INT.duckdb})" if value.type.kind == "void" else value.settled().sql


def _item_name(item: ast.Expression, value: Value) -> str:
    """The name of a column. A cast keeps the name of its column, and a field of a struct has its own."""
    if isinstance(item, ast.Cast):
        item = item.operand
    elif isinstance(item, ast.Call) and item.name in CAST_FUNCTIONS:
        item = item.arguments[0]
    is_function = isinstance(item, ast.Name) and value.name == f"{item.parts[-1].lower()}()"  # current_date
    return item.parts[-1] if isinstance(item, ast.Name) and not is_function else value.name


def _sorted_output(value: Value, place: int) -> str:
    """A column of the result as a sort key. DuckDB makes one zero of two in a column that it sorts by, Spark does not."""
    return f"({value.sql} + 0)" if value.type.is_fraction else str(place + 1)


def _check_sortable(value: Value) -> None:
    if value.type.is_nested:
        raise NotTranslatedError(f"ORDER BY of {value.type}")


def _grouped_scope(node: ast.Select, group: ast.Grouping, items: Sequence[ast.Expression], scope: Scope) -> Scope:
    """What the expressions of a grouped SELECT see."""
    keys = [_key(key, items, scope) for key in group.expressions]
    if node.having is not None and group.sets is not None and not all(isinstance(key, ast.Name) for key in keys):
        # Spark does not find them there, nor the columns in them.
        raise NotTranslatedError("HAVING behind grouping sets of expressions")
    grouped = group.expressions if group.sets is not None else ()
    return replace(_normalized_keys(scope, keys), takes_correlated=False, grouped=grouped)


def _key(key: ast.Expression, items: Sequence[ast.Expression], scope: Scope) -> ast.Expression:
    """A key of GROUP BY, which may be the position or the alias of an item."""
    if isinstance(key, ast.Literal) and key.type == "int":
        if any(isinstance(item, ast.Star) for item in items):
            raise NotTranslatedError("GROUP BY of a position beside *")
        place = int(str(key.value)) - 1
        key = items[place] if 0 <= place < len(items) else key
        return key.operand if isinstance(key, ast.Alias) else key
    if not isinstance(key, ast.Name) or len(key.parts) > 1 or scope._column(key.parts) is not None:
        return key
    aliases = {item.name.lower(): item.operand for item in items if isinstance(item, ast.Alias)}
    return aliases.get(key.parts[0].lower(), key)


def _normalized_keys(scope: Scope, keys: Sequence[ast.Expression]) -> Scope:
    """Columns of floating-point numbers that are grouped by, with one zero instead of two."""
    grouped = set()
    for node in keys:
        if isinstance(node, ast.Name):
            column = scope._column(node.parts)
            if column is not None and column.type.is_fraction:
                grouped.add(column.sql)
    if not grouped:
        return scope
    columns = tuple(
        replace(column, sql=f"({column.sql} + 0)") if column.sql in grouped else column for column in scope.columns
    )
    return replace(scope, columns=columns)
