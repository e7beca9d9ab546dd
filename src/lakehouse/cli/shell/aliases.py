"""Commands of psql, sqlite3 and DuckDB's shell: those that a lake has work under their names, the others name our word."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from lakehouse.cli.shell import backslash as _backslash  # noqa: F401 - registers the commands that have aliases here
from lakehouse.cli.shell import commands
from lakehouse.cli.shell.display import Display
from lakehouse.cli.shell.registry import COMMANDS, FOREIGN, ShellUsageError, command
from lakehouse.cli.shell.session import Session

_COPY = re.compile(
    r"\\copy\s+(?P<what>\(.*\)|[\w.]+)\s+(?P<way>to|from)\s+(?P<file>'[^']+'|\S+)(?P<options>.*)",
    re.IGNORECASE | re.DOTALL,
)


@command("\\d [TABLE]", "List the tables, or show the columns of one; also \\d+, .schema", most=1)
def describe(session: Session, arguments: tuple[str, ...]) -> None:
    (commands.describe if arguments and "*" not in arguments[0] else commands.tables)(session, arguments)


@command("\\l", "List the namespaces; also \\dn, .databases")
def namespaces(session: Session, arguments: tuple[str, ...]) -> None:
    counts = Counter(name.rpartition(".")[0] for name in session.lake.table_names())
    session.display.rows(["namespace", "tables"], sorted(counts.items()))


@command(
    "\\copy TABLE|(QUERY) to FILE | \\copy TABLE from FILE",
    "Write all rows of a table or query to FILE (.csv, .json, .md or text), or load FILE into a table",
    3,
    1_000,
)
def copy(session: Session, arguments: tuple[str, ...]) -> None:
    given = _COPY.match(session.typed.rstrip("; "))
    if given is None:
        usage = COMMANDS["\\copy"].usage
        raise ShellUsageError(f"\\copy is used as: {usage}", "help copy")
    what, file = given["what"], given["file"].strip("'")
    if given["way"].lower() == "from":
        commands.insert(session, (file, "into", what))
        return
    query = what[1:-1] if what.startswith("(") else f"SELECT * FROM {what}"
    lake, display = session.lake, session.display
    session.display = Display(display.output, display.interactive)
    session.display.open(file)
    try:
        session.read(
            lambda limit: lake.sql(query, engine=session.engine or None, as_of=session.as_of, limit=limit), whole=True
        )
    finally:
        session.display.close()
        session.display = display
    display.note(f"Wrote {file}.")


@command(".import FILE TABLE", "Load FILE into a table, as `insert FILE into TABLE` does", least=2, most=2)
def import_file(session: Session, arguments: tuple[str, ...]) -> None:
    commands.insert(session, (arguments[0], "into", arguments[1]))


@command("\\conninfo", "Show the lake, the branch and the engine of this shell")
def connection(session: Session, arguments: tuple[str, ...]) -> None:
    where = getattr(session.root, "url", "") or getattr(session.root, "folder", "")
    session.display.note(f"{where}, branch {session.branch}, engine {session.engine or 'as the settings say'}.")


#: Names in other shells of commands that take the same arguments.
ALIASES = {
    "\\dt": "tables",
    "\\dn": "\\l",
    "\\c": "use",
    "\\connect": "use",
    "\\h": "help",
    "\\help": "help",
    "\\quit": "\\q",
    "\\edit": "\\e",
    "\\include": "\\i",
    "\\out": "\\o",
    "\\g": "\\again",
    "\\n": "\\query",
    "\\ns": "\\save",
    "\\nd": "\\forget",
    ".tables": "tables",
    ".schema": "\\d",
    ".databases": "\\l",
    ".mode": "\\mode",
    ".timer": "\\timing",
    ".help": "help",
    ".quit": "\\q",
    ".exit": "\\q",
    ".read": "\\i",
    ".output": "\\o",
    ".edit": "\\e",
    ".show": "\\set",
}

_FILES = "Load files: insert FILE into TABLE. Write them: \\copy TABLE to FILE, or lake export."
FOREIGN.update(
    {
        "\\dv": "List them: SHOW VIEWS IN namespace;",
        "\\di": "Tables have keys and partitions instead of indexes: describe TABLE",
        "\\df": "Functions are those of Spark SQL (docs/sql.md): SHOW FUNCTIONS;",
        "\\du": "Users are the keys of a service: lake keys list",
        "\\dp": "Rights belong to the keys of a service: lake keys list",
        "\\pset": "Choose how results are shown: \\mode, \\x, \\pager",
        "\\a": "Choose how results are shown: \\mode csv",
        "\\t": "Choose how results are shown: \\mode csv",
        "\\s": "Search the history with Ctrl-R.",
        "\\w": "Edit and keep a statement: \\e, \\save NAME",
        "\\!": "Run programs in another terminal.",
        "\\gset": "Set a variable: \\set NAME VALUE",
        "\\crosstabview": "Use PIVOT in SQL.",
        ".open": "Open another lake: lake --home DIR shell, or lake --url URL shell",
        ".dump": _FILES,
        ".backup": "Back the lake up: lake backup DEST",
        ".save": "Back the lake up: lake backup DEST",
        ".restore": "Restore a backup: lake restore DEST",
        ".clone": "Clone the lake: lake clone DIR --shallow",
        ".headers": "Headers are always shown; choose the format: \\mode",
        ".separator": "Choose the format: \\mode csv",
        ".nullvalue": "NULL is shown as NULL; in csv it is empty.",
        ".width": "Rows wider than the terminal are vertical: \\x",
        ".once": "Write one result: \\copy (QUERY) to FILE",
        ".excel": "Write one result: \\copy (QUERY) to FILE.csv",
        ".indexes": "Tables have keys and partitions instead of indexes: describe TABLE",
        ".functions": "Functions are those of Spark SQL (docs/sql.md): SHOW FUNCTIONS;",
        ".system": "Run programs in another terminal.",
        ".shell": "Run programs in another terminal.",
        ".cd": "Start the shell in that folder.",
        ".prompt": "The prompt shows the lake and its branch.",
        ".maxrows": "Set the number of rows to fetch: \\set limit N",
        ".changes": "The result of a change shows its rows.",
        ".echo": "Scripts print results only.",
        ".bail": "A script ends at its first error, unless lake shell has --continue.",
    }
)
for _name, _own in ALIASES.items():
    COMMANDS[_name] = replace(
        COMMANDS[_own], name=_name, usage=COMMANDS[_own].usage.replace(_own, _name, 1), is_alias=True
    )
