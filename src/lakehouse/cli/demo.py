"""`lake demo`: a guided tour that prints each command as a user types it, and runs it."""

from __future__ import annotations

import shlex
import shutil
import sys
from datetime import date
from importlib.util import find_spec
from pathlib import Path

from lakehouse.cli.app import Context, command, lake
from lakehouse.cli.show import relative_paths

_CHAPTERS: list[tuple[str, list[list[str]]]] = [
    (
        "An Iceberg table with hidden partitioning by day",
        [
            [
                "sql",
                "create table demo.orders (id int, customer int, item string, price decimal(10,2), at timestamp)"
                " using iceberg partitioned by (days(at))",
            ],
            [
                "sql",
                "insert into demo.orders values (1, 10, 'tea', 2.50, timestamp '2026-01-14 09:00:00'),"
                " (2, 11, 'mate', 3.20, timestamp '2026-01-14 11:30:00'),"
                " (3, 10, 'coffee', 2.90, timestamp '2026-01-15 08:15:00')",
            ],
        ],
    ),
    (
        "A Hudi table beside it, with a key for rows that change",
        [
            [
                "sql",
                "create table demo.customers (id int, name string, city string, changed_at bigint) using hudi"
                " tblproperties (primaryKey = 'id', preCombineField = 'changed_at')",
            ],
            ["sql", "insert into demo.customers values (10, 'Ada', 'London', 1), (11, 'Edsger', 'Rotterdam', 1)"],
        ],
    ),
    (
        "Both in one query, without Spark: DuckDB reads them in this process",
        [
            [
                "sql",
                "select c.name, c.city, count(*) as orders, sum(o.price) as spent from demo.orders o"
                " join demo.customers c on o.customer = c.id group by c.name, c.city order by spent desc",
            ],
            ["sql", "select item, price from demo.orders where at >= timestamp '2026-01-15 00:00:00'", "--explain"],
        ],
    ),
    (
        "Changes: a price, a city, a new customer, a new column",
        [
            ["sql", "update demo.orders set price = 2.80 where item = 'tea'"],
            ["sql", "alter table demo.orders add column note string"],
            [
                "sql",
                "insert into demo.orders values (4, 12, 'cocoa', 3.50, timestamp '2026-01-16 15:00:00', 'no sugar')",
            ],
            [
                "sql",
                "merge into demo.customers t using (select 11 as id, 'Edsger' as name, 'Austin' as city, 2L as changed_at"
                " union all select 12, 'Grace', 'New York', 2L) s on t.id = s.id"
                " when matched then update set * when not matched then insert *",
            ],
        ],
    ),
    ("Every change is a snapshot", [["history", "demo.orders"], ["history", "demo.customers"]]),
    (
        "Time travel, and the changes since then",
        [
            ["travel", "demo.orders", "{first:demo.orders}"],
            ["diff", "demo.orders", "--from", "{first:demo.orders}", "--key", "id"],
            ["diff", "demo.customers", "--from", "{first:demo.customers}"],
        ],
    ),
    (
        "A mistake, and how to undo it",
        [
            ["sql", "delete from demo.orders where customer = 10"],
            ["rollback", "demo.orders", "--to", "{before:demo.orders}"],
            ["drop", "demo.customers"],
            ["undrop", "demo.customers"],
            ["tables"],
        ],
    ),
]


_LEADS = {
    "leads_monday.csv": "Id,Full Name,E-Mail,Score\n1,Ada Lovelace,ada@example.org,10\n2,Edsger,edsger@example.org,7\n",
    "leads_tuesday.csv": "Id,Full Name,E-Mail,Score,City\n2,Edsger,edsger@example.org,9,Austin\n"
    "1,Ada Lovelace,ada@example.org,10,\n3,Grace,grace@example.org,8,New York\n",
}


def _leads(table: str, more: list[str]) -> list[list[str]]:
    """Ingest Monday's leads, Tuesday's (an update, an insert, a new column), Tuesday's again; then show the changes."""
    into = ["--into", table]
    return [
        ["ingest", "{file:leads_monday.csv}", *into, "--key", "id", *more],
        ["ingest", "{file:leads_tuesday.csv}", *into],
        ["ingest", "{file:leads_tuesday.csv}", *into],
        ["history", table],
        ["diff", table, "--from", f"{{first:{table}}}"],
    ]


_CHAPTERS += [
    ("Files: a CSV of leads and that of the next day, merged by key, each file once", _leads("demo.leads", [])),
    ("The same into Hudi", _leads("demo.leads_hudi", ["--format", "hudi"])),
]

