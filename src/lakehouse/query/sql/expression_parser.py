"""Parse expressions in Spark's SQL: operators by their precedence, calls, casts, literals, windows."""

from __future__ import annotations

from collections.abc import Callable, Collection

from lakehouse.query.sql import ast
from lakehouse.query.sql.lexer import NotParsedError, Token, TokenReader

#: Words that end an expression, so they are no alias unless AS or quotes say so.
NOT_ALIAS = frozenset(
    "from where group having order limit offset union intersect except minus join on using left right full inner outer"
    " cross natural semi anti lateral window sort cluster distribute pivot unpivot tablesample as for version timestamp"
    " when then else end and or not between in like rlike regexp ilike is asc desc nulls select with values div"
    " over filter within ignore respect system_version system_time escape".split()
)
_COMPARISONS = frozenset(("=", "!=", "<", "<=", ">", ">=", "<=>"))
_UNITS = frozenset(
    "year years quarter quarters month months week weeks day days hour hours minute minutes second seconds"
    " millisecond milliseconds microsecond microseconds dayofyear".split()
)
_INT_SUFFIXES = {"L": "bigint", "S": "smallint", "Y": "tinyint"}
_LARGEST = {"int": 2**31 - 1, "bigint": 2**63 - 1}


class ExpressionParser(TokenReader):
    """The part of the grammar below a query. Subqueries are read by the parser of queries, which is a subclass."""

    def query(self) -> ast.Query:
        raise NotImplementedError

    def expression(self) -> ast.Expression:
        return self._deeper(self._or)

    def _or(self) -> ast.Expression:
        left = self._and()
        while self.accept("or"):
            left = ast.Binary("or", left, self._and())
        return left

    def _and(self) -> ast.Expression:
        left = self._not()
        while self.accept("and"):
            left = ast.Binary("and", left, self._not())
        return left

    def _not(self) -> ast.Expression:
        if self.accept("not") or self.accept("!"):
            return ast.Unary("not", self._deeper(self._not))
        return self._predicate(self._comparison())

    def _predicate(self, operand: ast.Expression) -> ast.Expression:
        if self.accept("is"):
            return self._is(operand)
        negated = self._at("not") and self._ahead().text in ("between", "in", "like", "ilike", "rlike", "regexp")
        if negated:
            self._advance()
        if self.accept("between"):
            low = self._comparison()
            self._expect("and")
            return ast.Between(operand, low, self._comparison(), negated)
        if self.accept("in"):
            return self._in(operand, negated)
        for operator in ("like", "ilike", "rlike", "regexp"):
            if self.accept(operator):
                return self._like("rlike" if operator == "regexp" else operator, operand, negated)
        return operand

    def _is(self, operand: ast.Expression) -> ast.Expression:
        negated = self.accept("not")
        if self.accept("distinct", "from"):
            same = ast.Binary("<=>", operand, self._comparison())
            return same if negated else ast.Unary("not", same)
        what = self._advance().text
        if what not in ("null", "true", "false", "unknown"):
            raise NotParsedError(f"IS {what.upper()}")
        return ast.Is(operand, what, negated)

    def _in(self, operand: ast.Expression, negated: bool) -> ast.Expression:
        if self._at("(") and self._ahead().kind == "word" and self._ahead().text in ("select", "with", "values"):
            self._expect("(")
            query = self.query()
            self._expect(")")
            return ast.In(operand, query, negated)
        return ast.In(operand, self._in_parentheses(self.expression), negated)

    def _like(self, operator: str, operand: ast.Expression, negated: bool) -> ast.Expression:
        if self.token.text in ("any", "all", "some") and self._ahead().text == "(":
            raise NotParsedError(f"{operator.upper()} {self.token.text.upper()}")
        pattern, escape = self._comparison(), "\\"
        if self.accept("escape"):
            escape = self._advance().text
        return ast.Like(operator, operand, pattern, escape, negated)

    def _comparison(self) -> ast.Expression:
        return self._binary(_COMPARISONS, self._bit_or)

    def _bit_or(self) -> ast.Expression:
        return self._binary(("|",), self._bit_xor)

    def _bit_xor(self) -> ast.Expression:
        return self._binary(("^",), self._bit_and)

    def _bit_and(self) -> ast.Expression:
        return self._binary(("&",), self._sum)

    def _sum(self) -> ast.Expression:
        return self._binary(("+", "-", "||"), self._product)

    def _product(self) -> ast.Expression:
        return self._binary(("*", "/", "%", "div"), self._unary)

    def _binary(self, operators: Collection[str], operand: Callable[[], ast.Expression]) -> ast.Expression:
        left = operand()
        while self.token.kind in ("sign", "word") and self.token.text in operators:
            operator = self._advance().text
            left = ast.Binary(operator, left, operand())
        return left

    def _unary(self) -> ast.Expression:
        if self._at("-") and self._ahead().kind == "number":
            self._advance()
            return self._suffixes(_number(self._advance(), "-"))
        for sign in ("-", "+", "~"):
            if self.accept(sign):
                return ast.Unary(sign, self._deeper(self._unary))
        return self._primary_with_suffixes()

    def _primary_with_suffixes(self) -> ast.Expression:
        return self._suffixes(self._primary())

    def _suffixes(self, operand: ast.Expression) -> ast.Expression:
        while True:
            if self.accept("["):
                operand = ast.Subscript(operand, self.expression())
                self._expect("]")
            elif self._at(".") and not isinstance(operand, ast.Name):
                self._advance()
                operand = ast.Field(operand, self._identifier())
            elif self.accept("::"):
                operand = ast.Cast(operand, self._type(), is_try=False)
            elif self._at(":"):
                raise NotParsedError("a path behind a colon")
            else:
                return operand

    def _primary(self) -> ast.Expression:  # noqa: C901 - one branch for each kind of token
        token = self.token
        if token.kind == "number":
            return _number(self._advance())
        if token.kind == "string":
            return self._string()
        if self.accept("("):
            return self._parenthesized()
        if self.accept("*"):
            return ast.Star()
        if self.accept(":"):
            return ast.Parameter(self._identifier())
        if token.kind == "quoted":
            return self._name()
        if token.kind != "word":
            raise NotParsedError(f"unexpected {token.text!r}")
        special = _SPECIAL.get(token.text)
        parsed = special(self) if special else None
        if parsed is not None:
            return parsed
        if self._ahead().text == "(" and self._ahead().kind == "sign":
            return self._call()
        if self._ahead().text == "->" and self._ahead().kind == "sign":
            return self._lambda((self._identifier(),))
        return self._name()

    def _string(self) -> ast.Expression:
        text = ""
        while self.token.kind == "string":
            text += self._advance().text
        return ast.Literal("string", text)

    def _parenthesized(self) -> ast.Expression:
        if self._opens_query() and self._query_ends():
            query = self.query()
            self._expect(")")
            return ast.Subquery(query)
        items = self._list(self._row_item)
        self._expect(")")
        if self._at("->"):
            names = [item.parts[0] for item in items if isinstance(item, ast.Name) and len(item.parts) == 1]
            if len(names) != len(items):
                raise NotParsedError("parameters of a lambda function")
            return self._lambda(tuple(names))
        return items[0] if len(items) == 1 else ast.Call("(row)", items)

    def _row_item(self) -> ast.Expression:
        """An expression, perhaps with a name: `(a AS x, b)` is a struct."""
        return self._select_item()

    def _query_ends(self) -> bool:
        """`((select 1) + 1)` starts as a query does, and is none."""
        if self.token.text != "(":
            return True
        depth, ahead = 0, 0
        while True:
            token = self._ahead(ahead)
            depth += (token.text == "(" and token.kind == "sign") - (token.text == ")" and token.kind == "sign")
            if depth == 0 or token.kind == "end":
                return self._ahead(ahead + 1).text in (")", "union", "intersect", "except", "minus", "order", "limit")
            ahead += 1

    def _lambda(self, parameters: tuple[str, ...]) -> ast.Expression:
        self._expect("->")
        return ast.Lambda(parameters, self.expression())

    def _name(self) -> ast.Expression:
        start, parts = self.token.start, [self._identifier()]
        while self._at("."):
            self._advance()
            if self.accept("*"):
                return ast.Star(tuple(parts))
            parts.append(self._identifier())
        if self._at("(") and len(parts) > 1:
            raise NotParsedError("a function with a qualified name")
        return ast.Name(tuple(parts), start)

    def _call(self) -> ast.Expression:
        start, name = self.token.start, self._advance().text
        self.functions.append(name)
        self._expect("(")
        distinct = self.accept("distinct")
        if not distinct and self._at("all") and self._ahead().text not in (",", ")", "."):
            self._advance()
        arguments: tuple[ast.Expression, ...] = () if self._at(")") else self._list(lambda: self._argument(name))
        ignore_nulls = self._nulls()
        self._expect(")")
        within: tuple[ast.SortKey, ...] = ()
        if self.accept("within", "group"):
            self._expect("(")
            self._expect("order", "by")
            within = self._list(self._sort_key)
            self._expect(")")
        where = None
        if self._at("filter", "(", "where"):
            self._position += 3
            where = self.expression()
            self._expect(")")
        ignore_nulls = self._nulls() or ignore_nulls
        over = None
        if self.accept("over"):
            over = self._window_in_parentheses() if self._at("(") else ast.Window(self._identifier().lower())
        return ast.Call(name, arguments, distinct, where, within, ignore_nulls, over, start)

    def _argument(self, function: str) -> ast.Expression:
        """An argument; of STRUCT it may have a name, and that of EXPLODE is called `collection`."""
        argument = self.expression()
        if self.accept("=>"):
            named = argument.parts if isinstance(argument, ast.Name) else ()
            if named != ("collection",) or function not in ("explode", "explode_outer"):
                raise NotParsedError("a named argument")
            return self.expression()
        return ast.Alias(argument, self._identifier()) if self.accept("as") else argument

    def _nulls(self) -> bool:
        if self.accept("ignore", "nulls"):
            return True
        self.accept("respect", "nulls")
        return False

    def _window_in_parentheses(self) -> ast.Window:
        self._expect("(")
        base = ""
        if self._is_name(self.token) and self.token.text not in ("partition", "rows", "range", "distribute", "cluster"):
            base = self._identifier().lower()
        partition = self._list(self.expression) if self.accept("partition", "by") else ()
        order = self._list(self._sort_key) if self.accept("order", "by") else ()
        frame = None
        if self._at("rows") or self._at("range"):
            frame = self._frame(self._advance().text)
        self._expect(")")
        return ast.Window(base, partition, order, frame)

    def _frame(self, unit: str) -> ast.Frame:
        if self.accept("between"):
            start = self._bound()
            self._expect("and")
            return ast.Frame(unit, start, self._bound())
        return ast.Frame(unit, self._bound(), ("current row", None))

    def _bound(self) -> tuple[str, ast.Expression | None]:
        if self.accept("current", "row"):
            return "current row", None
        if self.accept("unbounded"):
            return f"unbounded {self._advance().text}", None
        offset = self.expression()
        return self._advance().text, offset

    # ---- words with a syntax of their own --------------------------------------------------------------------------

    def _case(self) -> ast.Expression:
        self._advance()
        operand = None if self._at("when") else self.expression()
        branches = []
        while self.accept("when"):
            condition = self.expression()
            self._expect("then")
            branches.append((condition, self.expression()))
        otherwise = self.expression() if self.accept("else") else None
        self._expect("end")
        return ast.Case(operand, tuple(branches), otherwise)

    def _cast(self) -> ast.Expression | None:
        if self._ahead().text != "(":
            return None
        is_try = self._advance().text == "try_cast"
        self._expect("(")
        operand = self.expression()
        self._expect("as")
        to = self._type()
        self._expect(")")
        return ast.Cast(operand, to, is_try)

    def _type(self) -> str:
        """A type in Spark's short spelling, such as `decimal(10,2)` or `array<int>`."""
        name = self._identifier().lower()
        if name in ("array", "map", "struct") and self.accept("<"):
            return f"{name}<{self._nested_types(name)}>"
        if self._at("("):
            return f"{name}({','.join(self._in_parentheses(lambda: self._advance().text))})"
        return name

    def _nested_types(self, name: str) -> str:
        parts = []
        while not self.accept(">"):
            if name == "struct":
                field = self._identifier()
                self.accept(":")
                parts.append(f"{field}:{self._type()}")
            else:
                parts.append(self._type())
            self.accept(",")
        return ",".join(parts)

    def _exists(self) -> ast.Expression | None:
        if not (self._ahead().text == "(" and self._ahead(2).text in ("select", "with", "values")):
            return None
        self._position += 2
        query = self.query()
        self._expect(")")
        return ast.Exists(query)

    def _extract(self) -> ast.Expression | None:
        if self._ahead().text != "(" or self._ahead(3).text != "from":
            return None
        self._position += 2
        unit = self._advance().written
        self._expect("from")
        operand = self.expression()
        self._expect(")")
        return ast.Call("extract", (ast.Literal("string", unit), operand))

    def _position_in(self) -> ast.Expression | None:
        """`position(a IN b)`; with a comma it is a plain function."""
        place = self._place()
        self._advance()
        if self.accept("("):
            needle = self._comparison()
            if self.accept("in"):
                haystack = self._comparison()
                self._expect(")")
                return ast.Call("locate", (needle, haystack))
        self._return_to(place)
        return None

    def _substring_from(self) -> ast.Expression | None:
        place = self._place()
        self._advance()
        if self.accept("("):
            arguments = [self.expression()]
            if self.accept("from"):
                arguments.append(self.expression())
                if self.accept("for"):
                    arguments.append(self.expression())
                self._expect(")")
                return ast.Call("substring", tuple(arguments))
        self._return_to(place)
        return None

    def _trim(self) -> ast.Expression | None:
        """`trim([BOTH | LEADING | TRAILING] [characters] FROM text)`."""
        place = self._place()
        self._advance()
        if self.accept("("):
            side = self._advance().text if self.token.text in ("both", "leading", "trailing") else ""
            characters = None if self._at("from") else self.expression()
            if self.accept("from"):
                operand = self.expression()
                self._expect(")")
                name = {"leading": "ltrim", "trailing": "rtrim", "both": "btrim"}.get(side, "trim")
                return ast.Call(f"{name} from", (operand, *([characters] if characters else [])))
        self._return_to(place)
        return None

    def _overlay(self) -> ast.Expression | None:
        place = self._place()
        self._advance()
        if self.accept("("):
            arguments = [self.expression()]
            if self.accept("placing"):
                arguments.append(self.expression())
                self._expect("from")
                arguments.append(self.expression())
                if self.accept("for"):
                    arguments.append(self.expression())
                self._expect(")")
                return ast.Call("overlay", tuple(arguments))
        self._return_to(place)
        return None

    def _interval(self) -> ast.Expression | None:
        ahead = self._ahead()
        if ahead.kind not in ("number", "string") and ahead.text not in ("-", "+", "("):
            return None
        self._advance()
        parts: list[tuple[ast.Expression, str]] = []
        while not parts or self._at_interval_part():
            value = self._unary()
            unit = self.token.text
            if unit not in _UNITS:
                raise NotParsedError("an interval without a unit")
            self._advance()
            if not parts and self.accept("to"):
                return ast.IntervalLiteral(((value, f"{unit} to {self._advance().text}"),))
            parts.append((value, unit.removesuffix("s")))
        return ast.IntervalLiteral(tuple(parts))

    def _at_interval_part(self) -> bool:
        """Whether a number with a unit follows; a sign may also be that of a sum with the interval."""
        place = 1 if self.token.text in ("-", "+") else 0
        number = self._ahead() if place else self.token
        return number.kind in ("number", "string") and self._ahead(place + 1).text in _UNITS

    def _typed_literal(self) -> ast.Expression | None:
        """`DATE '2026-01-31'` and its like."""
        if self._ahead().kind != "string":
            return None
        kind = {"timestamp_ltz": "timestamp", "x": "binary"}.get(self.token.text, self.token.text)
        self._advance()
        text = self._advance().text
        return ast.Literal(kind, bytes.fromhex(text.zfill(len(text) + len(text) % 2)) if kind == "binary" else text)

    def _constant(self) -> ast.Expression | None:
        if self._ahead().text in (".", "(") and self._ahead().kind == "sign":
            return None
        text = self._advance().text
        return ast.Literal("void", None) if text == "null" else ast.Literal("boolean", text)

    def _with_unit(self) -> ast.Expression | None:
        """`dateadd(DAY, 1, d)`: the unit is a keyword, not a column."""
        if self._ahead().text == "(" and self._ahead(2).text in _UNITS and self._ahead(3).text == ",":
            call = self._call()
            assert isinstance(call, ast.Call)
            unit = call.arguments[0]
            assert isinstance(unit, ast.Name)
            self.functions[self.functions.index(call.name)] = f"{call.name} unit"
            return ast.Call(f"{call.name} unit", (ast.Literal("string", unit.parts[0]), *call.arguments[1:]))
        return None

    def _plain_word(self) -> ast.Expression | None:
        raise NotParsedError(self.token.text.upper())

    # ---- what clauses and calls share ----------------------------------------------------------------------------

    def _select_item(self) -> ast.Expression:
        item = self.expression()
        if self.accept("as"):
            if self._at("("):
                raise NotParsedError("several names for one expression")
            return ast.Alias(item, self._identifier())
        if self.token.kind == "quoted" or (self.token.kind == "word" and self.token.text not in NOT_ALIAS):
            return ast.Alias(item, self._identifier())
        return item

    def _sort_key(self) -> ast.SortKey:
        expression = self.expression()
        descending = self.accept("desc")
        if not descending:
            self.accept("asc")
        nulls_first = not descending
        if self.accept("nulls"):
            nulls_first = self._advance().text == "first"
        return ast.SortKey(expression, descending, nulls_first)

    def _opens_query(self) -> bool:
        """Whether what follows an opening parenthesis is a query and not a joined table."""
        ahead = 0
        while self._ahead(ahead).text == "(":
            ahead += 1
        return self._ahead(ahead).kind == "word" and self._ahead(ahead).text in ("select", "with", "values")

    def _is_name(self, token: Token) -> bool:
        return token.kind == "word" and token.text not in NOT_ALIAS


