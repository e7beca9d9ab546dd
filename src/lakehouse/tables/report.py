"""The snapshot report: how a table grew snapshot by snapshot, and a comparison of two snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

from lakehouse.core.names import TableName
from lakehouse.core.quoting import name as quoted
from lakehouse.core.tables import Column, Scan, Snapshot
from lakehouse.engines.duckdb import DuckDB
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
class TableReport:
    """How a table grew."""

    table: str
    format: str
    snapshots: Sequence[Snapshot]
    earlier: SnapshotSummary | None = None
    later: SnapshotSummary | None = None

    @property
    def rows_total(self) -> int:
        current = next((snapshot for snapshot in self.snapshots if snapshot.is_current), None)
        return (current.rows_total or 0) if current else 0


def report_table(tables: Tables, duckdb: DuckDB, table: TableName, start: str = "", end: str = "") -> TableReport:
    """List a table's snapshots and summarize two of them, read by time travel rather than from statistics."""
    table_format = tables.format_of(table)
    snapshots = list(table_format.history(table))
    if not snapshots:
        return TableReport(str(table), table_format.name, ())
    first = tables.snapshot_at(table, start) or snapshots[0].id
    last = tables.snapshot_at(table, end) or next(snapshot.id for snapshot in snapshots if snapshot.is_current)
    summaries = [_summarize(duckdb, table_format.scan(table, snapshot), snapshot) for snapshot in (first, last)]
    return TableReport(str(table), table_format.name, snapshots, *summaries)


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
        f"{_snapshots(report.snapshots)}{_compared(report)}</section>"
    )


def _chart(snapshots: Sequence[Snapshot]) -> str:
    shown = snapshots[-_MOST_BARS:]
    most = max((snapshot.rows_total or 0 for snapshot in shown), default=0) or 1
    bars = []
    for at, snapshot in enumerate(shown):
        left = at * (_BAR_WIDTH + _BAR_GAP)
        total = _CHART_HEIGHT * (snapshot.rows_total or 0) / most
        added = min(_CHART_HEIGHT * (snapshot.rows_added or 0) / most, total)
        title = f"<title>{snapshot.at:%Y-%m-%d %H:%M:%S}: {snapshot.rows_total or 0:,} rows, {snapshot.rows_added or 0:,} added</title>"
        bars.append(
            f'<g>{title}<rect x="{left}" y="{_CHART_HEIGHT - total:.1f}" width="{_BAR_WIDTH}" height="{total:.1f}"'
            f' class="total"/><rect x="{left}" y="{_CHART_HEIGHT - added:.1f}" width="{_BAR_WIDTH}"'
            f' height="{added:.1f}" class="added"/></g>'
        )
    width = max(len(shown) * (_BAR_WIDTH + _BAR_GAP), 1)
    return f'<svg viewBox="0 0 {width} {_CHART_HEIGHT}" width="{width}" height="{_CHART_HEIGHT}">{"".join(bars)}</svg>'


def _snapshots(snapshots: Sequence[Snapshot]) -> str:
    head = ("at", "snapshot", "operation", "added", "removed", "rows", "growth", "files", "bytes", "source")
    rows = []
    before: int | None = None
    for snapshot in snapshots:
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
            )
        )
        before = total
    return _table(head, rows)


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
