"""`lake run squares`: a pipeline from a package of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse.pipelines import Pipeline, Table
from lakehouse.pipelines import functions as F
from lakehouse.quality import at_least

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_square(numbers: DataFrame) -> DataFrame:
    """Each number with its square."""
    n = F.col("n").cast("bigint")
    return numbers.select(n.alias("n"), (n * n).alias("square"))


squares = Pipeline(
    "squares",
    (Table("t.squares", with_square, inputs=("t.numbers",), key=("n",), rules=(at_least("square", 0),)),),
)
