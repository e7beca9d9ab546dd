"""Parse expressions in Spark's SQL: operators by their precedence, calls, casts, literals, windows."""

from __future__ import annotations

from collections.abc import Callable, Collection

from lakehouse.query.sql import ast
from lakehouse.query.sql.lexer import NotParsedError, Token, TokenReader

#: Words that end an expression, so they are no alias unless AS or quotes say so.
_NOT_ALIAS = frozenset(
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


class ExpressionParser:
    """Parses the expressions of a query."""

    def __init__(self, tokens: TokenReader, query: Callable[[], ast.Query]) -> None:
        """
        Args:
            query: reads a query within an expression from the same tokens.
        """
        self.tokens, self._query = tokens, query

    def expression(self) -> ast.Expression:
        return self.tokens.deeper(self._or)

    def _or(self) -> ast.Expression:
        left = self._and()
        while self.tokens.accept("or"):
            left = ast.Binary("or", left, self._and())
        return left

    def _and(self) -> ast.Expression:
        left = self._not()
        while self.tokens.accept("and"):
            left = ast.Binary("and", left, self._not())
        return left

    def _not(self) -> ast.Expression:
        if self.tokens.accept("not") or self.tokens.accept("!"):
            return ast.Unary("not", self.tokens.deeper(self._not))
        return self._predicate(self._comparison())

    def _predicate(self, operand: ast.Expression) -> ast.Expression:
        if self.tokens.accept("is"):
            return self._is(operand)
        negated = self.tokens.at("not") and self.tokens.ahead().text in (
            "between",
            "in",
            "like",
            "ilike",
            "rlike",
            "regexp",
        )
        if negated:
            self.tokens.advance()
        if self.tokens.accept("between"):
            low = self._comparison()
            self.tokens.expect("and")
            return ast.Between(operand, low, self._comparison(), negated)
        if self.tokens.accept("in"):
            return self._in(operand, negated)
        for operator in ("like", "ilike", "rlike", "regexp"):
            if self.tokens.accept(operator):
                return self._like("rlike" if operator == "regexp" else operator, operand, negated)
        return operand

    def _is(self, operand: ast.Expression) -> ast.Expression:
        negated = self.tokens.accept("not")
        if self.tokens.accept("distinct", "from"):
            same = ast.Binary("<=>", operand, self._comparison())
            return same if negated else ast.Unary("not", same)
        what = self.tokens.advance().text
        if what not in ("null", "true", "false", "unknown"):
            raise NotParsedError(f"IS {what.upper()}")
        return ast.Is(operand, what, negated)

    def _in(self, operand: ast.Expression, negated: bool) -> ast.Expression:
        if self.tokens.at("(") and self.tokens.at_query(1):
            self.tokens.expect("(")
            query = self._query()
            self.tokens.expect(")")
            return ast.In(operand, query, negated)
        return ast.In(operand, self.tokens.in_parentheses(self.expression), negated)

    def _like(self, operator: str, operand: ast.Expression, negated: bool) -> ast.Expression:
        if self.tokens.next.text in ("any", "all", "some") and self.tokens.ahead().text == "(":
            raise NotParsedError(f"{operator.upper()} {self.tokens.next.text.upper()}")
        pattern, escape = self._comparison(), "\\"
        if self.tokens.accept("escape"):
            escape = self.tokens.advance().text
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
        while self.tokens.next.kind in ("sign", "word") and self.tokens.next.text in operators:
            operator = self.tokens.advance().text
            left = ast.Binary(operator, left, operand())
        return left

    def _unary(self) -> ast.Expression:
        if self.tokens.at("-") and self.tokens.ahead().kind == "number":
            self.tokens.advance()
            return self._suffixes(_number(self.tokens.advance(), "-"))
        for sign in ("-", "+", "~"):
            if self.tokens.accept(sign):
                return ast.Unary(sign, self.tokens.deeper(self._unary))
        return self.primary_with_suffixes()

    def primary_with_suffixes(self) -> ast.Expression:
        return self._suffixes(self._primary())

    def _suffixes(self, operand: ast.Expression) -> ast.Expression:
        while True:
            if self.tokens.accept("["):
                operand = ast.Subscript(operand, self.expression())
                self.tokens.expect("]")
            elif self.tokens.at(".") and not isinstance(operand, ast.Name):
                self.tokens.advance()
                operand = ast.Field(operand, self.tokens.identifier())
            elif self.tokens.accept("::"):
                operand = ast.Cast(operand, self._type(), is_try=False)
            elif self.tokens.at(":"):
                raise NotParsedError("a path behind a colon")
            else:
                return operand

    def _primary(self) -> ast.Expression:  # noqa: C901 - one branch for each kind of token
        token = self.tokens.next
        if token.kind == "number":
            return _number(self.tokens.advance())
        if token.kind == "string":
            return self._string()
        if self.tokens.accept("("):
            return self._parenthesized()
        if self.tokens.accept("*"):
            return ast.Star()
        if self.tokens.accept(":"):
            return ast.Parameter(self.tokens.identifier())
        if token.kind == "quoted":
            return self._name()
        if token.kind != "word":
            raise NotParsedError(f"unexpected {token.text!r}")
        special = _SPECIAL.get(token.text)
        parsed = special(self) if special else None
        if parsed is not None:
            return parsed
        if self.tokens.ahead().text == "(" and self.tokens.ahead().kind == "sign":
            return self._call()
        if self.tokens.ahead().text == "->" and self.tokens.ahead().kind == "sign":
            return self._lambda((self.tokens.identifier(),))
        return self._name()

    def _string(self) -> ast.Expression:
        text = ""
        while self.tokens.next.kind == "string":
            text += self.tokens.advance().text
        return ast.Literal("string", text)

    def _parenthesized(self) -> ast.Expression:
        if self.tokens.opens_query() and self._query_ends():
            query = self._query()
            self.tokens.expect(")")
            return ast.Subquery(query)
        items = self.tokens.listed(self.select_item)  # a name makes it a struct: `(a AS x, b)`
        self.tokens.expect(")")
        if self.tokens.at("->"):
            names = [item.parts[0] for item in items if isinstance(item, ast.Name) and len(item.parts) == 1]
            if len(names) != len(items):
                raise NotParsedError("parameters of a lambda function")
            return self._lambda(tuple(names))
        return items[0] if len(items) == 1 else ast.Call("(row)", items)

    def _query_ends(self) -> bool:
        """`((select 1) + 1)` starts as a query does, and is none."""
        if self.tokens.next.text != "(":
            return True
        depth, ahead = 0, 0
        while True:
            token = self.tokens.ahead(ahead)
            depth += (token.text == "(" and token.kind == "sign") - (token.text == ")" and token.kind == "sign")
            if depth == 0 or token.kind == "end":
                return self.tokens.ahead(ahead + 1).text in (
                    ")",
                    "union",
                    "intersect",
                    "except",
                    "minus",
                    "order",
                    "limit",
                )
            ahead += 1

    def _lambda(self, parameters: tuple[str, ...]) -> ast.Expression:
        self.tokens.expect("->")
        return ast.Lambda(parameters, self.expression())

    def _name(self) -> ast.Expression:
        start, parts = self.tokens.next.start, [self.tokens.identifier()]
        while self.tokens.at("."):
            self.tokens.advance()
            if self.tokens.accept("*"):
                return ast.Star(tuple(parts))
            parts.append(self.tokens.identifier())
        if self.tokens.at("(") and len(parts) > 1:
            raise NotParsedError("a function with a qualified name")
        return ast.Name(tuple(parts), start)

    def _call(self) -> ast.Expression:
        start, name = self.tokens.next.start, self.tokens.advance().text
        self.tokens.functions.append(name)
        self.tokens.expect("(")
        distinct = self.tokens.accept("distinct")
        if not distinct and self.tokens.at("all") and self.tokens.ahead().text not in (",", ")", "."):
            self.tokens.advance()
        arguments: tuple[ast.Expression, ...] = (
            () if self.tokens.at(")") else self.tokens.listed(lambda: self.argument(name))
        )
        ignore_nulls = self._nulls()
        self.tokens.expect(")")
        within: tuple[ast.SortKey, ...] = ()
        if self.tokens.accept("within", "group"):
            self.tokens.expect("(")
            self.tokens.expect("order", "by")
            within = self.tokens.listed(self.sort_key)
            self.tokens.expect(")")
        where = None
        if self.tokens.at("filter", "(", "where"):
            self.tokens.skip(3)
            where = self.expression()
            self.tokens.expect(")")
        ignore_nulls = self._nulls() or ignore_nulls
        over = None
        if self.tokens.accept("over"):
            over = self.window_in_parentheses() if self.tokens.at("(") else ast.Window(self.tokens.identifier().lower())
        return ast.Call(name, arguments, distinct, where, within, ignore_nulls, over, start)

    def argument(self, function: str) -> ast.Expression:
        """An argument; of STRUCT it may have a name, and that of EXPLODE is called `collection`."""
        argument = self.expression()
        if self.tokens.accept("=>"):
            named = argument.parts if isinstance(argument, ast.Name) else ()
            if named != ("collection",) or function not in ("explode", "explode_outer"):
                raise NotParsedError("a named argument")
            return self.expression()
        return ast.Alias(argument, self.tokens.identifier()) if self.tokens.accept("as") else argument

    def _nulls(self) -> bool:
        if self.tokens.accept("ignore", "nulls"):
            return True
        self.tokens.accept("respect", "nulls")
        return False

    def window_in_parentheses(self) -> ast.Window:
        self.tokens.expect("(")
        base = ""
        if is_name(self.tokens.next) and self.tokens.next.text not in (
            "partition",
            "rows",
            "range",
            "distribute",
            "cluster",
        ):
            base = self.tokens.identifier().lower()
        partition = self.tokens.listed(self.expression) if self.tokens.accept("partition", "by") else ()
        order = self.tokens.listed(self.sort_key) if self.tokens.accept("order", "by") else ()
        frame = None
        if self.tokens.at("rows") or self.tokens.at("range"):
            frame = self._frame(self.tokens.advance().text)
        self.tokens.expect(")")
        return ast.Window(base, partition, order, frame)

    def _frame(self, unit: str) -> ast.Frame:
        if self.tokens.accept("between"):
            start = self._bound()
            self.tokens.expect("and")
            return ast.Frame(unit, start, self._bound())
        return ast.Frame(unit, self._bound(), ("current row", None))

    def _bound(self) -> tuple[str, ast.Expression | None]:
        if self.tokens.accept("current", "row"):
            return "current row", None
        if self.tokens.accept("unbounded"):
            return f"unbounded {self.tokens.advance().text}", None
        offset = self.expression()
        return self.tokens.advance().text, offset

    # ---- words with a syntax of their own --------------------------------------------------------------------------

    def _case(self) -> ast.Expression:
        self.tokens.advance()
        operand = None if self.tokens.at("when") else self.expression()
        branches = []
        while self.tokens.accept("when"):
            condition = self.expression()
            self.tokens.expect("then")
            branches.append((condition, self.expression()))
        otherwise = self.expression() if self.tokens.accept("else") else None
        self.tokens.expect("end")
        return ast.Case(operand, tuple(branches), otherwise)

    def _cast(self) -> ast.Expression | None:
        if self.tokens.ahead().text != "(":
            return None
        is_try = self.tokens.advance().text == "try_cast"
        self.tokens.expect("(")
        operand = self.expression()
        self.tokens.expect("as")
        to = self._type()
        self.tokens.expect(")")
        return ast.Cast(operand, to, is_try)

    def _type(self) -> str:
        """A type in Spark's short spelling, such as `decimal(10,2)` or `array<int>`."""
        name = self.tokens.identifier().lower()
        if name in ("array", "map", "struct") and self.tokens.accept("<"):
            return f"{name}<{self._nested_types(name)}>"
        if self.tokens.at("("):
            return f"{name}({','.join(self.tokens.in_parentheses(lambda: self.tokens.advance().text))})"
        return name

    def _nested_types(self, name: str) -> str:
        parts = []
        while not self.tokens.accept(">"):
            if name == "struct":
                field = self.tokens.identifier()
                self.tokens.accept(":")
                parts.append(f"{field}:{self._type()}")
            else:
                parts.append(self._type())
            self.tokens.accept(",")
        return ",".join(parts)

    def _exists(self) -> ast.Expression | None:
        if not (self.tokens.ahead().text == "(" and self.tokens.at_query(2)):
            return None
        self.tokens.skip(2)
        query = self._query()
        self.tokens.expect(")")
        return ast.Exists(query)

    def _extract(self) -> ast.Expression | None:
        if self.tokens.ahead().text != "(" or self.tokens.ahead(3).text != "from":
            return None
        self.tokens.skip(2)
        unit = self.tokens.advance().written
        self.tokens.expect("from")
        operand = self.expression()
        self.tokens.expect(")")
        return ast.Call("extract", (ast.Literal("string", unit), operand))

    def _position_in(self) -> ast.Expression | None:
        """`position(a IN b)`; with a comma it is a plain function."""
        place = self.tokens.place()
        self.tokens.advance()
        if self.tokens.accept("("):
            needle = self._comparison()
            if self.tokens.accept("in"):
                haystack = self._comparison()
                self.tokens.expect(")")
                return ast.Call("locate", (needle, haystack))
        self.tokens.return_to(place)
        return None

    def _substring_from(self) -> ast.Expression | None:
        place = self.tokens.place()
        self.tokens.advance()
        if self.tokens.accept("("):
            arguments = [self.expression()]
            if self.tokens.accept("from"):
                arguments.append(self.expression())
                if self.tokens.accept("for"):
                    arguments.append(self.expression())
                self.tokens.expect(")")
                return ast.Call("substring", tuple(arguments))
        self.tokens.return_to(place)
        return None

    def _trim(self) -> ast.Expression | None:
        """`trim([BOTH | LEADING | TRAILING] [characters] FROM text)`."""
        place = self.tokens.place()
        self.tokens.advance()
        if self.tokens.accept("("):
            side = self.tokens.advance().text if self.tokens.next.text in ("both", "leading", "trailing") else ""
            characters = None if self.tokens.at("from") else self.expression()
            if self.tokens.accept("from"):
                operand = self.expression()
                self.tokens.expect(")")
                name = {"leading": "ltrim", "trailing": "rtrim", "both": "btrim"}.get(side, "trim")
                return ast.Call(f"{name} from", (operand, *([characters] if characters else [])))
        self.tokens.return_to(place)
        return None

    def _overlay(self) -> ast.Expression | None:
        place = self.tokens.place()
        self.tokens.advance()
        if self.tokens.accept("("):
            arguments = [self.expression()]
            if self.tokens.accept("placing"):
                arguments.append(self.expression())
                self.tokens.expect("from")
                arguments.append(self.expression())
                if self.tokens.accept("for"):
                    arguments.append(self.expression())
                self.tokens.expect(")")
                return ast.Call("overlay", tuple(arguments))
        self.tokens.return_to(place)
        return None

    def _interval(self) -> ast.Expression | None:
        ahead = self.tokens.ahead()
        if ahead.kind not in ("number", "string") and ahead.text not in ("-", "+", "("):
            return None
        self.tokens.advance()
        parts: list[tuple[ast.Expression, str]] = []
        while not parts or self._at_interval_part():
            value = self._unary()
            unit = self.tokens.next.text
            if unit not in _UNITS:
                raise NotParsedError("an interval without a unit")
            self.tokens.advance()
            if not parts and self.tokens.accept("to"):
                return ast.IntervalLiteral(((value, f"{unit} to {self.tokens.advance().text}"),))
            parts.append((value, unit.removesuffix("s")))
        return ast.IntervalLiteral(tuple(parts))

    def _at_interval_part(self) -> bool:
        """Whether a number with a unit follows; a sign may also be that of a sum with the interval."""
        place = 1 if self.tokens.next.text in ("-", "+") else 0
        number = self.tokens.ahead() if place else self.tokens.next
        return number.kind in ("number", "string") and self.tokens.ahead(place + 1).text in _UNITS

    def _typed_literal(self) -> ast.Expression | None:
        """`DATE '2026-01-31'` and its like."""
        if self.tokens.ahead().kind != "string":
            return None
        kind = {"timestamp_ltz": "timestamp", "x": "binary"}.get(self.tokens.next.text, self.tokens.next.text)
        self.tokens.advance()
        text = self.tokens.advance().text
        return ast.Literal(kind, bytes.fromhex(text.zfill(len(text) + len(text) % 2)) if kind == "binary" else text)

    def _constant(self) -> ast.Expression | None:
        if self.tokens.ahead().text in (".", "(") and self.tokens.ahead().kind == "sign":
            return None
        text = self.tokens.advance().text
        return ast.Literal("void", None) if text == "null" else ast.Literal("boolean", text)

    def _with_unit(self) -> ast.Expression | None:
        """`dateadd(DAY, 1, d)`: the unit is a keyword, not a column."""
        if self.tokens.ahead().text == "(" and self.tokens.ahead(2).text in _UNITS and self.tokens.ahead(3).text == ",":
            call = self._call()
            assert isinstance(call, ast.Call)
            unit = call.arguments[0]
            assert isinstance(unit, ast.Name)
            self.tokens.functions[self.tokens.functions.index(call.name)] = f"{call.name} unit"
            return ast.Call(f"{call.name} unit", (ast.Literal("string", unit.parts[0]), *call.arguments[1:]))
        return None

    def _plain_word(self) -> ast.Expression | None:
        raise NotParsedError(self.tokens.next.text.upper())

    # ---- what clauses and calls share ----------------------------------------------------------------------------

    def select_item(self) -> ast.Expression:
        item = self.expression()
        if self.tokens.accept("as"):
            if self.tokens.at("("):
                raise NotParsedError("several names for one expression")
            return ast.Alias(item, self.tokens.identifier())
        if is_alias(self.tokens.next):
            return ast.Alias(item, self.tokens.identifier())
        return item

    def sort_key(self) -> ast.SortKey:
        expression = self.expression()
        descending = self.tokens.accept("desc")
        if not descending:
            self.tokens.accept("asc")
        nulls_first = not descending
        if self.tokens.accept("nulls"):
            nulls_first = self.tokens.advance().text == "first"
        return ast.SortKey(expression, descending, nulls_first)


def is_name(token: Token) -> bool:
    """Whether a word may be a name, and is not the next clause."""
    return token.kind == "word" and token.text not in _NOT_ALIAS


def is_alias(token: Token) -> bool:
    """Whether a token behind an expression or a table is the name of it, without AS."""
    return token.kind == "quoted" or is_name(token)


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
