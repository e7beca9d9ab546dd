"""`lake history`, `travel`, `diff`, `rollback`."""

from __future__ import annotations

from typing import Any

import click

from lakehouse.cli.app import Context, command
from lakehouse.cli.options import table_argument
from lakehouse.cli.show import note, relative_paths, show_rows

_WHEN = "WHEN is a snapshot id, a tag, an ISO time, or words such as yesterday and '2 hours ago'. Times are UTC."


@command("lake history crm.leads\nlake history crm.leads -o json")
@table_argument
def history(context: Context, table: str) -> None:
    """List a table's snapshots (Iceberg) or instants (Hudi), oldest first."""
    names = ["id", "at", "operation", "rows_added", "rows_removed", "rows_total", "source", "branch", "current"]
    rows: list[tuple[Any, ...]] = [
        (
            snapshot.id,
            snapshot.at,
            snapshot.operation,
            snapshot.rows_added,
            snapshot.rows_removed,
            snapshot.rows_total,
            relative_paths(snapshot.source) if context.output == "table" else snapshot.source,
            ", ".join(snapshot.refs) or ("main" if snapshot.is_current else ""),
            snapshot.is_current,
        )
        for snapshot in context.lake.history(table)
    ]
    if context.output == "table":  # for people: shorter words, and the mark of the present is its branch
        names, rows = [name.removeprefix("rows_") for name in names[:-1]], [row[:-1] for row in rows]
    show_rows(names, rows, context.output)


@command("lake travel crm.leads yesterday\nlake travel crm.leads 2026-01-31T12:00:00 --limit 10")
@table_argument
@click.argument("when")
@click.option("--limit", type=click.IntRange(min=0), default=100, show_default=True, help="At most N rows.")
def travel(context: Context, table: str, when: str, limit: int) -> None:
    """Show a table as it was at WHEN.

    WHEN is a snapshot id, a tag, an ISO time, or words such as yesterday and '2 hours ago'. Times are UTC.
    """
    result = context.lake.travel(table, when, limit)
    show_rows(result.names, result.rows(), context.output)


@command("lake diff crm.leads --from yesterday\nlake diff crm.leads --from 2026-01-01 --to 2026-02-01 --key id")
@table_argument
@click.option("--from", "start", required=True, metavar="WHEN", help="The earlier moment.")
@click.option("--to", "end", default="", metavar="WHEN", help="The later moment; now unless given.")
@click.option("--key", default="", metavar="A,B", help="Columns that identify a row, if the table has no key.")
@click.option("--limit", type=click.IntRange(min=0), default=100, show_default=True, help="Show at most N rows.")
def diff(context: Context, table: str, start: str, end: str, key: str, limit: int) -> None:
    """Show rows added, removed and changed between two moments, and what happened to the schema.

    Rows are matched by key: the table's own, or --key. Without one, a changed row counts as removed and added.
    """
    names = [part.strip() for part in key.split(",") if part.strip()]
    found = context.lake.diff(table, start, end, names, limit)
    show_rows(found.rows.names, found.rows.rows(), context.output)
    for column in found.columns_added:
        note(f"column added: {column.name} {column.type}")
    for column in found.columns_removed:
        note(f"column removed: {column.name} {column.type}")
    for old, new in found.columns_changed:
        note(f"column changed: {old.name} {old.type} -> {new.type}")
    by = f" by key {', '.join(found.key)}" if found.key else " (no key: give one with --key)"
    note(
        f"{found.added} added, {found.removed} removed, {found.changed} changed{by}, from {found.start} to {found.end}"
    )


@command("lake rollback crm.leads --to yesterday\nlake rollback crm.leads --to 5781947118336215154")
@table_argument
@click.option("--to", "when", required=True, metavar="WHEN", help=_WHEN)
def rollback(context: Context, table: str, when: str) -> None:
    """Make a table what it was at WHEN. Its history stays, so a rollback can itself be rolled back."""
    now = context.lake.rollback(table, when)
    note(f"{table} is at snapshot {now.id} again: {now.rows_total} rows.")
