"""`lake tables`, `describe`, `drop`, `undrop`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from lakehouse.cli.app import Context, command
from lakehouse.cli.options import complete_dropped, table_argument
from lakehouse.cli.show import note, show_rows
from lakehouse.core.files import size_text


@command("lake tables\nlake tables --dropped")
@click.option("--dropped", is_flag=True, help="List the tables that undrop can restore instead.")
def tables(context: Context, dropped: bool) -> None:
    """List the tables of the lake, and its views (format: view)."""
    if dropped:
        drops = [(str(drop.table), drop.id, drop.at) for drop in context.lake.drops()]
        show_rows(["table", "id", "dropped_at"], drops, context.output)
        return
    tables = context.lake.tables()
    names = ["table", "format", "rows", "files", "bytes", "partitioned_by", "key", "changed_at"]
    rows: list[tuple[Any, ...]] = []
    for info in tables:
        now = info.current
        stored = now.bytes_total if now else 0
        rows.append(
            (
                str(info.name),
                info.format,
                now.rows_total if now else 0,
                now.files_total if now else 0,
                size_text(stored) if context.output == "table" else stored,
                ", ".join(info.partitioning),
                ", ".join(info.key),
                now.at if now else None,
            )
        )
    rows += [(view, "view", *[None] * 6) for view in context.lake.views()]
    show_rows(names, sorted(rows, key=lambda row: row[0]), context.output)
    for info in tables:
        if info.problem:
            note(f"{info.name}: {info.problem}")
    if not rows:
        note('No tables yet. Try: lake demo, or lake sql "create table shop.orders (id int, item string)"')


@command("lake describe crm.leads\nlake describe crm.leads -o json")
@table_argument
def describe(context: Context, table: str) -> None:
    """Show the columns, partitioning, key, location and current snapshot of TABLE."""
    info = context.lake.describe(table)
    if context.output == "json":
        columns = [asdict(column) for column in info.columns]
        names = ["table", "format", "location", "partitioned_by", "key", "columns", "properties", "current"]
        current = asdict(info.current) if info.current else None
        row = (str(info.name), info.format, info.location, list(info.partitioning), list(info.key), columns)
        show_rows(names, [(*row, dict(info.properties), current)], "json")
        return
    rows = [(column.name, column.type, "" if column.required else "null", column.comment) for column in info.columns]
    show_rows(["column", "type", "nulls", "comment"], rows, context.output)
    note(f"{info.name}: {info.format}, {info.location}")
    if info.partitioning:
        note(f"partitioned by {', '.join(info.partitioning)}")
    if info.key:
        note(f"key {', '.join(info.key)}")
    if info.current:
        now = info.current
        note(f"{now.rows_total} rows in {now.files_total} files, {size_text(now.bytes_total)}, snapshot {now.id}")
    for warning in info.warnings():
        note(f"Warning: {warning}")


@command("lake drop crm.leads\nlake undrop crm.leads")
@table_argument
def drop(context: Context, table: str) -> None:
    """Drop TABLE. Its files stay, so that `lake undrop` can restore it."""
    context.lake.drop(table)
    note(f"Dropped {table}. Restore it: lake undrop {table}")


@command("lake undrop crm.leads\nlake tables --dropped\nlake undrop crm.leads --id 3")
@click.argument("table", shell_complete=complete_dropped)
@click.option(
    "--id",
    "drop_id",
    default="",
    metavar="ID",
    help="Drop to undo, if several tables of the name were dropped: lake tables --dropped (default: the last one).",
)
def undrop(context: Context, table: str, drop_id: str) -> None:
    """Restore the table that was dropped last under the name TABLE, or another one by the id of its drop."""
    info = context.lake.undrop(table, drop_id)
    note(f"{info.name} is restored with {info.current.rows_total if info.current else 0} rows.")
