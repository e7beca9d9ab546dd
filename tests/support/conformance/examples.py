"""The examples with which Spark documents its functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Functions whose examples have no determined answer, or that the lake refuses, by the reason.
LEFT_OUT = {
    "random": "rand randn random uuid shuffle",
    "the time, the session or the version": "now current_date curdate current_timestamp localtimestamp current_timezone current_user user session_user"
    " current_catalog current_database current_schema version unix_timestamp",
    "the files and partitions of the plan": "input_file_name input_file_block_start input_file_block_length monotonically_increasing_id spark_partition_id",
    "calls of Java, which the guard refuses": "java_method reflect try_reflect",
    "PySpark cannot read the type of its result": "make_interval",
}  # fmt: skip
_LEFT_OUT = {name for names in LEFT_OUT.values() for name in names.split()}

#: Aggregates of floating-point numbers, which the order of rows rounds differently.
_CLOSE = (
    "avg mean sum try_avg try_sum corr covar_pop covar_samp kurtosis skewness std stddev stddev_pop stddev_samp var_pop var_samp variance"
    " regr_avgx regr_avgy regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy percentile percentile_cont median"
).split()
#: Aggregates that collect rows in any order.
_SETS = "collect_list collect_set array_agg".split()


def function_names(spark: SparkSession) -> list[str]:
    """All built-in functions and operators of Spark."""
    return sorted({row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()})


def examples(spark: SparkSession, functions: list[str]) -> Iterator[tuple[str, str]]:
    """Each example with the name of its function, without those that have no determined answer."""
    seen = set()
    for name in functions:
        if name in _LEFT_OUT:
            continue
        lines = [row[0] for row in spark.sql(f"DESCRIBE FUNCTION EXTENDED `{name}`").collect()]
        for example in re.findall(r"^\s*> (SELECT .*?;)\s*$", "\n".join(lines), re.MULTILINE | re.DOTALL):
            text = example.strip().rstrip(";")
            if text not in seen and not _reads_clock(text):
                seen.add(text)
                yield name, text


def _reads_clock(text: str) -> bool:
    return any(
        re.search(rf"\b{name}\s*\(", text, re.IGNORECASE) for name in _LEFT_OUT - {"unix_timestamp", "user", "version"}
    )


def mode(name: str) -> str:
    """How answers of a function are compared: `close`, `sets` or, exactly, an empty string."""
    return "close" if name in _CLOSE else "sets" if name in _SETS else ""
