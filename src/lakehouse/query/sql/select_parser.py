"""Parse queries in Spark's SQL, without a library: what it accepts runs on DuckDB if every part of it has a rule.

It follows Spark's grammar and covers what the translation covers. What it does not know raises NotParsedError; such
statements are parsed with sqlglot and run on Spark. Text that goes to DuckDB is generated from the tree, never copied,
and the conformance suite (docs/sql.md) compares its answers with Spark's.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from lakehouse.query.sql import ast
from lakehouse.query.sql.expression_parser import NOT_ALIAS, ExpressionParser
from lakehouse.query.sql.lexer import NotParsedError, Token, tokenize, without_comments

_JOINS = frozenset("join inner cross left right full natural semi anti".split())


def parse_query(text: str) -> ast.ParsedQuery:
    """Parse a statement that is a query.

    Raises:
        NotParsedError: it is none, or has syntax that is not covered.
    """
    tokens = tokenize(text)
    parser = _Parser(tokens)
    query = parser.query()
    while parser.accept(";"):
        pass
    if parser.token.kind != "end":
        raise NotParsedError(f"unexpected {parser.token.text!r}")
    return ast.ParsedQuery(
        without_comments(text, tokens),
        query,
        tuple(parser.tables),
        tuple(parser.functions),
        tuple(parser.table_functions),
    )


class _Parser(ExpressionParser):
    def __init__(self, tokens: list[Token]) -> None:
        super().__init__(tokens)
        self._ctes: list[str] = []

    # ---- queries -------------------------------------------------------------------------------------------------

    def query(self) -> ast.Query:
        return self._deeper(self._query)

    def _query(self) -> ast.Query:
        visible = len(self._ctes)
        ctes = self._list(self._cte) if self.accept("with") else ()
        body = self._set_operations()
        order = self._list(self._sort_key) if self.accept("order", "by") else ()
        if self._at("sort") or self._at("cluster") or self._at("distribute") or self._at("window"):
            raise NotParsedError(self.token.text.upper())
        limit = offset = None
        while self._at("limit") or self._at("offset"):
            if self._advance().text == "limit":
                limit = None if self.accept("all") else self.expression()
            else:
                offset = self.expression()
        del self._ctes[visible:]
        return ast.Query(body, ctes, order, limit, offset)

    def _cte(self) -> tuple[str, tuple[str, ...], ast.Query]:
        name = self._identifier()
        columns = self._in_parentheses(self._identifier) if self._at("(") else ()
        self.accept("as")
        self._expect("(")
        query = self.query()
        self._expect(")")
        self._ctes.append(name.lower())
        return name, columns, query

    def _set_operations(self) -> ast.Body:
        left = self._intersections()
        while self._at("union") or self._at("except") or self._at("minus"):
            operator = {"minus": "except"}.get(self.token.text, self.token.text)
            self._advance()
            left = ast.SetOperation(operator, self._all(), left, self._intersections())
        return left

    def _intersections(self) -> ast.Body:
        left = self._body()
        while self.accept("intersect"):
            left = ast.SetOperation("intersect", self._all(), left, self._body())
        return left

    def _all(self) -> bool:
        return self.accept("all") or (self.accept("distinct") and False)

    def _body(self) -> ast.Body:
        if self.accept("("):
            query = self.query()
            self._expect(")")
            return query
        if self.accept("values"):
            return self._values()
        if self.accept("select"):
            return self._select()
        raise NotParsedError(f"{self.token.text.upper()}")

    def _values(self) -> ast.Values:
        rows = self._list(self._values_row)
        alias, columns = self._table_alias()
        return ast.Values(rows, alias, columns)

    def _values_row(self) -> tuple[ast.Expression, ...]:
        row = self.expression()
        if isinstance(row, ast.Call) and row.name == "(row)":
            return row.arguments
        return (row,)

    def _select(self) -> ast.Select:
        distinct = self.accept("distinct")
        if not distinct:
            self.accept("all")
        items = self._list(self._select_item)
        source = self._from() if self.accept("from") else None
        if self._at("lateral", "view"):
            source = self._lateral_views(source or ast.Values(((ast.Literal("int", "0"),),)))
        where = self.expression() if self.accept("where") else None
        group = self._group_by() if self.accept("group", "by") else None
        having = self.expression() if self.accept("having") else None
        windows = self._list(self._named_window) if self.accept("window") else ()
        return ast.Select(items, distinct, source, where, group, having, windows)

    def _named_window(self) -> tuple[str, ast.Window]:
        name = self._identifier()
        self._expect("as")
        return name.lower(), self._window_in_parentheses()

    def _group_by(self) -> ast.Grouping:
        if self._at("all") and self._ahead().text in ("", ")", "having", "order", "limit", "union", "window"):
            self._advance()
            return ast.Grouping((), all=True)
        elements = self._list(self._grouping_element)
        if self._at("grouping"):
            raise NotParsedError("GROUPING SETS behind expressions")
        if self.accept("with"):
            plain = [element for element in elements if not isinstance(element, ast.GroupingSets)]
            if len(plain) < len(elements):
                raise NotParsedError("several kinds of grouping")
            elements = (_grouping_sets(self._advance().text, plain),)
        return _grouping(elements)

    def _grouping_element(self) -> ast.Expression | ast.GroupingSets:
        """An element of GROUP BY: an expression, or the sets of ROLLUP, CUBE or GROUPING SETS."""
        for kind in ("rollup", "cube"):
            if self._at(kind, "("):
                self._advance()
                return _grouping_sets(kind, self._in_parentheses(self.expression))
        if self.accept("grouping", "sets"):
            return ast.GroupingSets(tuple(itertools.chain.from_iterable(self._in_parentheses(self._sets_among_sets))))
        return self.expression()

    def _sets_among_sets(self) -> tuple[tuple[ast.Expression, ...], ...]:
        """An element of GROUPING SETS: a list of expressions, one expression, or sets again."""
        if self._at("("):
            return (self._in_parentheses(self.expression),)
        element = self._grouping_element()
        return element.sets if isinstance(element, ast.GroupingSets) else ((element,),)

    # ---- FROM ----------------------------------------------------------------------------------------------------

    def _from(self) -> ast.Relation:
        left = self._joined(self._relation())
        while self.accept(","):
            right = self._joined(self._relation(is_lateral=self.accept("lateral")))
            left = ast.Join("cross", left, right)
        left = self._lateral_views(left)
        if self._at("unpivot") or self._at("tablesample"):
            raise NotParsedError(self.token.text.upper())
        if self.accept("pivot"):
            left = self._pivot(left)
        return left

    def _joined(self, left: ast.Relation) -> ast.Relation:
        while self.token.kind == "word" and self.token.text in _JOINS:
            natural, kind = self.accept("natural"), self._join_kind()
            right = self._relation(is_lateral=self.accept("lateral"))
            on = self.expression() if self.accept("on") else None
            using = self._in_parentheses(self._identifier) if not on and self.accept("using") else ()
            left = ast.Join(kind, left, right, on, using, natural)
        return left

    def _join_kind(self) -> str:
        if self.accept("join") or self.accept("inner", "join"):
            return "inner"
        if self.accept("cross", "join"):
            return "cross"
        if self.accept("semi", "join") or self.accept("left", "semi", "join"):
            return "semi"
        if self.accept("anti", "join") or self.accept("left", "anti", "join"):
            return "anti"
        kind = self._advance().text
        self.accept("outer")
        self._expect("join")
        if kind not in ("left", "right", "full"):
            raise NotParsedError(f"{kind.upper()} JOIN")
        return kind

    def _relation(self, is_lateral: bool = False) -> ast.Relation:
        if self._at("("):
            return self._parenthesized_relation(is_lateral)
        if self.accept("values"):
            return self._values()
        start = self.token.start
        parts = [self._identifier()]
        if self._at("(") and self._tokens[self._position - 1].kind == "word":
            return self._table_function(parts[0])
        while self.accept("."):
            parts.append(self._identifier())
        end = self._tokens[self._position - 1].end
        as_of, end = self._as_of(end)
        if self._at("tablesample"):
            raise NotParsedError("TABLESAMPLE")
        alias, columns = self._table_alias()
        table = ast.Table(tuple(parts), start, end, as_of, alias, columns)
        if len(parts) > 1 or parts[0].lower() not in self._ctes:
            self.tables.append(table)
        return table

    def _parenthesized_relation(self, is_lateral: bool) -> ast.Relation:
        self._expect("(")
        if self._opens_query():
            query = self.query()
            self._expect(")")
            alias, columns = self._table_alias()
            return ast.Derived(query, alias, columns, is_lateral)
        relation = self._joined(self._relation())
        self._expect(")")
        if self.token.kind == "quoted" or (self.token.kind == "word" and self.token.text not in NOT_ALIAS):
            raise NotParsedError("an alias of joined tables")
        return relation

    def _table_function(self, name: str) -> ast.Relation:
        self.table_functions.append(name.lower())
        arguments = self._in_parentheses(lambda: self._argument(name.lower()))
        alias, columns = self._table_alias()
        return ast.TableFunction(ast.Call(name.lower(), arguments), alias, columns)

    def _as_of(self, end: int) -> tuple[str, int]:
        self.accept("for")
        for word in ("version", "timestamp", "system_version", "system_time"):
            if self.accept(word, "as", "of"):
                token = self._advance()
                if token.kind not in ("string", "number"):
                    raise NotParsedError("AS OF an expression")
                return token.text, token.end
        return "", end

    def _table_alias(self) -> tuple[str, tuple[str, ...]]:
        named = self.accept("as")
        token = self.token
        if not named and (token.kind not in ("word", "quoted") or (token.kind == "word" and token.text in NOT_ALIAS)):
            return "", ()
        alias = self._identifier()
        return alias, self._in_parentheses(self._identifier) if self._at("(") else ()

    def _lateral_views(self, source: ast.Relation) -> ast.Relation:
        while self.accept("lateral", "view"):
            outer = self.accept("outer")
            name = self._identifier().lower()
            self.functions.append(name)
            arguments = self._in_parentheses(self.expression)
            alias = "" if self._at("as") else self._identifier()
            columns: tuple[str, ...] = ()
            if self.accept("as") or self.token.kind == "quoted" or self._is_name(self.token):
                columns = self._list(self._identifier)
            source = ast.LateralView(source, ast.Call(name, arguments), outer, alias, columns)
        return source

    def _pivot(self, source: ast.Relation) -> ast.Relation:
        self._expect("(")
        aggregates = self._list(self._select_item)
        self._expect("for")
        several = self.accept("(")
        columns = self._list(self._primary_with_suffixes) if several else (self._primary_with_suffixes(),)
        if several:
            self._expect(")")
        self._expect("in")
        values = self._in_parentheses(self._select_item)
        self._expect(")")
        alias, _ = self._table_alias()
        return ast.Pivot(source, aggregates, columns, values, alias)


def _grouping_sets(kind: str, elements: Sequence[ast.Expression]) -> ast.GroupingSets:
    """The sets of ROLLUP or CUBE, whose elements may be lists of expressions."""
    parts = [item.arguments if isinstance(item, ast.Call) and item.name == "(row)" else (item,) for item in elements]
    if kind == "rollup":
        chosen = [parts[:count] for count in reversed(range(len(parts) + 1))]
    elif kind == "cube":
        masks = itertools.product((True, False), repeat=len(parts))
        chosen = [list(itertools.compress(parts, mask)) for mask in masks]
    else:
        raise NotParsedError("WITH")
    return ast.GroupingSets(tuple(tuple(itertools.chain.from_iterable(group)) for group in chosen))


def _grouping(elements: Sequence[ast.Expression | ast.GroupingSets]) -> ast.Grouping:
    """The grouping by all elements: every combination of their sets."""
    if any(isinstance(element, ast.Call) and element.name == "(row)" for element in elements):
        raise NotParsedError("GROUP BY of a list in parentheses")
    plain = tuple(element for element in elements if not isinstance(element, ast.GroupingSets))
    if len(plain) == len(elements):
        return ast.Grouping(plain)
    sets = [element.sets if isinstance(element, ast.GroupingSets) else ((element,),) for element in elements]
    combined = [tuple(itertools.chain.from_iterable(group)) for group in itertools.product(*sets)]
    expressions = tuple(dict.fromkeys(itertools.chain.from_iterable(combined)))
    places = [dict.fromkeys(map(expressions.index, group)) for group in combined]
    return ast.Grouping(expressions, tuple(map(tuple, places)))
