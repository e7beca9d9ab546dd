"""A reading as one statement of Spark SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from datetime import time as clock
from zoneinfo import ZoneInfo

from lakehouse.agent.periods import Period
from lakehouse.agent.reading import LIST, ROWS, Condition, Field, Reading, Threshold
from lakehouse.agent.refusal import Refusal
from lakehouse.agent.semantics import KEY, NUMBER, Dimension, Join, Metric, Semantics, quoted
from lakehouse.core.quoting import spark_text

UTC = "UTC"


class SqlWriter:
    """Writes the statement of one reading."""

    def __init__(
        self, semantics: Semantics, pins: Mapping[tuple[str, str], str] | None = None, zone: str = UTC
    ) -> None:
        """
        Args:
            pins: the snapshot to read of each (table, WHEN); without one the table is read as it is.
            zone: the time zone of calendar days.
        """
        self._semantics, self._pins, self._zone = semantics, pins or {}, zone

    def statement(self, reading: Reading) -> str:
        """The statement."""
        if reading.comparison:
            return self._comparison(reading)
        if reading.of_groups:
            return self._over_groups(reading)
        if reading.shape == ROWS:
            return self._rows(reading)
        if reading.ties:
            return self._with_ties(reading)
        return self._aggregates(reading)

    @classmethod
    def condition_of(cls, reading: Reading, zone: str) -> str:
        """What rows of the reading's own table must meet."""
        return " AND ".join(cls(Semantics(), zone=zone)._conditions(reading))

    # ---- shapes --------------------------------------------------------------------------------------------------

    def _aggregates(self, reading: Reading) -> str:
        groups = [self._expression(group) for group in reading.groups]
        selected = [_aliased(sql, group.name) for sql, group in zip(groups, reading.groups, strict=True)]
        selected += self._selected_metrics(reading)
        lines = [f"SELECT {', '.join(selected)}", *self._from_where(reading)]
        if groups:
            lines.append(f"GROUP BY {', '.join(groups)}")
        if reading.thresholds:
            lines.append("HAVING " + " AND ".join(_threshold(threshold) for threshold in reading.thresholds))
        return "\n".join(lines + self._order(reading))

    def _selected_metrics(self, reading: Reading) -> list[str]:
        if reading.shape == LIST:
            return []
        if reading.part:
            return [f"{self._part_share(reading)} AS {reading.share}"]
        shown = [f"{metric.expression} AS {quoted(metric.column)}" for metric in reading.metrics]
        if reading.share:
            metric = reading.metrics[0].expression
            factor = "100 * " if reading.share == "percentage" else ""
            whole = f"sum(CAST({metric} AS DOUBLE)) OVER ()"
            shown.append(f"{factor}CAST({metric} AS DOUBLE) / {whole} AS {reading.share}")
        return shown

    def _part_share(self, reading: Reading) -> str:
        """The share of the rows that meet the conditions of the part; the metric is a count or a sum."""
        metric = reading.metrics[0]
        summed = "1" if metric.aggregate == "count" else metric.expression[len("sum(") : -1]
        condition = " AND ".join(self._condition(part) for part in reading.part)
        part, whole = f"sum(CASE WHEN {condition} THEN {summed} ELSE 0 END)", f"sum({summed})"
        factor = "100 * " if reading.share == "percentage" else ""
        return f"{factor}CAST({part} AS DOUBLE) / CAST({whole} AS DOUBLE)"

    def _with_ties(self, reading: Reading) -> str:
        inner = replace(reading, ties=False, limit=0, descending=None)
        groups = [quoted(group.name) for group in reading.groups]
        metric = quoted(reading.metrics[0].column)
        direction = "DESC" if reading.descending else "ASC"
        ranked = f"rank() OVER (ORDER BY {metric} {direction} NULLS LAST) AS place"
        body = _indented(self._aggregates(inner).rpartition("\nORDER BY")[0])
        columns = ", ".join([*groups, metric])
        return (
            f"SELECT {columns}\nFROM (\n  SELECT {columns}, {ranked}\n  FROM (\n{_indented(body)}\n  )\n)\n"
            f"WHERE place <= {reading.limit}\nORDER BY {metric} {direction} NULLS LAST, {', '.join(groups)}"
        )

    def _over_groups(self, reading: Reading) -> str:
        inner = replace(reading, of_groups="", descending=None, limit=0)
        body = _indented(self._aggregates(inner).rpartition("\nORDER BY")[0])
        if reading.of_groups == "count":
            names = "_and_".join(group.name for group in reading.groups)
            counted = " AND ".join(f"{quoted(group.name)} IS NOT NULL" for group in reading.groups)
            return f"SELECT count(*) AS {quoted(names)}\nFROM (\n{body}\n)\nWHERE {counted}"
        columns = (metric.column for metric in reading.metrics)
        selected = (f"{reading.of_groups}({quoted(column)}) AS {reading.of_groups}_{column}" for column in columns)
        return f"SELECT {', '.join(selected)}\nFROM (\n{body}\n)"

    def _rows(self, reading: Reading) -> str:
        selected = [
            f"{dimension.sql} AS {quoted(dimension.name)}" if dimension.expression else dimension.sql
            for dimension in reading.entity.dimensions.values()
        ]
        order = [quoted(column) for column in reading.entity.key]
        lines = [f"SELECT {', '.join(selected)}", *self._from_where(reading)]
        lines += [f"ORDER BY {', '.join(order)}"] if order else []
        return "\n".join(lines + ([f"LIMIT {reading.limit}"] if reading.limit else []))

    def _comparison(self, reading: Reading) -> str:
        """Both sides under each other, then side by side: groups that one side lacks stay, and NULL is a group."""
        compared = reading.comparison
        assert compared is not None
        groups, metric = [quoted(group.name) for group in reading.groups], reading.metrics[0]
        now = replace(reading, comparison=None, descending=None, limit=0)
        before = replace(now, period=compared.period or now.period, when=compared.when or now.when)
        sides = []
        for number, side in enumerate((now, before), start=1):
            body = self._aggregates(side).rpartition("\nORDER BY")[0] if groups else self._aggregates(side)
            sides.append(_indented(body.replace("SELECT ", f"SELECT {number} AS side, ", 1)))
        name, zero = metric.column, ", 0)" if metric.aggregate == "count" else ""
        opened = "coalesce(" if zero else ""
        value, other = (f"{opened}max(CASE WHEN side = {number} THEN {quoted(name)} END){zero}" for number in (1, 2))
        columns = [*groups, f"{value} AS {quoted(name)}", f"{other} AS {name}_before", f"{value} - {other} AS change"]
        lines = [f"SELECT {', '.join(columns)}", "FROM (", "\n  UNION ALL\n".join(sides), ")"]
        if groups:
            lines.append(f"GROUP BY {', '.join(groups)}")
        return "\n".join(lines + self._order(reading))

    def _order(self, reading: Reading) -> list[str]:
        groups = [quoted(group.name) for group in reading.groups]
        lines = []
        if reading.descending is not None and groups:
            direction = "DESC" if reading.descending else "ASC"
            lines.append(f"ORDER BY {quoted(reading.metrics[0].column)} {direction} NULLS LAST, {', '.join(groups)}")
        elif groups:
            lines.append(f"ORDER BY {', '.join(groups)}")
        return [*lines, f"LIMIT {reading.limit}"] if reading.limit else lines

    # ---- clauses -------------------------------------------------------------------------------------------------

    def _from_where(self, reading: Reading) -> list[str]:
        fields = [*reading.groups, *(condition.field for condition in (*reading.conditions, *reading.part))]
        lines = [f"FROM {self._table(reading.entity.table, reading.when)}", *self._joins(fields, reading.when)]
        conditions = self._conditions(reading)
        return lines + ([f"WHERE {' AND '.join(conditions)}"] if conditions else [])

    def _conditions(self, reading: Reading) -> list[str]:
        conditions = [self._condition(condition) for condition in reading.conditions]
        conditions += [f"({metric.filter})" for metric in _filtered(reading)]
        if reading.period and reading.time:
            conditions += self._within(reading.time, reading.period)
        return conditions

    def _table(self, table: str, when: str) -> str:
        pin = self._pins.get((table, when), "")
        if pin:
            return f"{table} VERSION AS OF {pin}"
        return f"{table} VERSION AS OF {spark_text(when)}" if when else table

    def _joins(self, fields: Sequence[Field], when: str) -> list[str]:
        needed: dict[tuple[str, ...], dict[str, str]] = {}
        for field in fields:
            for depth, join in enumerate(field.path):
                alias = _alias(field.path[: depth + 1])
                columns = needed.setdefault(tuple(alias), {})
                columns[_column(alias, join.to_column)] = quoted(join.to_column)
                if depth + 1 < len(field.path):
                    columns[_column(alias, field.path[depth + 1].column)] = quoted(field.path[depth + 1].column)
                else:
                    columns[_column(alias, field.dimension.name)] = field.dimension.sql
        lines, seen = [], set()
        for field in fields:
            for depth, join in enumerate(field.path):
                alias = _alias(field.path[: depth + 1])
                if tuple(alias) in seen:
                    continue
                seen.add(tuple(alias))
                left = _column(_alias(field.path[:depth]), join.column) if depth else quoted(join.column)
                selected = ", ".join(f"{sql} AS {name}" for name, sql in needed[tuple(alias)].items())
                table = self._table(self._semantics.entities[join.to_entity].table, when)
                source = f"(SELECT {selected} FROM {table}) AS {'_'.join(alias)}"
                lines.append(f"LEFT JOIN {source} ON {left} = {_column(alias, join.to_column)}")
        return lines

    def _expression(self, field: Field) -> str:
        plain = _column(_alias(field.path), field.dimension.name) if field.path else field.dimension.sql
        if not field.grain:
            return plain
        at = self._local(field.dimension, plain)
        day = at if field.dimension.type == "date" else f"CAST({at} AS DATE)"
        return {
            "day": day,
            "week": f"CAST(date_trunc('WEEK', {at}) AS DATE)",
            "month": f"date_format({at}, 'yyyy-MM')",
            "quarter": f"concat(year({at}), '-Q', quarter({at}))",
            "year": f"year({at})",
            "hour of day": f"hour({at})",
            "day of week": f"date_format({at}, 'EEEE')",
        }[field.grain]

    def _local(self, time: Dimension, sql: str) -> str:
        """A time on the clock of the time zone; only instants depend on it."""
        is_instant = time.type == "timestamp" and self._zone != UTC
        return f"from_utc_timestamp({sql}, {spark_text(self._zone)})" if is_instant else sql

    def _within(self, time: Dimension, period: Period) -> list[str]:
        bounds = ((">=", period.start), ("<", period.end))
        return [f"{time.sql} {sign} {self._moment(time, day)}" for sign, day in bounds if day is not None]

    def _moment(self, time: Dimension, day: date) -> str:
        """The start of a calendar day, as a literal of the type of a time."""
        if time.type == "date":
            return f"DATE '{day}'"
        if time.type == "timestamp_ntz":
            return f"TIMESTAMP_NTZ '{day} 00:00:00'"
        start = datetime.combine(day, clock(), ZoneInfo(self._zone)).astimezone(ZoneInfo(UTC))
        return f"TIMESTAMP '{start:%Y-%m-%d %H:%M:%S}Z'"

    def _condition(self, condition: Condition) -> str:
        sql, operator = self._expression(condition.field), condition.operator
        if operator == "missing":
            return f"{sql} IS NULL"
        if operator in ("true", "false"):
            return sql if operator == "true" else f"NOT {sql}"
        values = [_literal(condition.field, value) for value in condition.values]
        if operator == "between":
            return f"{sql} BETWEEN {values[0]} AND {values[1]}"
        if operator == "<>":
            # "Not cash" includes the rows of which it is not known.
            others = f"{sql} <> {values[0]}" if len(values) == 1 else f"{sql} NOT IN ({', '.join(values)})"
            return f"({others} OR {sql} IS NULL)"
        return f"{sql} {operator} {values[0]}" if len(values) == 1 else f"{sql} IN ({', '.join(values)})"


