"""Trino: its types in Spark's words, and what is said when its settings are wrong or it does not answer."""

from __future__ import annotations

import pytest

from lakehouse.core.errors import BadSettingError, EngineUnreachableError
from lakehouse.engines.trino import Trino, TrinoSettings, spark_type


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("integer", "int"),
        ("bigint", "bigint"),
        ("varchar(20)", "string"),
        ("decimal(12,2)", "decimal(12,2)"),
        ("timestamp(6)", "timestamp_ntz"),
        ("timestamp(6) with time zone", "timestamp"),
        ("array(varchar)", "array<string>"),
        ("map(varchar, array(decimal(9, 2)))", "map<string,array<decimal(9,2)>>"),
        ("row(a bigint, b row(c varchar(3), d date))", "struct<a:bigint,b:struct<c:string,d:date>>"),
    ],
)
def test_types_are_translated_to_sparks(kind: str, expected: str) -> None:
    assert spark_type(kind) == expected


def test_a_trino_that_is_not_there_is_said_with_the_next_step() -> None:
    with pytest.raises(EngineUnreachableError, match="does not answer at http://127.0.0.1:9") as raised:
        Trino(TrinoSettings("http://127.0.0.1:9")).run("select 1", "asked for")
    assert "lake up trino" in raised.value.hint


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(BadSettingError):
        Trino(TrinoSettings("127.0.0.1:8085")).run("select 1", "asked for")