def _number(token: Token, sign: str = "") -> ast.Literal:
    text, suffix = sign + token.text, token.written
    if suffix in _INT_SUFFIXES and text.lstrip("-").isdigit():
        return ast.Literal(_INT_SUFFIXES[suffix], text)
    if suffix in ("D", "F"):
        return ast.Literal("double" if suffix == "D" else "float", text)
    if suffix == "BD" or ("." in text and "e" not in text.lower()):
        return ast.Literal("decimal", text)
    if suffix:
        raise NotParsedError(f"the number {text}{suffix}")
    if "e" in text.lower():
        return ast.Literal("double", text)
    size = abs(int(text)) - (sign == "-")
    return ast.Literal(next((kind for kind, largest in _LARGEST.items() if size <= largest), "decimal"), text)


_SPECIAL: dict[str, Callable[[ExpressionParser], ast.Expression | None]] = {
    "case": ExpressionParser._case,
    "cast": ExpressionParser._cast,
    "try_cast": ExpressionParser._cast,
    "exists": ExpressionParser._exists,
    "extract": ExpressionParser._extract,
    "position": ExpressionParser._position_in,
    "substring": ExpressionParser._substring_from,
    "substr": ExpressionParser._substring_from,
    "trim": ExpressionParser._trim,
    "overlay": ExpressionParser._overlay,
    "interval": ExpressionParser._interval,
    "date": ExpressionParser._typed_literal,
    "timestamp": ExpressionParser._typed_literal,
    "timestamp_ntz": ExpressionParser._typed_literal,
    "timestamp_ltz": ExpressionParser._typed_literal,
    "x": ExpressionParser._typed_literal,
    "null": ExpressionParser._constant,
    "true": ExpressionParser._constant,
    "false": ExpressionParser._constant,
    "dateadd": ExpressionParser._with_unit,
    "date_add": ExpressionParser._with_unit,
    "datediff": ExpressionParser._with_unit,
    "date_diff": ExpressionParser._with_unit,
    "timestampadd": ExpressionParser._with_unit,
    "timestampdiff": ExpressionParser._with_unit,
    "select": ExpressionParser._plain_word,
    "from": ExpressionParser._plain_word,
    "where": ExpressionParser._plain_word,
}
