"""Build one table of a run without Spark: the same rules and checks, evaluated by DuckDB on Arrow rows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakehouse.core.catalog import Catalog
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BadDeclarationError
from lakehouse.core.format import TableFormat
from lakehouse.core.names import TableName
from lakehouse.core.properties import new_table_properties
from lakehouse.core.quoting import name as quoted
from lakehouse.core.quoting import text
from lakehouse.core.refs import Commit, run_branch
from lakehouse.core.tables import Column, Scan
from lakehouse.engines.duckdb import spark_type
from lakehouse.pipelines import arrow
from lakehouse.pipelines.model import LightContext, Table
from lakehouse.pipelines.upsert import find_table
from lakehouse.quality.checks import SAMPLE_ROWS, run_checks
from lakehouse.quality.model import Outcome, Rule
from lakehouse.query.translate.statement import translate_over
from lakehouse.query.translate.types import NotTranslatedError
from lakehouse.runs.build import raise_if_blocked
from lakehouse.runs.model import TableReport
from lakehouse.runs.reads import BranchReads, Part, SmallCheckContext, only_by_spark

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog import Catalog as PyIcebergCatalog


@dataclass
class LightBuild:
    """The build of one table without Spark."""

    catalog: Catalog
    """The catalog of the run's branch."""
    reads: BranchReads
    """Reads the tables of that branch, for checks."""
    table: Table
    settings: Mapping[str, str]
    commit: Commit
    now: datetime
    outcomes: list[Outcome]
    """The outcomes of rules and checks are added here."""
    _rule_outcomes: list[Outcome] = field(default_factory=list)
    _rejected: pa.Table | None = None

    def run(self) -> TableReport:
        """Build the table, quarantine its invalid rows and run its checks."""
        from pyiceberg.catalog import load_catalog

        table, name, iceberg = self.table, self.table.table_name, self.reads.tables.formats["iceberg"]
        assert table.light is not None
        self._refuse_spark_rules()
        started, pointer = time.monotonic(), self.catalog.pointer(name)
        before = {"rows": current.rows_total} if (current := _current(iceberg, name)) else {}
        with closing(load_catalog(run_branch(self.commit.run), **self.catalog.pyiceberg_properties())) as catalog:
            try:
                rows = table.light(
                    LightContext(catalog, self.settings, self._validate, self._notes(), self.reads.duckdb)
                )
            finally:
                self.outcomes.extend(self._rule_outcomes)
            changed = self.catalog.pointer(name) != pointer
            if changed and table.rules and self._rejected is None:
                raise BadDeclarationError(
                    f"{table.name} was written without its rules.", "Call context.validate(rows) before writing."
                )
            rejected = self._quarantine(catalog)
            current = _current(iceberg, name)
            if current is not None:
                self._check(before, current.rows_total)
        seconds = round(time.monotonic() - started, 2)
        note = "" if changed else "nothing changed"
        return TableReport(table.name, (), rows, rejected, current.id if current else "", seconds, note)

    def _refuse_spark_rules(self) -> None:
        for rule in self.table.rules:
            if not rule.sql:
                raise only_by_spark(
                    f"The rule {rule.name} of {self.table.name}", "Give the rule its condition as sql=…"
                )

    def _validate(self, rows: pa.Table) -> pa.Table:
        """The rows that no quarantine rule rejects; raises RunBlockedError if a blocking rule fails."""
        rules = self.table.rules
        flagged = _flagged(self.table.name, rows, rules)
        counts = ", ".join(f"count(*) FILTER (WHERE {_flag(at)}) AS r{at}" for at, _ in enumerate(rules))
        numbers = list(arrow.query(f"SELECT {counts} FROM rows", rows=flagged).to_pylist()[0].values()) if rules else []
        self._rule_outcomes = [
            Outcome(
                self.table.name,
                rule.name,
                rule.severity,
                not count,
                count,
                rows=_sample(rows, flagged, at, rule) if count else (),
            )
            for at, (rule, count) in enumerate(zip(rules, numbers, strict=True))
        ]
        raise_if_blocked(self.commit.run, self._rule_outcomes)
        quarantine = [(at, rule) for at, rule in enumerate(rules) if rule.severity == "quarantine"]
        condition = " OR ".join(_flag(at) for at, _ in quarantine) or "false"
        reasons = ", ".join(f"CASE WHEN {_flag(at)} THEN {text(rule.name)} END" for at, rule in quarantine) or "''"
        self._rejected = arrow.query(
            f"SELECT concat_ws(', ', {reasons}) AS reason, {_as_json(rows)} AS row,"
            f" {text(self.commit.run)} AS run, TIMESTAMPTZ {text(self.now.isoformat())} AS rejected_at"
            f" FROM rows WHERE {condition}",
            rows=flagged,
        )
        kept = arrow.query(f"FROM rows WHERE NOT ({condition})", rows=flagged)
        return kept.select(rows.schema.names).cast(rows.schema)

    def _quarantine(self, catalog: PyIcebergCatalog) -> int:
        """Append the rejected rows to the table `…__rejected`; returns their number."""
        if self._rejected is None or not self._rejected.num_rows:
            return 0
        name, properties = self.table.table_name.rejected, new_table_properties()
        # `create_table_if_not_exists` leaves a metadata file behind if there is a table.
        table = find_table(catalog, name) or catalog.create_table(
            (name.namespace, name.table), schema=self._rejected.schema, properties=properties
        )
        table.append(self._rejected.cast(table.schema().as_arrow()), self._notes())
        return int(self._rejected.num_rows)

    def _check(self, before: Mapping[str, int | None], total: int | None) -> None:
        context = SmallCheckContext(self.reads, Part, self.table.name, before, total, self.now)
        outcomes = run_checks(self.table.name, self.table.checks, context)
        self.outcomes.extend(outcomes)
        raise_if_blocked(self.commit.run, outcomes)

    def _notes(self) -> dict[str, str]:
        commit = self.commit
        notes = {"run": commit.run, "pipeline": commit.pipeline, "author": commit.author, "message": commit.message}
        return {f"lake.{key}": value for key, value in notes.items() if value}