#: Pipelines on sample data: three days of minute bars, two months of taxi trips, a folder of leads.
_DAYS = ("2026-01-14", "2026-01-15", "2026-01-16")
_MONTHS = ("2025-12", "2026-01")
_CHAPTERS += [
    (
        "A pipeline: minute bars from flat files to gold, as one transaction",
        [
            ["run", "market"],
            [
                "sql",
                "select ticker, date, open, close, volume, vwap from gold.daily_bars order by ticker, date limit 6",
            ],
            [
                "sql",
                "select reason, count(*) as rows from silver.minute_aggs__rejected group by reason order by 2 desc",
            ],
        ],
    ),
    (
        "Another pipeline: months of taxi trips, with the invalid values that real ones have",
        [
            ["run", "taxi"],
            [
                "sql",
                "select month, sum(trips) as trips, sum(revenue) as revenue from gold.fct_hourly_revenue group by month order by 1",
            ],
            ["report", "bronze.yellow_trips"],
            ["sql", "select count(*) as trips_then from bronze.yellow_trips", "--as-of", "{first:bronze.yellow_trips}"],
        ],
    ),
    (
        "A watched folder: each file is merged once; a second run finds nothing new",
        [["run", "files"], ["run", "files"], ["runs"]],
    ),
]
_QUESTION = (
    "A question in plain words: how it is read, its rows, and its SQL with --sql",
    [["ask", "top 3 hours by revenue paid in cash in January 2026"]],
)
_DBT = (
    "The taxi tables once more as dbt models: built and tested on a branch, published if every test passes",
    [
        ["dbt", "build"],
        ["sql", "select sum(trips) as trips, sum(revenue) as revenue from dbt_gold.fct_daily_trips"],
    ],
)
_SOCIAL = (
    "Tables of PostgreSQL, because sources.social is set",
    [["run", "social"], ["sql", "select * from gold.daily_signups order by 1 limit 5"]],
)
_TABLES = ("demo.orders", "demo.customers", "demo.leads", "demo.leads_hudi")


@command("lake demo\nLAKE_HOME=/tmp/tour lake demo")
def demo(context: Context) -> None:
    """Run a guided tour of a small lake: both formats, a join, changes, time travel, undo, files, pipelines.

    It can be run repeatedly: it drops and creates only its own tables.
    """
    for pipeline, folder in (("market", "bars"), ("taxi", "trips"), ("files", "leads")):
        # The same as path in [sources.market] of lake.toml, or LAKE_SOURCES__MARKET__PATH.
        context.flags[f"sources.{pipeline}.path"] = str(_file(context, folder))
    existing = {str(info.name) for info in context.lake.tables()}
    for name in existing & set(_TABLES):
        context.lake.drop(name)
    _write_files(context)
    chapters = [
        *_CHAPTERS,
        *([_DBT] if find_spec("dbt") else []),
        *([_SOCIAL] if context.settings().sources.get("social") else []),
        _QUESTION,
    ]
    for number, (title, commands) in enumerate(chapters, start=1):
        _print(f"\n{number}. {title}", "1")
        for arguments in commands:
            _run(context, [_fill_in(context, argument) for argument in arguments])
    _print(f"\nGo on with this lake: {_next_command(context, 'tables')}", "1")
    _print(f"Look at it in a browser: {_next_command(context, 'ui')}", "1")


def _next_command(context: Context, name: str) -> str:
    """A command on this lake, as one types it in the same folder."""
    program = "lake" if shutil.which("lake") else sys.argv[0]
    settings = context.settings()
    # The shell may have set LAKE_HOME for this one command, as `make demo` does, so the line repeats it.
    given = settings.origins.get("home", "").startswith(("flag", "environment"))
    words = [program, *(["--home", str(settings.home)] if given else []), name]
    return relative_paths(shlex.join(words))


def _write_files(context: Context) -> None:
    from lakehouse.pipelines.market.sample import write_day
    from lakehouse.pipelines.taxi.sample import write_month

    for name, content in _LEADS.items():
        _file(context, name).write_text(content)
    for folder in ("bars", "trips", "leads"):
        _file(context, folder).mkdir(exist_ok=True)
    for day in _DAYS:
        write_day(_file(context, "bars"), date.fromisoformat(day))
    for month in _MONTHS:
        write_month(_file(context, "trips"), month, rows=5_000)
    for name, content in _LEADS.items():
        (_file(context, "leads") / name).write_text(content)


def _run(context: Context, arguments: list[str]) -> None:
    _print("\n$ lake " + " ".join(_quoted(argument) for argument in arguments), "36")
    context.may_hand_over = False  # the arguments of this process are those of the demo
    lake.main(arguments, prog_name="lake", standalone_mode=False, obj=context)
    sys.stdout.flush()


def _quoted(argument: str) -> str:
    """Put an argument with spaces in double quotes, since SQL contains single ones."""
    return f'"{argument}"' if " " in argument else argument


def _fill_in(context: Context, argument: str) -> str:
    """Replace {file:NAME} by a path, {first:TABLE} and {before:TABLE} by the id of the first or previous snapshot."""
    kind, _, table = argument.strip("{}").partition(":")
    if not argument.startswith("{"):
        return argument
    if kind == "file":
        return relative_paths(str(_file(context, table)))
    return context.lake.history(table)[0 if kind == "first" else -2].id


def _file(context: Context, name: str) -> Path:
    """Return the path of a file of the demo, within the folder of the lake."""
    folder = context.settings().home / "run" / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def _print(text: str, style: str) -> None:
    sys.stdout.write(f"\x1b[{style}m{text}\x1b[0m\n" if sys.stdout.isatty() else text + "\n")
    sys.stdout.flush()
