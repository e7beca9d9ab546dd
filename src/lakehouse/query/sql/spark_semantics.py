"""Rewrite expressions that DuckDB evaluates differently from Spark although sqlglot translates them.

tests/query/test_dialect.py lists the remaining differences.
"""

from __future__ import annotations

from typing import Any

_LARGEST_BIGINT = 2**63 - 1


def with_spark_semantics(tree: Any) -> Any:
    """Change the tree in place; returns it, or a new root."""
    from sqlglot import exp

    # Inner nodes first, so that an outer rewrite wraps the changed inner one.
    for node in reversed(list(tree.find_all(exp.Substring, exp.TsOrDsAdd, exp.AddMonths, exp.Literal, exp.Values))):
        if isinstance(node, exp.Substring):
            _from_one(node)
        elif isinstance(node, exp.Values):
            _name_columns(node)
        elif isinstance(node, exp.Literal):
            _widen(node)
        else:
            _to_date(node)
    return exp.select("*").from_(tree) if isinstance(tree, exp.Values) else tree


def _from_one(substring: Any) -> None:
    """Spark treats position 0 as 1; DuckDB as the position before the first character."""
    from sqlglot import exp

    start = substring.args.get("start")
    if isinstance(start, exp.Literal):
        substring.set("start", exp.Literal.number(1) if start.this == "0" else start)
    elif start is not None:
        is_zero = exp.cast(exp.EQ(this=exp.paren(start.copy()), expression=exp.Literal.number(0)), "int")
        substring.set("start", exp.Add(this=exp.paren(start.copy()), expression=is_zero))


def _name_columns(values: Any) -> None:
    """The columns of VALUES are named from col1 in Spark and from col0 in DuckDB."""
    from sqlglot import exp

    alias = values.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        return
    first = values.expressions[0]
    width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
    columns = [exp.to_identifier(f"col{number}") for number in range(1, width + 1)]
    values.set("alias", exp.TableAlias(this=alias.this if alias else exp.to_identifier("values"), columns=columns))


def _widen(literal: Any) -> None:
    """An integer literal beyond BIGINT is a decimal in Spark."""
    from sqlglot import exp

    if literal.is_int and int(literal.this) > _LARGEST_BIGINT:
        literal.replace(exp.Cast(this=literal.copy(), to=exp.DataType.build(f"decimal({len(literal.this)}, 0)")))


def _to_date(sum_of_days: Any) -> None:
    """A date plus days or months is a date in Spark and a timestamp in DuckDB."""
    from sqlglot import exp

    as_date = exp.DataType.build("date")
    if isinstance(sum_of_days, exp.AddMonths):
        sum_of_days.set("this", exp.Cast(this=sum_of_days.this.copy(), to=as_date.copy()))
    sum_of_days.replace(exp.Cast(this=sum_of_days.copy(), to=as_date))
