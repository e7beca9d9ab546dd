"""Checks of whole tables: unique keys, references, freshness, row counts that jump, layers that must agree."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Literal

from lakehouse.quality.model import Check, CheckContext, Finding

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CheckSeverity = Literal["warn", "block"]

#: So many of the rows that break something are shown.
_SHOWN = 10


def some_rows(broken: DataFrame, count: int) -> tuple[str, ...]:
    """Some of the rows that break something, as JSON; Spark is asked only if there are any."""
    from pyspark.sql import functions as F

    if not count:
        return ()
    texts = broken.limit(_SHOWN).select(F.to_json(F.struct(*(F.col(name) for name in broken.columns))))
    return tuple(row[0] for row in texts.collect())


def unique(*columns: str, severity: CheckSeverity = "block") -> Check:
    """No two rows have the same values there."""

    def look(at: CheckContext) -> Finding:
        from pyspark.sql import functions as F

        double = at.rows.groupBy(*columns).count().where(F.col("count") > 1)
        twice = double.count()
        return Finding(twice == 0, twice, f"{twice} keys more than once" if twice else "", some_rows(double, twice))

    return Check(f"unique_{'_'.join(columns)}", look, severity)


def reference(column: str, table: str, other: str = "", severity: CheckSeverity = "block") -> Check:
    """Every value, if there is one, is found in another table's column."""

    def look(at: CheckContext) -> Finding:
        from pyspark.sql import functions as F

        known = at.table(table).select(F.col(other or column).alias("_known"))
        asked = at.rows.where(F.col(column).isNotNull()).select(F.col(column).alias("_asked"))
        strays = asked.join(known, on=F.col("_asked") == F.col("_known"), how="left_anti")
        lost = strays.count()
        told = f"{lost} rows refer to nothing in {table}" if lost else ""
        return Finding(lost == 0, lost, told, some_rows(strays.withColumnRenamed("_asked", column), lost))

    return Check(f"{column}_refers_to_{table.replace('.', '_')}", look, severity)


def fresh(column: str, within: timedelta, severity: CheckSeverity = "warn") -> Check:
    """The newest moment of a column is not older than that."""

    def look(at: CheckContext) -> Finding:
        from pyspark.sql import functions as F

        newest = at.rows.select(F.unix_timestamp(F.max(column).cast("timestamp"))).first()
        if newest is None or newest[0] is None:
            return Finding(False, 0, "there is no newest row")
        age = timedelta(seconds=at.now.astimezone(UTC).timestamp() - newest[0])
        return Finding(age <= within, 0, f"the newest row is {age} old")

    return Check(f"{column}_fresh", look, severity)


def steady_row_count(drift: float = 0.5, severity: CheckSeverity = "warn") -> Check:
    """The table does not shrink or grow by more than a share of what it was."""

    def look(at: CheckContext) -> Finding:
        before = at.before.get("rows")
        if not before or at.total is None:
            return Finding(True)
        share = abs(at.total - before) / before
        return Finding(share <= drift, abs(at.total - before), f"{before} rows before, {at.total} now")

    return Check("row_count_steady", look, severity)


def reconciles(
    with_table: str,
    mine: Callable[[DataFrame], DataFrame],
    theirs: Callable[[DataFrame], DataFrame],
    severity: CheckSeverity = "block",
) -> Check:
    """One number of this table equals one number of another, such as the sums of two layers."""

    def look(at: CheckContext) -> Finding:
        here, there = mine(at.rows).first(), theirs(at.table(with_table)).first()
        one, other = (here[0] if here else None), (there[0] if there else None)
        return Finding(one == other, int(one != other), f"{one} here, {other} in {with_table}")

    return Check(f"reconciles_with_{with_table.replace('.', '_')}", look, severity)