def _current(iceberg: TableFormat, name: TableName) -> Any:
    return iceberg.describe(name).current if iceberg.has(name) else None


def _flagged(table: str, rows: pa.Table, rules: Sequence[Rule]) -> pa.Table:
    """The rows with a column for each rule that says whether they break it, as Spark would say."""
    if not rules:
        return rows
    import duckdb

    flags = ", ".join(f"NOT coalesce(({rule.sql}), true) AS `broken {at}`" for at, rule in enumerate(rules))
    with duckdb.connect() as engine:
        relation = engine.from_arrow(rows.slice(0, 0))
        described = zip(relation.columns, relation.types, strict=True)
        columns = tuple(Column(name, spark_type(kind)) for name, kind in described)
    try:
        translation = translate_over(f"SELECT *, {flags} FROM rows", {"rows": Scan(columns)})
    except NotTranslatedError as exc:
        raise only_by_spark(f"A rule of {table} with {exc}", "Write the rule in another way") from exc
    return arrow.query(translation.sql, rows=rows)


def _flag(at: int) -> str:
    return f'"broken {at}"'


def _as_json(rows: pa.Table) -> str:
    """The row without the flags."""
    return (
        f"CAST(to_json(struct_pack({', '.join(f'{quoted(n)} := {quoted(n)}' for n in rows.schema.names)})) AS VARCHAR)"
    )


def _sample(rows: pa.Table, flagged: pa.Table, at: int, rule: Rule) -> tuple[str, ...]:
    """Some of the rows that block a run."""
    if rule.severity != "block":
        return ()
    sql = f"SELECT {_as_json(rows)} AS row FROM rows WHERE {_flag(at)} LIMIT {SAMPLE_ROWS}"
    return tuple(row["row"] for row in arrow.query(sql, rows=flagged).to_pylist())
