"""Checks of whole tables: unique keys, references, freshness, row counts that jump, layers that must agree."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from lakehouse.quality.model import Check, CheckContext, Finding, Outcome

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CheckSeverity = Literal["warn", "block"]

#: What `reconciles` compares: SQL aggregates, or a function from rows to a DataFrame with one value.
Figures: TypeAlias = "str | Sequence[str] | Callable[[DataFrame], DataFrame]"

#: The number of rows that an outcome shows of those that break a check.
SAMPLE_ROWS = 10
#: The number of values that a detail names.
SHOWN_VALUES = 5
_MAX_SHOWN = 60


def run_checks(table: str, checks: Sequence[Check], context: CheckContext) -> list[Outcome]:
    """Evaluate checks of a table."""
    return [run_check(table, check, context) for check in checks]


def run_check(table: str, check: Check, context: CheckContext) -> Outcome:
    """Evaluate one check of a table."""
    finding = check.evaluate(context)
    # Spark Connect returns counts as numpy integers, which JSON cannot hold.
    result = (bool(finding.passed), int(finding.broken), finding.detail, finding.rows)
    return Outcome(table, check.name, check.severity, *result)


def unique(*columns: str, severity: CheckSeverity = "block") -> Check:
    """No two rows have the same values in these columns.

    >>> unique("id").evaluate(context)
    Finding(passed=True, broken=0, detail='', rows=())
    """

    def evaluate(context: CheckContext) -> Finding:
        names = ", ".join(_identifier(column) for column in columns)
        duplicates = f"SELECT {names}, count(*) AS count FROM {{rows}} GROUP BY {names} HAVING count(*) > 1"
        return _none_of(context, duplicates, "{} keys more than once")

    return Check(f"unique_{'_'.join(columns)}", evaluate, severity, portable=True)


def reference(column: str, table: str, other: str = "", severity: CheckSeverity = "block") -> Check:
    """Every value that is not null occurs in a column of another table.

    >>> reference("id", "crm.leads").evaluate(context)
    Finding(passed=True, broken=0, detail='', rows=())
    """

    def evaluate(context: CheckContext) -> Finding:
        own, target = _identifier(column), _identifier(other or column)
        dangling = (
            f"SELECT {own} FROM {{rows}} r ANTI JOIN {{target}} t ON r.{own} = t.{target} WHERE {own} IS NOT NULL"
        )
        finding = _none_of(context, dangling, f"{{}} rows refer to nothing in {table}", target=table)
        if finding.passed:
            return finding
        missing = context.query(
            f"SELECT DISTINCT {own} FROM ({dangling}) v ORDER BY 1 LIMIT {SHOWN_VALUES + 1}", target=table
        )
        values = _listed([next(iter(row.values())) for row in missing])
        verb = "is" if len(missing) == 1 else "are"
        return replace(finding, detail=f"{finding.detail}: {column} {values} {verb} not in {other or column}")

    return Check(f"{column}_refers_to_{table.replace('.', '_')}", evaluate, severity, portable=True)


def fresh(column: str, within: timedelta, severity: CheckSeverity = "warn") -> Check:
    """The latest timestamp of a column is not older than a duration.

    >>> check = fresh("changed_at", within=timedelta(hours=6))
    >>> check.name, check.severity
    ('changed_at_fresh', 'warn')
    """

    def evaluate(context: CheckContext) -> Finding:
        newest = f"CAST(CAST(max({_identifier(column)}) AS TIMESTAMP) AS BIGINT)"
        seconds = context.query(f"SELECT {newest} AS seconds FROM {{rows}}")[0]["seconds"]
        if seconds is None:
            return Finding(False, 0, "there is no newest row")
        age = timedelta(seconds=context.now.astimezone(UTC).timestamp() - seconds)
        return Finding(age <= within, 0, f"the newest row is {age} old")

    return Check(f"{column}_fresh", evaluate, severity, portable=True)


def steady_row_count(drift: float = 0.5, severity: CheckSeverity = "warn") -> Check:
    """The table does not shrink or grow by more than a share of its previous size.

    >>> steady_row_count(drift=0.2).evaluate(context)
    Finding(passed=False, broken=7, detail='10 rows before, 3 now', rows=())
    """

    def evaluate(context: CheckContext) -> Finding:
        before = context.before.get("rows")
        if not before or context.total is None:
            return Finding(True)
        share = abs(context.total - before) / before
        return Finding(share <= drift, abs(context.total - before), f"{before} rows before, {context.total} now")

    return Check("row_count_steady", evaluate, severity, portable=True)


def reconciles(with_table: str, own: Figures, other: Figures, severity: CheckSeverity = "block") -> Check:
    """Figures of this table equal those of another table, such as the sums of two layers.

    Args:
        own: SQL aggregates of this table (`"sum(volume)"`, or several), in Spark's SQL; or a function from its
            rows to a DataFrame with one value.
        other: the same of the other table.

    >>> reconciles("crm.leads", own="sum(score)", other="sum(score)").evaluate(context)
    Finding(passed=True, broken=0, detail='205 here, 205 in crm.leads', rows=())
    """

    def evaluate(context: CheckContext) -> Finding:
        left, right = _figures(context, own), _figures(context, other, with_table)
        return Finding(left == right, int(left != right), f"{left} here, {right} in {with_table}")

    portable = not callable(own) and not callable(other)
    return Check(f"reconciles_with_{with_table.replace('.', '_')}", evaluate, severity, portable)


def _identifier(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _figures(context: CheckContext, wanted: Figures, table: str = "") -> Any:
    """The value of a check's function or aggregate; of several aggregates, their values separated by commas."""
    if callable(wanted):
        first = wanted(context.table(table) if table else context.rows).first()
        return first[0] if first else None
    aggregates = [wanted] if isinstance(wanted, str) else wanted
    listed = ", ".join(f"{aggregate} AS v{number}" for number, aggregate in enumerate(aggregates))
    source = {"other": table} if table else {}
    values = context.query(f"SELECT {listed} FROM {{{'other' if table else 'rows'}}}", **source)[0].values()
    return next(iter(values)) if len(values) == 1 else ", ".join(str(value) for value in values)


