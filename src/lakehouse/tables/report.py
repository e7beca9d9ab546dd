"""The report of a table: how it grew snapshot by snapshot, what its rules and checks found run by run, two snapshots compared."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

from lakehouse.core.dataclass import dataclass
from lakehouse.core.names import TableName
from lakehouse.core.quoting import name as quoted
from lakehouse.core.tables import Column, Scan, Snapshot
from lakehouse.engines.duckdb import DuckDB
from lakehouse.quality.model import Outcome
from lakehouse.tables.directory import Tables

_BAR_WIDTH, _BAR_GAP, _CHART_HEIGHT, _MOST_BARS = 14, 4, 120, 60
_COMPARED_COLUMNS = 40
_COMPARABLE = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "date", "timestamp", "string")


@dataclass(frozen=True)
class SnapshotSummary:
    """Row count and value ranges of a table at one snapshot, computed by time travel."""

    snapshot: str
    rows: int
    columns: dict[str, tuple[str, str, int]]
    """Minimum, maximum and null count of each column."""


@dataclass(frozen=True)
class QualityRun:
    """What the rules and checks of a table found in one run."""

    run: str
    at: str
    """When it started, ISO 8601."""
    state: str
    rows: int
    rejected: int
    outcomes: tuple[Outcome, ...] = ()

    @property
    def failed(self) -> str:
        """The rules and checks that rows broke, with the number of rows."""
        return ", ".join(f"{outcome.name} ({outcome.broken:,})" for outcome in self.outcomes if not outcome.passed)


@dataclass(frozen=True)
class TableReport:
    """How a table grew, and what its rules and checks found."""

    table: str
    format: str
    snapshots: Sequence[Snapshot]
    earlier: SnapshotSummary | None = None
    later: SnapshotSummary | None = None
    quality: Sequence[QualityRun] = ()
    """The runs that built the table or were kept from it, oldest first."""
    rejected: Sequence[Snapshot] = ()
    """The snapshots of the table's rejected rows, which runs and ingests wrote."""

    def run_of(self, snapshot: Snapshot) -> QualityRun | None:
        """The run that wrote a snapshot, if one did."""
        return next((run for run in self.quality if run.run == snapshot.notes.get("run")), None)

    @property
    def rows_total(self) -> int:
        current = next((snapshot for snapshot in self.snapshots if snapshot.is_current), None)
        return (current.rows_total or 0) if current else 0


def report_table(
    tables: Tables, duckdb: DuckDB, table: TableName, start: str, end: str, quality: Sequence[QualityRun]
) -> TableReport:
    """List a table's snapshots and summarize two of them, read by time travel rather than from statistics."""
    table_format = tables.format_of(table)
    snapshots = list(table_format.history(table))
    rejects = tables.find(table.rejected)
    rejected = list(rejects.history(table.rejected)) if rejects else []
    if not snapshots:
        return TableReport(str(table), table_format.name, (), quality=quality, rejected=rejected)
    first = tables.snapshot_at(table, start) or snapshots[0].id
    last = tables.snapshot_at(table, end) or next(snapshot.id for snapshot in snapshots if snapshot.is_current)
    earlier, later = (_summarize(duckdb, table_format.scan(table, snapshot), snapshot) for snapshot in (first, last))
    return TableReport(str(table), table_format.name, snapshots, earlier, later, quality, rejected)


def _summarize(duckdb: DuckDB, scan: Scan, snapshot: str) -> SnapshotSummary:
    columns = [column for column in scan.columns if column.type.startswith(_COMPARABLE)][:_COMPARED_COLUMNS]
    picked = ", ".join(["count(*)", *(_summary(column) for column in columns)])
    row = duckdb.query(f"SELECT {picked} FROM then_", {"then_": scan}, "report").rows()[0]
    values = {
        column.name: (str(row[3 * at + 1]), str(row[3 * at + 2]), int(row[3 * at + 3]))
        for at, column in enumerate(columns)
    }
    return SnapshotSummary(snapshot, int(row[0]), values)


def _summary(column: Column) -> str:
    value = quoted(column.name)
    return f"min({value}), max({value}), count(*) FILTER ({value} IS NULL)"


def report_page(reports: Sequence[TableReport]) -> str:
    """One page that needs nothing else: no script, no font, no picture from elsewhere."""
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    body = "\n".join(_section(report) for report in reports) or "<p>There is no table yet.</p>"
    links = " · ".join(f'<a href="#{escape(report.table)}">{escape(report.table)}</a>' for report in reports)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Snapshots</title>'
        f"<style>{_STYLE}</style><h1>Snapshots</h1><p>{links}</p>{body}<footer>Made {made}</footer></html>"
    )


def _section(report: TableReport) -> str:
    return (
        f'<section id="{escape(report.table)}"><h2>{escape(report.table)} <small>{escape(report.format)},'
        f" {report.rows_total:,} rows, {len(report.snapshots)} snapshots</small></h2>"
        f"<figure>{_chart(report.snapshots)}<figcaption>rows after each snapshot; dark: added by it</figcaption></figure>"
        f"{_snapshots(report)}{_quality(report)}{_compared(report)}</section>"
    )


def _chart(snapshots: Sequence[Snapshot]) -> str:
    return _bars(
        [
            (
                snapshot.rows_total or 0,
                snapshot.rows_added or 0,
                f"{snapshot.at:%Y-%m-%d %H:%M:%S}: {snapshot.rows_total or 0:,} rows, {snapshot.rows_added or 0:,} added",
            )
            for snapshot in snapshots
        ]
    )


