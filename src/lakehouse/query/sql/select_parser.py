"""Parse queries in Spark's SQL, without a library: what it accepts runs on DuckDB if every part of it has a rule.

It follows Spark's grammar and covers what the translation covers. What it does not know raises NotParsedError; such
statements are parsed with sqlglot and run on Spark. Text that goes to DuckDB is generated from the tree, never copied,
and the conformance suite (docs/sql.md) compares its answers with Spark's.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from lakehouse.query.sql import ast
from lakehouse.query.sql.expression_parser import ExpressionParser, is_alias
from lakehouse.query.sql.lexer import NotParsedError, TokenReader, tokenize, without_comments

_JOINS = frozenset("join inner cross left right full natural semi anti".split())
#: Names of tables to Spark, unless something else fits; sqlglot starts a clause or a statement with them.
_CLAUSES = frozenset(
    "describe fetch from group having join lateral pivot qualify select tablesample unpivot where".split()
)


def parse_query(text: str) -> ast.ParsedQuery:
    """Parse a statement that is a query.

    Raises:
        NotParsedError: it is none, or has syntax that is not covered.
    """
    tokens = tokenize(text)
    reader = TokenReader(tokens)
    query = _QueryParser(reader).query()
    while reader.accept(";"):
        pass
    if reader.next.kind != "end":
        raise NotParsedError(f"unexpected {reader.next.text!r}")
    return ast.ParsedQuery(
        without_comments(text, tokens),
        query,
        tuple(reader.tables),
        tuple(reader.functions),
        tuple(reader.table_functions),
    )


class _QueryParser:
    """Parses queries; their expressions have a parser of their own, which comes back for the queries within them."""

    def __init__(self, tokens: TokenReader) -> None:
        self.tokens, self.expressions = tokens, ExpressionParser(tokens, self.query)
        self._ctes: list[str] = []

    # ---- queries -------------------------------------------------------------------------------------------------

    def query(self) -> ast.Query:
        return self.tokens.deeper(self._query)

    def _query(self) -> ast.Query:
        visible = len(self._ctes)
        ctes = self.tokens.listed(self._cte) if self.tokens.accept("with") else ()
        body = self._set_operations()
        order = self.tokens.listed(self.expressions.sort_key) if self.tokens.accept("order", "by") else ()
        if any(map(self.tokens.at, ("sort", "cluster", "distribute", "window"))):
            raise NotParsedError(self.tokens.next.text.upper())
        limit = offset = None
        while self.tokens.at("limit") or self.tokens.at("offset"):
            if self.tokens.advance().text == "limit":
                limit = None if self.tokens.accept("all") else self.expressions.expression()
            else:
                offset = self.expressions.expression()
        del self._ctes[visible:]
        return ast.Query(body, ctes, order, limit, offset)

    def _cte(self) -> tuple[str, tuple[str, ...], ast.Query]:
        name = self.tokens.identifier()
        columns = self.tokens.in_parentheses(self.tokens.identifier) if self.tokens.at("(") else ()
        self.tokens.accept("as")
        self.tokens.expect("(")
        query = self.query()
        self.tokens.expect(")")
        self._ctes.append(name.lower())
        return name, columns, query

    def _set_operations(self) -> ast.Body:
        left = self._intersections()
        while self.tokens.at("union") or self.tokens.at("except") or self.tokens.at("minus"):
            operator = {"minus": "except"}.get(self.tokens.next.text, self.tokens.next.text)
            self.tokens.advance()
            left = ast.SetOperation(operator, self._all(), left, self._intersections())
        return left

    def _intersections(self) -> ast.Body:
        left = self._body()
        while self.tokens.accept("intersect"):
            left = ast.SetOperation("intersect", self._all(), left, self._body())
        return left

    def _all(self) -> bool:
        return self.tokens.accept("all") or (self.tokens.accept("distinct") and False)

    def _body(self) -> ast.Body:
        if self.tokens.accept("("):
            query = self.query()
            self.tokens.expect(")")
            return query
        if self.tokens.accept("values"):
            return self._values()
        if self.tokens.accept("select"):
            return self._select()
        raise NotParsedError(f"{self.tokens.next.text.upper()}")

    def _values(self) -> ast.Values:
        rows = self.tokens.listed(self._values_row)
        alias, columns = self._table_alias()
        return ast.Values(rows, alias, columns)

    def _values_row(self) -> tuple[ast.Expression, ...]:
        row = self.expressions.expression()
        if isinstance(row, ast.Call) and row.name == "(row)":
            return row.arguments
        return (row,)

    def _select(self) -> ast.Select:
        distinct = self.tokens.accept("distinct")
        if not distinct:
            self.tokens.accept("all")
        items = self.tokens.listed(self.expressions.select_item)
        source = self._from() if self.tokens.accept("from") else None
        if self.tokens.at("lateral", "view"):
            source = self._lateral_views(source or ast.Values(((ast.Literal("int", "0"),),)))
        where = self.expressions.expression() if self.tokens.accept("where") else None
        group = self._group_by() if self.tokens.accept("group", "by") else None
        having = self.expressions.expression() if self.tokens.accept("having") else None
        windows = self.tokens.listed(self._named_window) if self.tokens.accept("window") else ()
        return ast.Select(items, distinct, source, where, group, having, windows)

    def _named_window(self) -> tuple[str, ast.Window]:
        name = self.tokens.identifier()
        self.tokens.expect("as")
        return name.lower(), self.expressions.window_in_parentheses()

    def _group_by(self) -> ast.Grouping:
        if self.tokens.at("all") and self.tokens.ahead().text in (
            "",
            ")",
            "having",
            "order",
            "limit",
            "union",
            "window",
        ):
            self.tokens.advance()
            return ast.Grouping((), all=True)
        elements = self.tokens.listed(self._grouping_element)
        if self.tokens.at("grouping"):
            raise NotParsedError("GROUPING SETS behind expressions")
        if self.tokens.accept("with"):
            plain = [element for element in elements if not isinstance(element, ast.GroupingSets)]
            if len(plain) < len(elements):
                raise NotParsedError("several kinds of grouping")
            elements = (_grouping_sets(self.tokens.advance().text, plain),)
        return _grouping(elements)

    def _grouping_element(self) -> ast.Expression | ast.GroupingSets:
        """An element of GROUP BY: an expression, or the sets of ROLLUP, CUBE or GROUPING SETS."""
        for kind in ("rollup", "cube"):
            if self.tokens.at(kind, "("):
                self.tokens.advance()
                return _grouping_sets(kind, self.tokens.in_parentheses(self.expressions.expression))
        if self.tokens.accept("grouping", "sets"):
            return ast.GroupingSets(
                tuple(itertools.chain.from_iterable(self.tokens.in_parentheses(self._sets_among_sets)))
            )
        return self.expressions.expression()

    def _sets_among_sets(self) -> tuple[tuple[ast.Expression, ...], ...]:
        """An element of GROUPING SETS: a list of expressions, one expression, or sets again."""
        if self.tokens.at("("):
            return (self.tokens.in_parentheses(self.expressions.expression),)
        element = self._grouping_element()
        return element.sets if isinstance(element, ast.GroupingSets) else ((element,),)

    # ---- FROM ----------------------------------------------------------------------------------------------------

    def _from(self) -> ast.Relation:
        left = self._joined(self._relation())
        while self.tokens.accept(","):
            right = self._joined(self._relation(is_lateral=self.tokens.accept("lateral")))
            left = ast.Join("cross", left, right)
        left = self._lateral_views(left)
        if self.tokens.at("unpivot") or self.tokens.at("tablesample"):
            raise NotParsedError(self.tokens.next.text.upper())
        if self.tokens.accept("pivot"):
            left = self._pivot(left)
        return left

    def _joined(self, left: ast.Relation) -> ast.Relation:
        while self.tokens.next.kind == "word" and self.tokens.next.text in _JOINS:
            natural, kind = self.tokens.accept("natural"), self._join_kind()
            right = self._relation(is_lateral=self.tokens.accept("lateral"))
            on = self.expressions.expression() if self.tokens.accept("on") else None
            using = self.tokens.in_parentheses(self.tokens.identifier) if not on and self.tokens.accept("using") else ()
            left = ast.Join(kind, left, right, on, using, natural)
        return left

    def _join_kind(self) -> str:
        if self.tokens.accept("join") or self.tokens.accept("inner", "join"):
            return "inner"
        if self.tokens.accept("cross", "join"):
            return "cross"
        if self.tokens.accept("semi", "join") or self.tokens.accept("left", "semi", "join"):
            return "semi"
        if self.tokens.accept("anti", "join") or self.tokens.accept("left", "anti", "join"):
            return "anti"
        kind = self.tokens.advance().text
        self.tokens.accept("outer")
        self.tokens.expect("join")
        if kind not in ("left", "right", "full"):
            raise NotParsedError(f"{kind.upper()} JOIN")
        return kind

    def _relation(self, is_lateral: bool = False) -> ast.Relation:
        if self.tokens.at("("):
            return self._parenthesized_relation(is_lateral)
        self._check_table_word()
        if self.tokens.accept("values"):
            return self._values()
        start = self.tokens.next.start
        parts = [self.tokens.identifier()]
        if self.tokens.at("(") and self.tokens.previous.kind == "word":
            return self._table_function(parts[0])
        if is_lateral:
            raise NotParsedError("LATERAL of a table")
        while self.tokens.accept("."):
            parts.append(self.tokens.identifier())
        end = self.tokens.previous.end
        as_of, end = self._as_of(end)
        if self.tokens.at("tablesample"):
            raise NotParsedError("TABLESAMPLE")
        alias, columns = self._table_alias()
        table = ast.Table(tuple(parts), start, end, as_of, alias, columns)
        if len(parts) > 1 or parts[0].lower() not in self._ctes:
            self.tokens.tables.append(table)
        return table

    def _check_table_word(self) -> None:
        """Leave it to the guard to refuse a table's name that sqlglot would read as something else."""
        word, after = self.tokens.next, self.tokens.ahead()
        if word.kind == "word" and word.text in _CLAUSES:
            raise NotParsedError(f"the table {word.text}, not in backquotes")
        if self.tokens.at("values") and after.kind == "word" and self.tokens.ahead(2).text != "(":
            raise NotParsedError("VALUES of a word, which may be an alias")

    def _parenthesized_relation(self, is_lateral: bool) -> ast.Relation:
        self.tokens.expect("(")
        if self.tokens.opens_query():
            query = self.query()
            self.tokens.expect(")")
            alias, columns = self._table_alias()
            return ast.Derived(query, alias, columns, is_lateral)
        relation = self._joined(self._relation())
        self.tokens.expect(")")
        if is_alias(self.tokens.next):
            raise NotParsedError("an alias of joined tables")
        return relation

    def _table_function(self, name: str) -> ast.Relation:
        self.tokens.table_functions.append(name.lower())
        arguments = self.tokens.in_parentheses(lambda: self.expressions.argument(name.lower()))
        alias, columns = self._table_alias()
        return ast.TableFunction(ast.Call(name.lower(), arguments), alias, columns)

    def _as_of(self, end: int) -> tuple[str, int]:
        self.tokens.accept("for")
        for word in ("version", "timestamp", "system_version", "system_time"):
            if self.tokens.accept(word, "as", "of"):
                token = self.tokens.advance()
                if token.kind not in ("string", "number"):
                    raise NotParsedError("AS OF an expression")
                return token.text, token.end
        return "", end

    def _table_alias(self) -> tuple[str, tuple[str, ...]]:
        if not self.tokens.accept("as") and not is_alias(self.tokens.next):
            return "", ()
        alias = self.tokens.identifier()
        return alias, self.tokens.in_parentheses(self.tokens.identifier) if self.tokens.at("(") else ()

    def _lateral_views(self, source: ast.Relation) -> ast.Relation:
        while self.tokens.accept("lateral", "view"):
            outer = self.tokens.accept("outer")
            name = self.tokens.identifier().lower()
            self.tokens.functions.append(name)
            arguments = self.tokens.in_parentheses(self.expressions.expression)
            alias = "" if self.tokens.at("as") else self.tokens.identifier()
            columns: tuple[str, ...] = ()
            if self.tokens.accept("as") or is_alias(self.tokens.next):
                columns = self.tokens.listed(self.tokens.identifier)
            source = ast.LateralView(source, ast.Call(name, arguments), outer, alias, columns)
        return source

    def _pivot(self, source: ast.Relation) -> ast.Relation:
        self.tokens.expect("(")
        aggregates = self.tokens.listed(self.expressions.select_item)
        self.tokens.expect("for")
        several = self.tokens.accept("(")
        columns = (
            self.tokens.listed(self.expressions.primary_with_suffixes)
            if several
            else (self.expressions.primary_with_suffixes(),)
        )
        if several:
            self.tokens.expect(")")
        self.tokens.expect("in")
        values = self.tokens.in_parentheses(self.expressions.select_item)
        self.tokens.expect(")")
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
