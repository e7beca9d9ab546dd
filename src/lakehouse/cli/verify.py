"""`lake verify`."""

from __future__ import annotations

import click

from lakehouse.cli.app import Context, command
from lakehouse.cli.options import complete_table
from lakehouse.cli.show import note, show_rows, show_status, size


@command("lake verify\nlake verify shop.orders --deep\nlake verify --against s3://backups/lake")
@click.argument("tables", nargs=-1, shell_complete=complete_table)
@click.option("--deep", is_flag=True, help="Also read all data, and compare it with every checksum that there is.")
@click.option(
    "--against", default="", metavar="DEST", help="Also compare with the newest backup in DEST (default: do not)."
)
def verify(context: Context, tables: tuple[str, ...], deep: bool, against: str) -> None:
    """Check every file, branch, tag, log entry and run of the lake, or of some TABLES. Nothing is changed.

    Exits with 1 if something is damaged. Files that nothing refers to are listed, but they are no damage.
    """
    with show_status("Verifying") as update:
        report = context.lake.verify(*tables, deep=deep, against=against, progress=update or (lambda _: None))
    rows = [
        ("damage" if each.is_damage else "notice", each.kind, each.table, each.ref, each.where, each.detail)
        for each in sorted(report.findings, key=lambda each: (not each.is_damage, each.table, each.where))
    ]
    if rows or context.output != "table":
        show_rows(["severity", "kind", "table", "ref", "where", "detail"], rows, context.output)
    damaged = len(report.damage)
    note(
        f"Checked {report.tables} tables, {report.snapshots} snapshots, {report.files} files ({size(report.bytes)})"
        f" in {report.seconds:.1f} s: {damaged or 'no'} damage, {len(rows) - damaged} notices."
    )
    if damaged:
        note("Restore what is damaged from a backup (docs/backup.md).")
        raise click.exceptions.Exit(1)
