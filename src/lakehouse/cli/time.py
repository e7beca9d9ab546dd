"""History: `lake history`, `travel`, `diff`, `rollback`, `log` and `revert`."""

from __future__ import annotations

import click

from lakehouse.cli.app import Context, command
from lakehouse.cli.options import complete_tag, limit_option, message_option, optional_table_argument, table_argument
from lakehouse.cli.show import note, printed_rows, relative_paths, show_rows, snapshot_row
from lakehouse.core.names import MAIN, TableName


@command("lake history crm.leads\nlake history crm.leads -o json")
@table_argument
def history(context: Context, table: str) -> None:
    """List the snapshots (Iceberg) or instants (Hudi) of TABLE, oldest first."""
    names = ["id", "at", "operation", "rows_added", "rows_removed", "rows_total", "source", "branch", "current"]
    snapshots = context.lake.history(table)
    if context.output == "table":  # shorter names; the branch marks the current snapshot
        names = [name.removeprefix("rows_") for name in names[:-1]]
        rows = [snapshot_row(snapshot, relative_paths(snapshot.source), "main") for snapshot in snapshots]
    else:
        rows = [(*snapshot_row(snapshot, snapshot.source, "main"), snapshot.is_current) for snapshot in snapshots]
    show_rows(names, rows, context.output)


@command("lake travel crm.leads yesterday\nlake travel crm.leads 2026-01-31T12:00:00 --limit 10")
@table_argument
@click.argument("when", shell_complete=complete_tag)
@limit_option("rows to show", 100)
def travel(context: Context, table: str, when: str, limit: int) -> None:
    """Show TABLE as it was at WHEN.

    WHEN is a snapshot id, a tag, an ISO time, or words such as yesterday and '2 hours ago'. Times are UTC.
    """
    result = context.lake.travel(table, when, limit)
    show_rows(result.names, printed_rows(result), context.output)


@command("lake diff crm.leads --from yesterday\nlake diff crm.leads --from 2026-01-01 --to 2026-02-01 --key id")
@table_argument
@click.option("--from", "start", required=True, metavar="WHEN", shell_complete=complete_tag, help="Earlier moment.")
@click.option(
    "--to", "end", default="", metavar="WHEN", shell_complete=complete_tag, help="Later moment (default: now)."
)
@click.option("--key", default="", metavar="A,B", help="Columns that identify a row (default: the key of the table).")
@limit_option("rows to show", 100)
def diff(context: Context, table: str, start: str, end: str, key: str, limit: int) -> None:
    """Show the rows of TABLE that were added, removed and changed between two moments, and changes of its columns.

    Rows are matched by key. Without a key, a changed row is one removed and one added row. WHEN is a snapshot id, a tag,
    an ISO time, or words such as yesterday and '2 hours ago'. Times are UTC.
    """
    names = [part.strip() for part in key.split(",") if part.strip()]
    diff = context.lake.diff(table, start, end, names, limit)
    show_rows(diff.rows.names, printed_rows(diff.rows), context.output)
    for column in diff.columns_added:
        note(f"column added: {column.name} {column.type}")
    for column in diff.columns_removed:
        note(f"column removed: {column.name} {column.type}")
    for old, new in diff.columns_changed:
        note(f"column changed: {old.name} {old.type} -> {new.type}")
    by = f" by key {', '.join(diff.key)}" if diff.key else " (no key; set one with --key)"
    note(f"{diff.added} added, {diff.removed} removed, {diff.changed} changed{by}, from {diff.start} to {diff.end}")


@command("lake rollback crm.leads --to yesterday\nlake rollback crm.leads --to 5781947118336215154")
@table_argument
@click.option("--to", "when", required=True, metavar="WHEN", shell_complete=complete_tag, help="Snapshot to return to.")
def rollback(context: Context, table: str, when: str) -> None:
    """Set TABLE back to its state at WHEN. Its history stays, so a rollback can be rolled back.

    WHEN is a snapshot id, a tag, an ISO time, or words such as yesterday and '2 hours ago'. Times are UTC.
    """
    now = context.lake.rollback(table, when)
    note(f"{table} is at snapshot {now.id} again: {now.rows_total} rows.")


@command("lake log\nlake log silver.trips --limit 5\nlake log -o json")
@optional_table_argument
@limit_option("commits to list", 20, minimum=1)
def log(context: Context, table: str, limit: int) -> None:
    """List the commits of all tables, or of one TABLE, newest first: runs, ingests, merges, and statements of any engine."""
    name = TableName.parse(table) if table else None
    if name is not None:
        context.lake.table(table)  # raises NoSuchTableError with the nearest names
    lines = context.lake.refs.log.lines(name, limit, context.branch or MAIN)
    names = ["commit", "at", "what", "author", "run", "pipeline", "source", "message", "tables"]
    rows = [tuple(getattr(line, name) for name in names) for line in lines]
    if context.output == "json":
        rows = [(*row[:-1], list(row[-1])) for row in rows]
    show_rows(names, rows, context.output)
    if not rows:
        note("There are no commits yet.")


@command("lake cherry-pick 12\nlake --branch exp log && lake cherry-pick 17 -m 'only this correction'")
@click.argument("commit")
@message_option
def cherry_pick(context: Context, commit: str, message: str) -> None:
    """Publish what COMMIT changed, on any branch, to main. COMMIT is a number of `lake log`, or a run.

    If main has changed the same tables, rows are combined by key; rows that both changed are a conflict, and nothing is published.
    """
    done = context.lake.refs.log.cherry_pick(commit, message)
    note(f"Published to all tables at once: commit {done.entry}." if done.entry else "There was nothing to publish.")


@command("lake revert 12 --dry-run\nlake revert run_20260114_091500_ab12cd -m 'the source was wrong'")
@click.argument("commit")
@message_option
@click.option("--dry-run", is_flag=True, help="Only show what it would change.")
def revert(context: Context, commit: str, message: str, dry_run: bool) -> None:
    """Undo COMMIT in all of its tables at once. COMMIT is a number of `lake log`, or a run.

    A revert is refused if one of the tables has changed since. It is a commit itself and can be reverted.
    """
    if dry_run:
        changes = context.lake.refs.log.preview_revert(commit)
        rows = [
            (change.table, change.change, change.rows_before, change.rows_after, change.conflict) for change in changes
        ]
        show_rows(["table", "change", "rows_before", "rows_after", "conflict"], rows, context.output)
        return
    done = context.lake.refs.log.revert(commit, message)
    note(f"Reverted {commit} in all of its tables at once: commit {done.entry}.")
