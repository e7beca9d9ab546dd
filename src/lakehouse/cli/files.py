"""`lake ingest` and `lake export`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.app import Context, command
from lakehouse.cli.options import complete_table, table_argument
from lakehouse.cli.progress import show_progress
from lakehouse.cli.show import note, relative_paths, show_rows
from lakehouse.core.names import TableName

if TYPE_CHECKING:
    from lakehouse.ingest.report import IngestReport


@command("""lake ingest leads.csv --into crm.leads --key id
lake ingest 'exports/*.csv.gz' --into shop.orders --partition-by "days(ordered_at)"
lake ingest s3://exports/2026/ --into shop.orders
lake ingest leads.csv --into crm.leads --dry-run""")
@click.argument("sources", nargs=-1, required=True)
@click.option(
    "--into",
    required=True,
    metavar="NS.TABLE",
    shell_complete=complete_table,
    help="Table to write to; created if missing.",
)
@click.option("--key", default="", metavar="A,B", help="Columns that identify a row (default: the key of the table).")
@click.option(
    "--mode",
    type=click.Choice(["append", "upsert", "replace"]),
    help="How to write rows (default: upsert with a key, append without).",
)
@click.option(
    "--order-by",
    default="",
    metavar="COLUMN",
    help="Of rows with the same key, keep the highest value of COLUMN (default: the last row).",
)
@click.option(
    "--format", "table_format", type=click.Choice(["iceberg", "hudi"]), help="Format of a new table (default: iceberg)."
)
@click.option(
    "--contract",
    type=click.Choice(["evolve", "freeze", "quarantine"]),
    default="evolve",
    help="If files do not match the table: change the table, reject the files, or quarantine the rows (default: evolve).",
)
@click.option(
    "--partition-by",
    default="",
    metavar="EXPR",
    help='Partitioning of a new table, e.g. "days(ts), bucket(16, id)" (default: none).',
)
@click.option(
    "--sort-by", default="", metavar="COLUMNS", help="Sort order within the files of a new table (default: none)."
)
@click.option(
    "--null",
    "null_words",
    multiple=True,
    metavar="WORD",
    help="Text that means NULL; may be repeated (default: the empty text, NULL, NA and similar).",
)
@click.option("--delimiter", metavar="CHAR", help="Field delimiter (default: detect).")
@click.option("--encoding", metavar="NAME", help="Character encoding (default: detect).")
@click.option("--header/--no-header", default=None, help="Whether the first row has column names (default: detect).")
@click.option("--decimal", metavar="CHAR", help="Decimal separator of a CSV: . or , (default: .).")
@click.option("--thousands", metavar="CHAR", help="Separator of thousands in a CSV (default: none).")
@click.option("--sheet", default="", metavar="NAME", help="Sheet of an Excel workbook (default: the first).")
@click.option(
    "--skip-rows",
    type=int,
    default=0,
    metavar="N",
    help="Lines of a CSV, or rows of a sheet, above the header (default: 0).",
)
@click.option("--flatten", is_flag=True, help="Unpack structs: a.b becomes the column a_b (default: keep them).")
@click.option("--force", is_flag=True, help="Ingest files again that were ingested before (default: skip them).")
@click.option("--dry-run", is_flag=True, help="Show the columns and types found and what would change; write nothing.")
def ingest(context: Context, sources: tuple[str, ...], dry_run: bool, **options: Any) -> None:
    """Load files into a table in one atomic commit, each file once.

    SOURCES are files, patterns and folders, local or in s3://, of CSV, TSV, JSON, Parquet or Excel, uncompressed or with
    gzip, zstd or bzip2. The content decides, not the name. Delimiter, quotes, encoding, header and types of a CSV are detected from the whole file.
    """
    from lakehouse.core.requests import NULL_WORDS, IngestRequest, ReadOptions

    read = ReadOptions(
        null_words=options["null_words"] or NULL_WORDS,
        delimiter=options["delimiter"],
        encoding=options["encoding"],
        header=options["header"],
        flatten=options["flatten"],
        sheet=options["sheet"],
        skip_rows=options["skip_rows"],
        decimal=options["decimal"] or ".",
        thousands=options["thousands"] or "",
    )
    with show_progress("Inspecting files" if dry_run else "Ingesting"):
        request = IngestRequest(
            sources,
            TableName.parse(options["into"]),
            mode=options["mode"] or "",
            key=tuple(part.strip() for part in options["key"].split(",") if part.strip()),
            order_by=options["order_by"],
            format=options["table_format"] or "",
            contract=options["contract"],
            partition_by=options["partition_by"],
            sort_by=options["sort_by"],
            force=options["force"],
            read=read,
            dry_run=dry_run,
        )
        report = context.lake.ingest_files(request)
    _show_report(report, context.output)


def _show_report(report: IngestReport, output: str) -> None:
    if report.dry_run or output == "table":
        for line in (*report.notes, *report.changes):
            note(line)
        for name in report.skipped:
            note(f"{relative_paths(name)} is already in {report.table}; --force ingests it again.")
    if report.dry_run and output == "table":
        rows = [(c.header, c.name, c.type, "new" if c.new else "missing" if c.missing else "") for c in report.columns]
        show_rows(["header", "column", "type", ""], rows, output)
        counts = ("inserted", "updated", "unchanged", "rejected", "superseded")
        would = ", ".join(f"{getattr(report, name):,} {name}" for name in counts)
        note(f"Nothing was written. Mode: {report.mode}. Of {report.rows_read:,} rows, these would be: {would}.")
        return
    values = asdict(report)
    names = ["table", "mode", "rows_read", "inserted", "updated", "unchanged", "rejected", "snapshot"]
    values["table"] = str(report.table)
    if output == "json":
        names += ["superseded", "files", "skipped", "changes", "notes", "dry_run"]
    show_rows(names, [tuple(values[name] for name in names)], output)
    if report.superseded and output == "table":
        superseded = "1 row was" if report.superseded == 1 else f"{report.superseded} rows were"
        note(f"{superseded} superseded by another row with the same key.")
    if report.rejected and output == "table":
        rejected = "1 row was" if report.rejected == 1 else f"{report.rejected} rows were"
        note(f"{rejected} rejected: select * from {report.table}__rejected")


@command("lake export crm.leads leads.parquet\nlake export crm.leads leads.csv.gz --as-of yesterday")
@table_argument
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--as-of",
    default="",
    metavar="WHEN",
    help="State of the table: a snapshot id, tag, time, or words such as yesterday (default: now).",
)
def export(context: Context, table: str, file: Path, as_of: str) -> None:
    """Write TABLE to FILE as CSV, JSON lines, Parquet or Arrow.

    The extension of FILE decides: .csv, .jsonl, .parquet, .arrow; .gz and .zst compress CSV and JSON lines.
    """
    with show_progress("Exporting"):
        rows = context.local_lake.export(table, file, as_of)
    note(f"{rows} {'row' if rows == 1 else 'rows'} written to {file}.")
