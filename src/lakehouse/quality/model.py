"""Rules for rows, checks for tables, their severities, and the outcomes that a run records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol
from uuid import uuid4

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import UnknownChoiceError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Severity = Literal["warn", "quarantine", "block"]
SEVERITIES = ("warn", "quarantine", "block")


@dataclass(frozen=True)
class Rule:
    """A condition on each row. A row breaks the rule if the condition is false; null passes.

    >>> rule = Rule("named", lambda: F.col("name") != "", severity="warn", sql="`name` != ''")
    >>> rule.name, rule.severity
    ('named', 'warn')
    """

    name: str
    condition: Callable[[], Column]
    """A function, because a Column can only be created while Spark runs."""
    severity: Severity = "quarantine"
    """warn: count the row. quarantine: write it to `<table>__rejected`. block: publish nothing of the run."""
    sql: str = ""
    """The same condition in Spark's SQL, for tables that a run builds without Spark."""

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            raise UnknownChoiceError("severity", self.severity, SEVERITIES)


class CheckContext(Protocol):
    """What a check can read, as the run's branch has it.

    >>> def not_empty(context: CheckContext) -> Finding:
    ...     count = context.query("SELECT count(*) AS count FROM {rows}")[0]["count"]
    ...     return Finding(count > 0, detail=f"{count} rows")
    >>> not_empty(context)
    Finding(passed=True, broken=0, detail='3 rows', rows=())
    """

    @property
    def rows(self) -> DataFrame:
        """The rows that this run wrote: its partitions, or the whole table if it has none."""

    @property
    def before(self) -> Mapping[str, Any]:
        """The table before the run: `rows` (its row count); empty if it did not exist."""

    @property
    def total(self) -> int | None:
        """The row count of the whole table now."""

    @property
    def now(self) -> datetime:
        """The time of the run."""

    def table(self, name: str) -> DataFrame:
        """Any table of the lake; of a partitioned table of the pipeline, the rows of the run's partitions."""

    def query(self, sql: str, **tables: str) -> list[dict[str, Any]]:
        """Run a query of Spark's SQL in which `{rows}` and the keywords in braces stand for tables; with or without Spark."""


@dataclass(frozen=True)
class SparkCheckContext:
    """A CheckContext over DataFrames.

    >>> leads = lake.spark.table("crm.leads")
    >>> context = SparkCheckContext(leads, lake.spark.table, before={"rows": 10}, total=3, now=datetime.now(UTC))
    >>> unique("id").evaluate(context).passed
    True
    """

    rows: DataFrame
    tables: Callable[[str], DataFrame]
    before: Mapping[str, Any]
    total: int | None
    now: datetime

    def table(self, name: str) -> DataFrame:
        """Any table of the lake."""
        return self.tables(name)

    def query(self, sql: str, **tables: str) -> list[dict[str, Any]]:
        """Run a query in which `{rows}` and the keywords in braces stand for tables."""
        frames = {"rows": self.rows, **{alias: self.table(name) for alias, name in tables.items()}}
        views = {alias: f"lake_check_{uuid4().hex}" for alias in frames}
        for alias, frame in frames.items():
            frame.createOrReplaceTempView(views[alias])
        spark = self.rows.sparkSession
        try:
            return [row.asDict() for row in spark.sql(sql.format(**views)).collect()]
        finally:
            for view in views.values():
                spark.catalog.dropTempView(view)


@dataclass(frozen=True)
class Finding:
    """The result of a check.

    >>> Finding(False, broken=2, detail="2 leads without a name").passed
    False
    """

    passed: bool
    broken: int = 0
    """The number of rows or keys that break the check."""
    detail: str = ""
    rows: tuple[str, ...] = ()
    """Some of those rows, as JSON."""


@dataclass(frozen=True)
class Check:
    """A condition on a whole table, evaluated before the run is published.

    >>> def not_empty(context: CheckContext) -> Finding:
    ...     count = context.query("SELECT count(*) AS count FROM {rows}")[0]["count"]
    ...     return Finding(count > 0, detail=f"{count} rows")
    >>> Check("not_empty", not_empty, severity="warn", portable=True).evaluate(context).detail
    '3 rows'
    """

    name: str
    evaluate: Callable[[CheckContext], Finding]
    severity: Literal["warn", "block"] = "block"
    portable: bool = False
    """It calls only `query`: a run need not start a Spark job for it where DuckDB answers as Spark does."""

    def __post_init__(self) -> None:
        if self.severity not in ("warn", "block"):
            raise UnknownChoiceError("severity of a check", self.severity, ("warn", "block"))


@dataclass(frozen=True)
class Outcome:
    """The result of one rule or check in one run.

    >>> Outcome("crm.leads", "unique_id", "block", passed=False, broken=1).blocks
    True
    """

    table: str
    name: str
    severity: str
    passed: bool
    broken: int = 0
    detail: str = ""
    rows: tuple[str, ...] = ()
    """Some of the rows that blocked the run, as JSON: they are written nowhere else."""

    @property
    def blocks(self) -> bool:
        """Whether it keeps the run from being published."""
        return not self.passed and self.severity == "block"
