"""The backslash commands, which set up the shell itself: `\\timing`, `\\o`, `\\e`, `\\set`, `\\watch`, `\\engine`, …"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
import time
from pathlib import Path

from lakehouse.cli.shell import commands
from lakehouse.cli.shell.display import MODES
from lakehouse.cli.shell.parser import Sql
from lakehouse.cli.shell.registry import ShellUsageError, command, execute, one_of, run_script
from lakehouse.cli.shell.session import LIMIT, Session
from lakehouse.core.names import suggestion
from lakehouse.process.files import write_private

_SWITCH = {"on": "on", "off": "off"}
#: Names of modes in other shells.
_MODE_ALIASES = {"duckbox": "box", "line": "vertical", "lines": "vertical", "column": "table", "jsonlines": "ndjson"}
_WATCH_S = 2.0
_MANY = 1_000

command("\\? [COMMAND]", "List the commands, or show how one is used", most=1)(commands.show_help)
command("\\q", "Leave the shell")(commands.leave)


@command("\\timing [on|off]", "Show how long each statement takes", most=1)
def timing(session: Session, arguments: tuple[str, ...]) -> None:
    session.timing = one_of("\\timing", arguments[0], _SWITCH) == "on" if arguments else not session.timing
    session.display.note(f"Timing is {'on' if session.timing else 'off'}.")


@command("\\x [on|off|auto]", "Show rows vertically: always, never, or those wider than the terminal", most=1)
def expanded(session: Session, arguments: tuple[str, ...]) -> None:
    now = session.display.expanded
    wanted = arguments[0] if arguments else ("off" if now == "on" else "on")
    session.display.expanded = one_of("\\x", wanted, {**_SWITCH, "auto": "auto"})
    session.display.note(f"Vertical rows: {session.display.expanded}.")


@command(
    f"\\mode [{'|'.join(MODES)}]", "Choose how results are shown, on the screen and in files without a suffix", most=1
)
def mode(session: Session, arguments: tuple[str, ...]) -> None:
    if arguments:
        session.display.output = one_of("\\mode", arguments[0], {**{mode: mode for mode in MODES}, **_MODE_ALIASES})
    session.display.note(f"Mode: {session.display.output}.")


@command("\\pager [on|off]", "Show long results in $PAGER", most=1)
def pager(session: Session, arguments: tuple[str, ...]) -> None:
    is_on = session.display.pager
    session.display.pager = one_of("\\pager", arguments[0], _SWITCH) == "on" if arguments else not is_on
    session.display.note(f"The pager is {'on' if session.display.pager else 'off'}.")


@command("\\o [FILE]", "Write results to FILE (.csv, .json, .md or text); without FILE, to the screen again", most=1)
def output(session: Session, arguments: tuple[str, ...]) -> None:
    if arguments:
        session.display.open(arguments[0])
        session.display.note(f"Results go to {arguments[0]}; \\o ends it.")
    else:
        session.display.close()


@command("\\engine [NAME]", "Run SQL on auto, duckdb, spark or trino", most=1)
def engine(session: Session, arguments: tuple[str, ...]) -> None:
    if arguments:
        session.engine = arguments[0].lower()
    session.display.note(f"Engine: {session.engine or 'as the settings say (query.engine)'}.")


@command("\\asof [WHEN|now]", "Read every table as it was at WHEN", most=_MANY)
def as_of(session: Session, arguments: tuple[str, ...]) -> None:
    when = " ".join(arguments)
    session.as_of = "" if when.lower() in ("", "now") else when
    session.display.note(f"Reading as of {when}." if session.as_of else "Reading the present.")


@command(
    "\\set [NAME VALUE]",
    "Set a variable: :name and :'name' stand for it in SQL; limit is the rows to fetch",
    most=_MANY,
)
def set_variable(session: Session, arguments: tuple[str, ...]) -> None:
    if not arguments:
        session.display.rows(["name", "value"], sorted(session.variables.items()))
        return
    name, value = arguments[0], " ".join(arguments[1:])
    if not name.isidentifier():
        raise ShellUsageError(f"{name!r} is not the name of a variable.", "Use letters, digits and _.")
    if name == LIMIT and not value.isdigit():
        raise ShellUsageError(f"limit is a number of rows, not {value!r}.", "\\set limit 1000")
    session.variables[name] = value


@command("\\unset NAME", "Remove a variable", least=1, most=1)
def unset_variable(session: Session, arguments: tuple[str, ...]) -> None:
    session.variables.pop(arguments[0], None)


@command("\\watch [SECONDS]", "Run the last statement again and again, until Ctrl-C", most=1)
def watch(session: Session, arguments: tuple[str, ...]) -> None:
    try:
        seconds = float(arguments[0]) if arguments else _WATCH_S
    except ValueError as exc:
        raise ShellUsageError(f"{arguments[0]!r} is not a number of seconds.", "\\watch 2") from exc
    if session.last is None:
        raise ShellUsageError("There is no statement to run again.", "Run one first, then \\watch.")
    uses_pager, session.display.pager = session.display.pager, False
    try:
        while True:
            session.display.note(time.strftime("%H:%M:%S"))
            execute(session, session.last)
            time.sleep(max(seconds, 0.1))
    finally:
        session.display.pager = uses_pager


@command("\\again", "Run the last statement again; also \\g")
def again(session: Session, arguments: tuple[str, ...]) -> None:
    if session.last is None:
        raise ShellUsageError("There is no statement to run again.", "Run one first, then \\again.")
    execute(session, session.last)


@command("\\save NAME [SQL]", "Name the last statement, or SQL, to run it later with \\query", least=1, most=_MANY)
def save_query(session: Session, arguments: tuple[str, ...]) -> None:
    name = arguments[0].lower()
    if not name.isidentifier():
        raise ShellUsageError(f"{name!r} is not the name of a query.", "Use letters, digits and _.")
    typed = session.typed.split(maxsplit=2)[2:]
    if not typed and not isinstance(session.last, Sql):
        raise ShellUsageError("There is no SQL to name.", "Run a statement first, or give it: \\save NAME SELECT …")
    text = typed[0].rstrip("; ") if typed else session.last.text if session.last else ""
    _write_queries(session, _read_queries(session) | {name: text})
    session.display.note(f"Saved. Run it: \\query {name}")


@command("\\query NAME", "Run a named query; :name in it stands for a variable of \\set", least=1, most=1)
def run_query(session: Session, arguments: tuple[str, ...]) -> None:
    execute(session, Sql(_query(session, arguments[0])))


@command("\\queries", "List the named queries")
def list_queries(session: Session, arguments: tuple[str, ...]) -> None:
    session.display.rows(["name", "sql"], sorted(_read_queries(session).items()))


@command("\\forget NAME", "Remove a named query", least=1, most=1)
def forget_query(session: Session, arguments: tuple[str, ...]) -> None:
    _query(session, arguments[0])
    queries = _read_queries(session)
    del queries[arguments[0].lower()]
    _write_queries(session, queries)


def _query(session: Session, name: str) -> str:
    queries = _read_queries(session)
    if name.lower() not in queries:
        raise ShellUsageError(
            f"There is no query {name}.",
            f"{suggestion(name.lower(), queries)}\\queries lists them; \\save NAME adds one.",
        )
    return queries[name.lower()]


def _read_queries(session: Session) -> dict[str, str]:
    file = session.queries_file
    if file is None or not file.exists():
        return {}
    try:
        return {str(name): str(text) for name, text in json.loads(file.read_text()).items()}
    except (OSError, ValueError, AttributeError) as exc:
        raise ShellUsageError(f"{file} cannot be read: {exc}", "Mend or remove the file.") from exc


def _write_queries(session: Session, queries: dict[str, str]) -> None:
    """Replace the file at once: another shell may read it. Only the user may, since statements hold values."""
    file = session.queries_file
    assert file is not None
    write_private(file, json.dumps(queries, indent=1, sort_keys=True))


@command("\\e", "Edit the last statement in $EDITOR; it is then the text of the next prompt")
def edit(session: Session, arguments: tuple[str, ...]) -> None:
    text = ""
    if session.last is not None:
        text = session.last.text + (";" if isinstance(session.last, Sql) else "")
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "statement.sql"
        file.write_text(text + "\n")
        try:
            subprocess.run([*editor, str(file)], check=True)
        except (OSError, subprocess.CalledProcessError) as exc:
            raise ShellUsageError(f"The editor failed: {exc}", "Set EDITOR to a program, e.g. EDITOR=nano") from exc
        session.edited = file.read_text().strip()


@command("\\i FILE", "Run the statements of a file", least=1, most=1)
def include(session: Session, arguments: tuple[str, ...]) -> None:
    try:
        text = Path(arguments[0]).expanduser().read_text()
    except (OSError, UnicodeDecodeError) as exc:
        raise ShellUsageError(f"{arguments[0]} cannot be read: {exc}", "\\i FILE") from exc
    run_script(session, text)