def _bars(values: Sequence[tuple[int, int, str]]) -> str:
    """A bar for each total, with a part of it in the darker color, and its title."""
    shown = values[-_MOST_BARS:]
    most = max((total for total, _, _ in shown), default=0) or 1
    bars = []
    for at, (rows, part, text) in enumerate(shown):
        left = at * (_BAR_WIDTH + _BAR_GAP)
        total = _CHART_HEIGHT * rows / most
        added = min(_CHART_HEIGHT * part / most, total)
        bars.append(
            f'<g><title>{escape(text)}</title><rect x="{left}" y="{_CHART_HEIGHT - total:.1f}" width="{_BAR_WIDTH}" height="{total:.1f}"'
            f' class="total"/><rect x="{left}" y="{_CHART_HEIGHT - added:.1f}" width="{_BAR_WIDTH}"'
            f' height="{added:.1f}" class="added"/></g>'
        )
    width = max(len(shown) * (_BAR_WIDTH + _BAR_GAP), 1)
    return f'<svg viewBox="0 0 {width} {_CHART_HEIGHT}" width="{width}" height="{_CHART_HEIGHT}">{"".join(bars)}</svg>'


def _quality(report: TableReport) -> str:
    """The outcomes of rules and checks run by run, and the rejected rows over time; nothing if there are none."""
    parts = []
    if report.quality:
        bars = [
            (run.rows + run.rejected, run.rejected, f"{run.at}: {run.rows:,} rows, {run.rejected:,} rejected")
            for run in report.quality
        ]
        parts.append(
            f"<h3>Rules and checks</h3><figure>{_bars(bars)}<figcaption>rows of each run; dark: rejected</figcaption></figure>"
        )
        lines = [
            (run.at, run.run, run.state, outcome.name, outcome.severity, "passed" if outcome.passed else "failed")
            + (f"{outcome.broken:,}", outcome.detail)
            for run in report.quality
            for outcome in run.outcomes
        ]
        parts.append(_table(("at", "run", "state", "rule or check", "severity", "result", "broken", "detail"), lines))
    if report.rejected:
        listed = [
            (f"{snapshot.at:%Y-%m-%d %H:%M:%S}", _number(snapshot.rows_added), _number(snapshot.rows_total))
            + (snapshot.notes.get("run", "") or snapshot.source,)
            for snapshot in report.rejected
        ]
        parts.append(f"<h3>Rejected rows</h3>{_table(('at', 'rejected', 'in total', 'by'), listed)}")
    return "".join(parts)


def _snapshots(report: TableReport) -> str:
    head = ["at", "snapshot", "operation", "added", "removed", "rows", "growth", "files", "bytes", "source"]
    head += ["rejected", "failed"] if report.quality else []
    rows: list[Sequence[str]] = []
    before: int | None = None
    for snapshot in report.snapshots:
        total = snapshot.rows_total
        growth = "" if before is None or total is None else f"{total - before:+,}"
        rows.append(
            (
                f"{snapshot.at:%Y-%m-%d %H:%M:%S}",
                snapshot.id + (" (now)" if snapshot.is_current else ""),
                snapshot.operation,
                _number(snapshot.rows_added),
                _number(snapshot.rows_removed),
                _number(total),
                growth,
                _number(snapshot.files_total),
                _number(snapshot.bytes_total),
                snapshot.source,
                *_quality_cells(report, snapshot),
            )
        )
        before = total
    return _table(head, rows)


def _quality_cells(report: TableReport, snapshot: Snapshot) -> tuple[str, ...]:
    run = report.run_of(snapshot)
    return () if not report.quality else (f"{run.rejected:,}", run.failed) if run else ("", "")


def _compared(report: TableReport) -> str:
    one, other = report.earlier, report.later
    if one is None or other is None or one.snapshot == other.snapshot:
        return ""
    rows: list[Sequence[str]] = [("rows", f"{one.rows:,}", f"{other.rows:,}")]
    for name in dict.fromkeys((*one.columns, *other.columns)):
        rows.append((name, _range(one.columns.get(name)), _range(other.columns.get(name))))
    return f"<h3>Two snapshots</h3>{_table(('', f'as of {one.snapshot}', f'as of {other.snapshot}'), rows)}"


def _range(summary: tuple[str, str, int] | None) -> str:
    if summary is None:
        return "absent"
    low, high, nulls = summary
    return f"{_cut(low)} … {_cut(high)}" + (f", {nulls:,} null" if nulls else "")


def _cut(text: str) -> str:
    return text if len(text) <= 30 else text[:29] + "…"


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(title)}" for title in head)
    lines = "".join("<tr>" + "".join(f"<td>{escape(cell)}" for cell in row) for row in rows)
    return f"<div class=wide><table><tr>{top}{lines}</table></div>"


_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}"
    "h2{border-top:1px solid #d0d7de;padding-top:1rem}small,figcaption,footer{color:#57606a;font-weight:400}"
    "figure{margin:0}.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "th,td{text-align:left;padding:.2rem .8rem .2rem 0;white-space:nowrap}th{color:#57606a;font-weight:500}"
    "tr+tr td{border-top:1px solid #eaeef2}.total{fill:#b6c8e6}.added{fill:#2f5fa7}a{color:#2f5fa7}"
    "@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}h2,tr+tr td{border-color:#30363d}"
    ".total{fill:#30466b}.added{fill:#7aa7f0}a{color:#7aa7f0}}"
)