def keeps_most_of(table: str, share: float = 0.5, severity: CheckSeverity = "block") -> Check:
    """At least a share of the rows of an input table is left after rules and keys.

    >>> keeps_most_of("crm.leads", share=0.9).evaluate(context)
    Finding(passed=True, broken=0, detail='3 of 3 rows of crm.leads are left', rows=())
    """

    def evaluate(context: CheckContext) -> Finding:
        kept = int(context.query("SELECT count(*) AS count FROM {rows}")[0]["count"])
        total = int(context.query("SELECT count(*) AS count FROM {input}", input=table)[0]["count"])
        return Finding(kept >= total * share, total - kept, f"{kept} of {total} rows of {table} are left")

    return Check(f"keeps_most_of_{table.replace('.', '_')}", evaluate, severity, portable=True)


def _none_of(context: CheckContext, violations: str, detail: str, **tables: str) -> Finding:
    """Passes if a query of violations returns no rows."""
    count = int(context.query(f"SELECT count(*) AS count FROM ({violations}) v", **tables)[0]["count"])
    if not count:
        return Finding(True)
    rows = context.query(f"{violations} LIMIT {SAMPLE_ROWS}", **tables)
    return Finding(False, count, detail.format(count), tuple(json.dumps(row, default=str) for row in rows))


def _listed(values: Sequence[Any]) -> str:
    """The first values, for a sentence."""
    shown = [_shortened(repr(value) if isinstance(value, str) else str(value)) for value in values[:SHOWN_VALUES]]
    return ", ".join([*shown, "…"] if len(values) > SHOWN_VALUES else shown)


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"
