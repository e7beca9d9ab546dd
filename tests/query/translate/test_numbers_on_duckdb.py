"""Numbers where DuckDB's optimizer or its casts would give another answer than Spark, whose integers wrap around."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.conformance.values import make_edge_lake

from lakehouse.config.load import load_settings
from lakehouse.core.errors import NeedsSparkError
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    home: Path = make_edge_lake(tmp_path_factory.mktemp("edge") / "lake")
    with assemble(load_settings({"home": home})) as lake:
        yield lake


def test_a_shorter_integer_has_the_last_bits_also_where_it_is_compared(edge: Lake) -> None:
    # 1, 2^53 + 1 and 1 - 2^63 have the same last 32 bits.
    assert edge.sql("select count(*) from edge.numbers where cast(bi as int) = 1", engine="duckdb").rows() == [(3,)]


def test_a_sum_that_overflows_wraps_around_also_where_it_is_compared(edge: Lake) -> None:
    sums = "select sum(x) as s from values (9223372036854775807L), (1L) as t(x) having sum(x) > 0"
    assert edge.sql(sums, engine="duckdb").rows() == []


@pytest.mark.parametrize("condition", ["i + 1 > 0", "i - 1 < 100", "i * 2 = 4"])
def test_an_overflow_in_a_comparison_with_a_constant_is_left_to_spark(edge: Lake, condition: str) -> None:
    with pytest.raises(NeedsSparkError):
        edge.sql(f"select i from edge.numbers where {condition}", engine="duckdb").rows()


def test_a_double_below_half_of_the_last_digit_is_a_decimal_of_zero(edge: Lake) -> None:
    tiny = "select cast(x as decimal(18,4)), round(x, 2) from values (5e-6D), (9e-300D) as t(x)"
    assert [[float(value) for value in row] for row in edge.sql(tiny, engine="duckdb").rows()] == [[0, 0], [0, 0]]
