"""`lake health`, `maintain`, `cache`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lakehouse.cli.app import Context, command, group
from lakehouse.cli.options import complete_table
from lakehouse.cli.progress import show_progress
from lakehouse.cli.show import note, show_rows
from lakehouse.core.files import size_text
from lakehouse.core.requests import MAINTENANCE_STEPS

if TYPE_CHECKING:
    from lakehouse.maintenance.report import MaintenanceReport

_NO_TABLES = "No tables yet."
tables_argument = click.argument("tables", nargs=-1, metavar="[TABLE]...", shell_complete=complete_table)


@command("lake health\nlake health crm.leads --deep\nlake health -o json")
@tables_argument
@click.option("--deep", is_flag=True, help="Also read manifests and list files: partitions, unreachable bytes.")
def health(context: Context, tables: tuple[str, ...], deep: bool) -> None:
    """Score tables from 0 to 100, with reasons and what would help. The score comes from table metadata alone."""
    healths = context.lake.health(*tables, deep=deep)
    if context.output == "json":
        fields = [health.as_dict() for health in healths]
        show_rows(list(fields[0]) if fields else [], [list(row.values()) for row in fields], "json")
        return
    names = ["table", "score", "files", "bytes", "delete_files", "snapshots", "what", "action", "gain"]
    rows = []
    for health in healths:
        shown = size_text(health.bytes) if context.output == "table" else health.bytes
        head: tuple[object, ...] = (
            health.table,
            health.score,
            health.files,
            shown,
            health.delete_files,
            health.snapshots,
        )
        if not health.reasons:
            rows.append((*head, health.problem, "", ""))
        for reason in health.reasons:
            rows.append((*head, reason.text, reason.action, reason.gain))
            head = ("", "", "", "", "", "") if context.output == "table" else head
    show_rows(names, rows, context.output)
    for health in healths:
        held = {name: count for name, count in health.deep.get("bytes", {}).items() if count}
        if held:
            note(f"{health.table}: " + ", ".join(f"{name} {size_text(count)}" for name, count in held.items()))
    if not healths:
        note(_NO_TABLES)


@command("lake maintain --dry-run\nlake maintain crm.leads\nlake maintain --all")
@tables_argument
@click.option("--all", "everything", is_flag=True, help="Maintain all tables, as their policies say; for cron.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, in files and bytes; change nothing.")
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(MAINTENANCE_STEPS),
    help="Do only this step; may be repeated (default: all).",
)
def maintain(context: Context, tables: tuple[str, ...], everything: bool, dry_run: bool, only: tuple[str, ...]) -> None:
    """Compact tables, expire their old snapshots, and remove files that nothing needs.

    Only what a table needs is done. Name tables, or give --all.
    """
    if bool(tables) == everything and not (dry_run and not tables):
        raise click.UsageError("Name tables, or give --all.")
    with show_progress("Maintaining tables") as status:
        report = context.lake.maintain(*tables, dry_run=dry_run, only=only, progress=status or (lambda text: None))
    if context.output == "json":
        fields = report.as_dict()
        show_rows(list(fields), [list(fields.values())], "json")
    else:
        names = ["table", "action", "state", "files", "files_after", "bytes", "snapshots", "detail"]
        rows = [
            (a.table, a.action, a.state, a.files_before, a.files_after, size_text(a.bytes), a.snapshots, a.detail)
            for a in report.actions
        ]
        show_rows(names, rows, context.output)
        _tell_removed(report)
    if report.failed:
        raise click.exceptions.Exit(1)


def _tell_removed(report: MaintenanceReport) -> None:
    sweep, would = report.sweep, "would be " if report.dry_run else ""
    if not report.actions:
        note("No table needs maintenance.")
    if sweep.removed_files:
        note(f"{sweep.removed_files} files that nothing needs {would}removed: {size_text(sweep.removed_bytes)} freed.")
    if sweep.waiting_files:
        note(
            f"{sweep.waiting_files} files ({size_text(sweep.waiting_bytes)}) are needed by nothing; they are removed by a later"
            " maintenance, after maintenance.delete_after_hours."
        )
    for reason in sweep.skipped:
        note(f"Left alone: {reason}")


@group("lake cache prune --dry-run")
def cache() -> None:
    """Clean the cache that all lakes of this machine's user share."""


@command("lake cache prune --dry-run\nlake cache prune --all", cache)
@click.option("--all", "everything", is_flag=True, help="Remove everything; what is needed is downloaded again.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed; change nothing.")
def prune(context: Context, everything: bool, dry_run: bool) -> None:
    """Remove jars of other releases, and class archives that no Spark has used for 14 days (the newest three stay)."""
    from lakehouse.lake.cache import prune_cache

    removed = prune_cache(context.settings().cache, everything, dry_run)
    rows = [(str(path), size_text(count) if context.output == "table" else count) for path, count in removed]
    show_rows(["path", "bytes"], rows, context.output)
    total = size_text(sum(count for _, count in removed))
    note(f"{total} would be removed." if dry_run else f"{total} removed.")