def _aliased(sql: str, name: str) -> str:
    return sql if sql == quoted(name) else f"{sql} AS {quoted(name)}"


def _filtered(reading: Reading) -> list[Metric]:
    metrics = [*reading.metrics, *(threshold.metric for threshold in reading.thresholds)]
    filtered = {metric.filter: metric for metric in metrics}
    if len(filtered) > 1:  # a filter in WHERE would hold for the other metrics, too
        name = next(metric.name for metric in metrics if metric.filter)
        raise Refusal(f"{name} has a filter of its own: ask for it alone.", [metric.name for metric in metrics])
    return [metric for metric in filtered.values() if metric.filter]


def _threshold(threshold: Threshold) -> str:
    expression, operator, values = threshold.metric.expression, threshold.operator, threshold.values
    return (
        f"{expression} BETWEEN {values[0]} AND {values[1]}"
        if operator == "between"
        else f"{expression} {operator} {values[0]}"
    )


def _literal(field: Field, value: str) -> str:
    return value if field.dimension.kind in (NUMBER, KEY) or field.grain else spark_text(value)


def _alias(path: Sequence[Join]) -> list[str]:
    return [join.to_entity.replace(".", "_").replace(" ", "_") for join in path]


def _column(alias: Sequence[str], name: str) -> str:
    return "__".join([*alias, name.replace(" ", "_")])


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
