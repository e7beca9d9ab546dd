"""`lake backup`, `restore`, `clone`, `migrate` and `verify`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click

from lakehouse.cli.app import Context, command
from lakehouse.cli.options import complete_table, from_option
from lakehouse.cli.progress import show_progress
from lakehouse.cli.show import note, show_rows, show_status
from lakehouse.core.files import size_text


@command("lake backup /mnt/backups/lake\nlake backup s3://backups/lake\nlake backup /mnt/backups/lake --list")
@click.argument("dest")
@click.option("--full", is_flag=True, help="Read every file again, also those that an earlier backup in DEST holds.")
@click.option("--list", "listing", is_flag=True, help="List the backups in DEST; make none.")
def backup(context: Context, dest: str, full: bool, listing: bool) -> None:
    """Back the lake up to DEST, a folder or s3://bucket/prefix, while writers work.

    The first backup copies everything. Each further one in the same DEST copies only what is new. A damaged table is left
    out, and the command exits with 1.
    """
    if listing:
        _list(context, dest)
        return
    with show_progress("Backing up") as update:
        done = context.local_lake.backup(dest, full, _progress(update))
    columns = ["backup", "files", "bytes", "copied_files", "copied_bytes"]
    show_rows(columns, [(done.id, done.files, done.bytes, done.copied_files, done.copied_bytes)], context.output)
    _notes(done.notes)
    note(
        f"Backup {done.id}: {done.files} files, {size_text(done.copied_bytes)} new. Restore it: lake restore {dest} --home DIR"
    )
    if done.left_out:
        note(f"{len(done.left_out)} damaged tables are not in it: lake verify lists what is missing (docs/backup.md).")
        raise click.exceptions.Exit(1)


def _list(context: Context, dest: str) -> None:
    from lakehouse.lake.copies import list_backups

    rows = [
        (
            manifest.id,
            manifest.made_at,
            len(manifest.state.main),
            len(manifest.state.branches),
            len(manifest.files),
            manifest.size,
        )
        for manifest in list_backups(context.settings(), dest)
    ]
    show_rows(["backup", "made_at", "tables", "branches", "files", "bytes"], rows, context.output)


@command("lake restore /mnt/backups/lake --home restored\nlake --profile sql restore s3://backups/lake")
@click.argument("source", metavar="DEST")
@click.option("--backup", "backup_id", default="", metavar="ID", help="Which backup in DEST (default: the newest).")
def restore(context: Context, source: str, backup_id: str) -> None:
    """Restore a backup in DEST into an empty lake: another folder, another bucket, or another kind of catalog.

    All paths are rewritten, and every snapshot is compared with the backup. A lake that holds something is never
    overwritten. If a restore is interrupted, the same command finishes it; until then the folder cannot be used as a lake.
    """
    from lakehouse.lake.copies import restore_lake

    with show_status("Restoring") as update:
        done = restore_lake(context.settings(), source, backup_id, _progress(update))
    columns = ["tables", "branches", "tags", "files"]
    show_rows(columns, [(done.tables, done.branches, done.tags, done.files)], context.output)
    _notes(done.notes)
    note(f"Restored {done.tables} tables into {context.settings().home}; every snapshot is equal to the backup.")


@command("lake clone --shallow experiment\nlake --home experiment sql 'delete from shop.orders'")
@click.argument("folder", metavar="DIR")
@click.option("--shallow", is_flag=True, required=True, help="Share the data files; copy only metadata.")
@from_option
def clone(context: Context, folder: str, shallow: bool, from_ref: str) -> None:
    """Create a lake in DIR that shares the data files of this one, for experiments on the side.

    What the clone writes goes to DIR. A tag in this lake keeps the shared files: drop it when the clone is gone.
    """
    done = context.local_lake.clone(folder, from_ref)
    show_rows(["tables", "tag"], [(done.tables, done.tag)], context.output)
    _notes(done.notes)
    note(f"The tag {done.tag} keeps the shared files. Without the clone: lake tag drop {done.tag}")


@command("lake --profile sql up\nlake migrate --to-profile sql\nlake --profile sql tables")
@click.option(
    "--to-profile", "target", required=True, metavar="NAME", help="The profile to copy to: sql, rest, stack or hive."
)
def migrate(context: Context, target: str) -> None:
    """Copy an embedded lake to the servers of another profile, with its history, branches and tags.

    This lake stays as it is. Stop what writes to it first. If a migration is interrupted, the same command finishes it.
    """
    with show_status("Migrating") as update:
        done = context.local_lake.migrate(target, _progress(update))
    columns = ["tables", "branches", "tags", "files", "written"]
    show_rows(columns, [(done.tables, done.branches, done.tags, done.files, done.written)], context.output)
    _notes(done.notes)
    note(f"Migrated {done.tables} tables. Use them with: lake --profile {target} tables (or LAKE_PROFILE={target})")


def _progress(update: Callable[[str], None] | None) -> Callable[[str], None]:
    return update or note


def _notes(notes: Iterable[str]) -> None:
    for line in notes:
        note(f"Not taken: {line}.")


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
        (
            "damage" if finding.is_damage else "notice",
            finding.kind,
            finding.table,
            finding.ref,
            finding.where,
            finding.detail,
        )
        for finding in sorted(
            report.findings, key=lambda finding: (not finding.is_damage, finding.table, finding.where)
        )
    ]
    if rows or context.output != "table":
        show_rows(["severity", "kind", "table", "ref", "where", "detail"], rows, context.output)
    damaged = len(report.damage)
    note(
        f"Checked {report.tables} tables, {report.snapshots} snapshots, {report.files} files ({size_text(report.bytes)})"
        f" in {report.seconds:.1f} s: {damaged or 'no'} damage, {len(rows) - damaged} notices."
    )
    if damaged:
        note("Restore what is damaged from a backup (docs/backup.md).")
        raise click.exceptions.Exit(1)
