"""`lake sql`."""

from __future__ import annotations

import sys
import time

import click

from lakehouse.cli.app import Context, command
from lakehouse.cli.options import complete_tag
from lakehouse.cli.show import note, printed_rows, show_result, show_rows
from lakehouse.core.files import size_text
from lakehouse.core.requests import QueryRequest
from lakehouse.core.result import Explain, Result

#: Rows that `-o table` prints without --limit; json and csv have all rows.
_TABLE_ROWS = 100


@command("""lake sql "select status, count(*) from crm.leads group by status"
lake sql "select * from crm.leads" --as-of yesterday -o csv > leads.csv
lake sql "select * from crm.leads version as of 'monday_close' where id = 7" --explain
echo "select 1" | lake sql -""")
@click.argument("query")
@click.option(
    "--engine",
    metavar="NAME",
    help="Engine: auto, duckdb, spark, trino, or one that a package registers (default: query.engine, else auto).",
)
@click.option(
    "--dialect",
    type=click.Choice(["spark", "duckdb"]),
    default="spark",
    help="SQL dialect: spark, or duckdb for DuckDB's own, whose answers may differ from Spark's (default: spark).",
)
@click.option(
    "--as-of",
    default="",
    metavar="WHEN",
    shell_complete=complete_tag,
    help="Read every table as of WHEN: a snapshot id, tag, time, or words such as yesterday (default: now).",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help="Maximum number of rows (default: 100 for table, all for json and csv).",
)
@click.option(
    "--explain", is_flag=True, help="Also show the engine, why it was chosen, and the files and bytes it read."
)
def sql(context: Context, query: str, engine: str | None, limit: int | None, explain: bool, **where: str) -> None:
    """Run one statement of Spark SQL on Iceberg and Hudi tables.

    QUERY is the statement, or - to read it from standard input. By default DuckDB answers queries in this process, and
    Spark runs writes, very large scans, and what DuckDB is not shown to answer as Spark does.
    """
    started = time.monotonic()
    text = sys.stdin.read() if query == "-" else query
    is_table = context.output == "table"
    fetched = limit if limit is not None else (_TABLE_ROWS + 1 if is_table else None)
    result = context.lake.query(QueryRequest(text, where["as_of"], fetched, explain, _own(where["dialect"])), engine)
    if not is_table:
        show_result(result, context.output)
    count, cut = _show_table(result, limit) if is_table else (0, False)
    if explain:
        _show_explanation(result.explain)
    elif changes := str(result.changes):
        note(
            f"{changes} · {result.engine} · {time.monotonic() - started:.2f} s"
            if sys.stderr.isatty()
            else f"{changes}."
        )
    elif is_table and sys.stderr.isatty():
        note(_footer(result, count, cut, time.monotonic() - started))


def _show_table(result: Result, limit: int | None) -> tuple[int, bool]:
    """Print the first rows; returns how many there are, and whether these are not all."""
    rows = printed_rows(result)
    if not result.names and str(result.changes):
        return 0, False
    cut = limit is None and len(rows) > _TABLE_ROWS
    show_rows(result.names, rows[:_TABLE_ROWS] if cut else rows, "table")
    if cut:
        note(f"Only the first {_TABLE_ROWS} rows are shown; --limit N shows more.")
    return len(rows), cut


def _own(dialect: str) -> str:
    return "" if dialect == "spark" else dialect


def _footer(result: Result, count: int, cut: bool, seconds: float) -> str:
    rows = "" if not result.columns else f"{_TABLE_ROWS}+ rows · " if cut else f"{count} row{'s' * (count != 1)} · "
    return f"{rows}{result.engine} · {seconds:.2f} s"


def _show_explanation(explain: Explain) -> None:
    lines = [f"engine: {explain.engine} ({explain.reason})"]
    if explain.files_read is not None:
        lines.append(f"files:  {explain.files_read} of {explain.files_total} read")
    if explain.bytes_read is not None:
        lines.append(f"bytes:  {size_text(explain.bytes_read)} of {size_text(explain.bytes_total)} read")
    if explain.plan:
        lines.append(explain.plan.rstrip())
    note("\n".join(lines))
