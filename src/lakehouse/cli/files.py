"""`lake ingest` and `lake export`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.app import Context, command
from lakehouse.cli.options import complete_table, table_argument
from lakehouse.cli.show import note, relative_paths, show_rows, waiting

if TYPE_CHECKING:
    from lakehouse.ingest.model import Report


@command("""lake ingest leads.csv --into crm.leads --key id
lake ingest 'exports/*.csv.gz' --into shop.orders --partition-by "days(ordered_at)"
lake ingest s3://exports/2026/ --into shop.orders
lake ingest leads.csv --into crm.leads --dry-run""")
@click.argument("sources", nargs=-1, required=True)
@click.option(
    "--into", required=True, metavar="NS.TABLE", shell_complete=complete_table, help="The table; made if missing."
)
@click.option("--key", default="", metavar="A,B", help="Columns that identify a row; rows are then upserted.")
@click.option(
    "--mode", type=click.Choice(["append", "upsert", "replace"]), help="By default upsert with a key, else append."
)
@click.option(
    "--order-by", default="", metavar="COLUMN", help="Of rows with one key, the highest here wins; else the last."
)
@click.option(
    "--format", "table_format", type=click.Choice(["iceberg", "hudi"]), help="Of a new table; iceberg unless said."
)
@click.option(
    "--contract",
    type=click.Choice(["evolve", "freeze", "quarantine"]),
    default="evolve",
    show_default=True,
    help="When files differ from the table: let it follow them, refuse them, or set the rows aside.",
)
@click.option("--partition-by", default="", metavar="EXPR", help='Of a new table, e.g. "days(ts), bucket(16, id)".')
@click.option("--sort-by", default="", metavar="COLUMNS", help="Of a new table: how rows are sorted in its files.")
@click.option(
    "--null", "null_words", multiple=True, metavar="WORD", help="A word that means no value; may be repeated."
)
@click.option("--delimiter", help="Instead of looking for it; also --encoding and --no-header.")
@click.option("--encoding", metavar="NAME", help="Instead of looking for it.")
@click.option("--header/--no-header", default=None, help="Whether the first row names the columns; else by looking.")
@click.option("--force", is_flag=True, help="Also files that were ingested before.")
@click.option("--dry-run", is_flag=True, help="Show what was found and what would change; write nothing.")
def ingest(context: Context, sources: tuple[str, ...], dry_run: bool, **options: Any) -> None:
    """Bring files into a table in one atomic commit, each file once.

    SOURCES are files, patterns and folders, here or in s3://, of CSV, TSV, JSON lines or Parquet, plain or gzip, zstd,
    bzip2. How a CSV is written (delimiter, quotes, encoding, header) and its types are found by looking at all of it.
    """
    from lakehouse.ingest.files import NULL_WORDS, ReadSettings

    read = ReadSettings(
        null_words=options["null_words"] or NULL_WORDS,
        delimiter=options["delimiter"],
        encoding=options["encoding"],
        header=options["header"],
    )
    with waiting("Looking" if dry_run else "Ingesting"):
        report = context.lake.ingest(
            *sources,
            into=options["into"],
            dry_run=dry_run,
            mode=options["mode"] or "",
            key=tuple(part.strip() for part in options["key"].split(",") if part.strip()),
            order_by=options["order_by"],
            format=options["table_format"] or "",
            contract=options["contract"],
            partition_by=options["partition_by"],
            sort_by=options["sort_by"],
            force=options["force"],
            read=read,
        )
    _tell(report, context.output)


def _tell(report: Report, output: str) -> None:
    if report.dry_run or output == "table":
        for line in (*report.notes, *report.changes):
            note(line)
        for name in report.skipped:
            note(f"{relative_paths(name)} is in {report.table} already (--force repeats it).")
    if report.dry_run and output == "table":
        rows = [(c.header, c.name, c.type, "new" if c.new else "missing" if c.missing else "") for c in report.columns]
        show_rows(["header", "column", "type", ""], rows, output)
        note(f"Nothing was written. Mode: {report.mode}.")
        return
    facts = asdict(report)
    names = ["table", "mode", "rows_read", "inserted", "updated", "unchanged", "rejected", "snapshot"]
    facts["table"] = str(report.table)
    if output == "json":
        names += ["files", "skipped", "changes", "notes", "dry_run"]
    show_rows(names, [tuple(facts[name] for name in names)], output)
    if report.rejected and output == "table":
        note(f"{report.rejected} rows were set aside: select * from {report.table}__rejected")


@command("lake export crm.leads leads.parquet\nlake export crm.leads leads.csv.gz --as-of yesterday")
@table_argument
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--as-of", default="", metavar="WHEN", help="The table as it was then.")
def export(context: Context, table: str, file: Path, as_of: str) -> None:
    """Write a table to FILE: CSV, JSON lines, Parquet or Arrow, by its ending; .gz and .zst compress text."""
    with waiting("Writing"):
        rows = context.lake.export(table, file, as_of)
    note(f"{rows} rows written to {file}.")
