"""`lake sql`."""

from __future__ import annotations

import sys
import time

import click

from lakehouse.cli.app import Context, command
from lakehouse.cli.show import note, show_rows, size
from lakehouse.core.result import Explain, Result

#: What a person is shown unless they ask for more; a program that reads json or csv gets everything.
_ROWS_FOR_PEOPLE = 100


@command("""lake sql "select status, count(*) from crm.leads group by status"
lake sql "select * from crm.leads" --as-of yesterday -o csv > leads.csv
lake sql "select * from crm.leads version as of 'monday_close' where id = 7" --explain
echo "select 1" | lake sql -""")
@click.argument("query")
@click.option("--engine", type=click.Choice(["auto", "duckdb", "spark", "trino"]), help="Which engine to use.")
@click.option("--as-of", default="", metavar="WHEN", help="Read every table as it was then.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="At most N rows.")
@click.option("--explain", is_flag=True, help="Also show the engine, why it was chosen, and what it read.")
def sql(context: Context, query: str, engine: str | None, limit: int | None, explain: bool, **where: str) -> None:
    """Run one SQL statement: Spark's SQL, over Iceberg and Hudi tables alike.

    QUERY is the statement, or - to read it from standard input. Reads are answered by DuckDB in a moment, writes and
    very large scans by Spark.
    """
    started = time.monotonic()
    text = sys.stdin.read() if query == "-" else query
    people = context.output == "table"
    wanted = limit if limit is not None else (_ROWS_FOR_PEOPLE + 1 if people else None)
    result = context.lake.sql(text, engine=engine, limit=wanted, explain=explain, **where)
    rows = result.rows()
    cut = people and limit is None and len(rows) > _ROWS_FOR_PEOPLE
    show_rows(result.names, rows[:_ROWS_FOR_PEOPLE] if cut else rows, context.output)
    if cut:
        note(f"The first {_ROWS_FOR_PEOPLE} rows; more with --limit N.")
    if explain:
        _explain(result.explain)
    elif people and sys.stderr.isatty():
        note(_footer(result, len(rows), cut, time.monotonic() - started))


def _footer(result: Result, count: int, cut: bool, seconds: float) -> str:
    rows = (
        "" if not result.columns else f"{_ROWS_FOR_PEOPLE}+ rows · " if cut else f"{count} row{'s' * (count != 1)} · "
    )
    return f"{rows}{result.engine} · {seconds:.2f} s"


def _explain(explain: Explain) -> None:
    lines = [f"engine: {explain.engine} ({explain.reason})"]
    if explain.files_read is not None:
        lines.append(f"files:  {explain.files_read} of {explain.files_total} read")
    if explain.bytes_read is not None:
        lines.append(f"bytes:  {size(explain.bytes_read)} of {size(explain.bytes_total)} read")
    if explain.plan:
        lines.append(explain.plan.rstrip())
    note("\n".join(lines))
