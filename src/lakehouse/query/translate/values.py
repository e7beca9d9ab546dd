"""A translated expression: its SQL for DuckDB, its type and its name in Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.core.quoting import text as quoted_text
from lakehouse.engines.duckdb.errors import NEEDS_SPARK
from lakehouse.query.translate.types import NotTranslatedError, Type


@dataclass(frozen=True)
class Value:
    """A translated expression."""

    sql: str
    type: Type
    name: str
    """The name of its column in Spark, if the user gives none."""
    constant: Any = None
    """The value of a literal number (int or Decimal) or string."""
    is_literal: bool = False
    is_stored_otherwise: bool = False
    """DuckDB holds it in another type with the same values, such as HUGEINT for a sum of integers."""

    def settled(self) -> Value:
        """The same value in the type that stands for Spark's."""
        if not self.is_stored_otherwise:
            return self
        return replace(self, sql=f"CAST({self.sql} AS {self.type.duckdb})", is_stored_otherwise=False)

    def named(self, name: str) -> Value:
        return replace(self, name=name)


def needs_spark(sql_type: str = "") -> str:
    """An expression that ends the statement on DuckDB, so that Spark runs it."""
    error = f"error('{NEEDS_SPARK}')"
    return f"CAST({error} AS {sql_type})" if sql_type else error


def literal_text(value: Value, what: str) -> str:
    """The text of an argument that must be a string literal for the translation."""
    if not value.is_literal or not isinstance(value.constant, str):
        raise NotTranslatedError(f"{what} that is no literal")
    return value.constant


def literal_int(value: Value, what: str) -> int:
    if not value.is_literal or not isinstance(value.constant, int) or isinstance(value.constant, bool):
        raise NotTranslatedError(f"{what} that is no literal")
    return value.constant


def string(text: str) -> str:
    """A string literal of DuckDB."""
    if "\0" in text:
        raise NotTranslatedError("a string with the character NUL")
    return quoted_text(text)


def let(name: str, value: str, result: str) -> str:
    """An expression with a name for a part that it uses several times."""
    return f"list_transform([{value}], lambda {name}: {result})[1]"
