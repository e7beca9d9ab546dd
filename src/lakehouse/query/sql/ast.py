"""The syntax tree of a query in Spark's SQL, as far as the translation to DuckDB covers it."""

from __future__ import annotations

from typing import TypeAlias

from lakehouse.core.dataclass import dataclass


@dataclass(frozen=True)
class Name:
    """A column, possibly qualified: `a`, `t.a`, `ns.t.a`, `t.a.field`."""

    parts: tuple[str, ...]
    start: int = 0
    """Where it is in the text, for error messages."""


@dataclass(frozen=True)
class Star:
    qualifier: tuple[str, ...] = ()


@dataclass(frozen=True)
class Literal:
    """A constant. `value` is the text of a number, string, date or timestamp as it was written, without quotes."""

    type: str
    value: str | bytes | None


@dataclass(frozen=True)
class Parameter:
    """`:name`, whose value comes with the request."""

    name: str


@dataclass(frozen=True)
class IntervalLiteral:
    """`INTERVAL 1 DAY`: pairs of a value and a unit; of `INTERVAL '1-2' YEAR TO MONTH` the unit is `year to month`."""

    parts: tuple[tuple[Expression, str], ...]


@dataclass(frozen=True)
class SortKey:
    expression: Expression
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True)
class Frame:
    """`ROWS` or `RANGE` between two bounds: `unbounded preceding`, `current row`, or an offset."""

    unit: str
    start: tuple[str, Expression | None]
    end: tuple[str, Expression | None]


@dataclass(frozen=True)
class Window:
    base: str = ""
    """The named window that it refers to."""
    partition_by: tuple[Expression, ...] = ()
    order_by: tuple[SortKey, ...] = ()
    frame: Frame | None = None


@dataclass(frozen=True)
class Call:
    """A call of a function; its name is in lower case."""

    name: str
    arguments: tuple[Expression, ...]
    distinct: bool = False
    where: Expression | None = None
    within: tuple[SortKey, ...] = ()
    ignore_nulls: bool = False
    over: Window | None = None
    start: int = 0


@dataclass(frozen=True)
class Unary:
    operator: str
    operand: Expression


@dataclass(frozen=True)
class Binary:
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Is:
    """`IS [NOT] NULL`, `TRUE`, `FALSE` or `UNKNOWN`."""

    operand: Expression
    what: str
    negated: bool


@dataclass(frozen=True)
class Between:
    operand: Expression
    low: Expression
    high: Expression
    negated: bool


@dataclass(frozen=True)
class In:
    operand: Expression
    options: tuple[Expression, ...] | Query
    negated: bool


@dataclass(frozen=True)
class Like:
    """`LIKE`, `ILIKE` or `RLIKE`."""

    operator: str
    operand: Expression
    pattern: Expression
    escape: str
    negated: bool


@dataclass(frozen=True)
class Case:
    operand: Expression | None
    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None


@dataclass(frozen=True)
class Cast:
    operand: Expression
    type: str
    is_try: bool


@dataclass(frozen=True)
class Exists:
    query: Query


@dataclass(frozen=True)
class Subquery:
    query: Query


@dataclass(frozen=True)
class Lambda:
    parameters: tuple[str, ...]
    body: Expression


@dataclass(frozen=True)
class Subscript:
    operand: Expression
    index: Expression


@dataclass(frozen=True)
class Field:
    operand: Expression
    name: str


@dataclass(frozen=True)
class Alias:
    operand: Expression
    name: str


Expression: TypeAlias = (
    Name
    | Star
    | Literal
    | Parameter
    | IntervalLiteral
    | Call
    | Unary
    | Binary
    | Is
    | Between
    | In
    | Like
    | Case
    | Cast
    | Exists
    | Subquery
    | Lambda
    | Subscript
    | Field
    | Alias
)


@dataclass(frozen=True)
class Table:
    parts: tuple[str, ...]
    start: int
    end: int
    """After the name and its AS OF clause."""
    as_of: str = ""
    alias: str = ""
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Derived:
    """A query in FROM."""

    query: Query
    alias: str = ""
    columns: tuple[str, ...] = ()
    lateral: bool = False


@dataclass(frozen=True)
class TableFunction:
    """`range(…)` or `explode(…)` in FROM."""

    call: Call
    alias: str = ""
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Join:
    kind: str
    """`inner`, `cross`, `left`, `right`, `full`, `semi` or `anti`."""
    left: Relation
    right: Relation
    on: Expression | None = None
    using: tuple[str, ...] = ()
    natural: bool = False


@dataclass(frozen=True)
class LateralView:
    source: Relation
    call: Call
    outer: bool
    alias: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Pivot:
    """`PIVOT (aggregates FOR columns IN (values))`."""

    source: Relation
    aggregates: tuple[Expression, ...]
    columns: tuple[Expression, ...]
    values: tuple[Expression, ...]
    alias: str = ""


@dataclass(frozen=True)
class Values:
    """An inline table."""

    rows: tuple[tuple[Expression, ...], ...]
    alias: str = ""
    columns: tuple[str, ...] = ()


Relation: TypeAlias = Table | Derived | TableFunction | Join | LateralView | Pivot | Values


@dataclass(frozen=True)
class GroupingSets:
    """An element of GROUP BY that stands for several sets of expressions: ROLLUP, CUBE or GROUPING SETS."""

    sets: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True)
class Grouping:
    """GROUP BY: its expressions, and the grouping sets as positions in them (default: one with all)."""

    expressions: tuple[Expression, ...]
    sets: tuple[tuple[int, ...], ...] | None = None
    all: bool = False


@dataclass(frozen=True)
class Select:
    items: tuple[Expression, ...]
    distinct: bool = False
    source: Relation | None = None
    where: Expression | None = None
    group: Grouping | None = None
    having: Expression | None = None
    windows: tuple[tuple[str, Window], ...] = ()


@dataclass(frozen=True)
class SetOperation:
    operator: str
    """`union`, `intersect` or `except`."""
    all: bool
    left: Body
    right: Body


@dataclass(frozen=True)
class Query:
    body: Body
    ctes: tuple[tuple[str, tuple[str, ...], Query], ...] = ()
    order_by: tuple[SortKey, ...] = ()
    limit: Expression | None = None
    offset: Expression | None = None


Body: TypeAlias = Select | SetOperation | Values | Query


@dataclass(frozen=True)
class ParsedQuery:
    """A parsed statement, and the tables and functions that it names, in the order of the text.

    Names of common table expressions are no tables, except in their own definition.
    """

    text: str
    """Without comments."""
    query: Query
    tables: tuple[Table, ...] = ()
    functions: tuple[str, ...] = ()
    table_functions: tuple[str, ...] = ()
