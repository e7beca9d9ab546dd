"""The short commands: `insert FILE into T`, `travel`, `history`, `branch`, `use`, … over the methods of `Lake`."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any

from lakehouse.cli.shell.parser import Sql
from lakehouse.cli.shell.registry import COMMANDS, ShellUsageError, command, find_command
from lakehouse.cli.shell.session import Session
from lakehouse.cli.show import printed_rows, relative_paths, snapshot_row
from lakehouse.core.errors import TableError
from lakehouse.core.files import size_text
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.result import Row
from lakehouse.core.tables import TableInfo

_MANY = 1_000
_MOST_DESCRIBED = 200
_LINES = 20


@command("tables [PATTERN]", "List the tables, or those that match a pattern such as crm.*", most=1)
def tables(session: Session, arguments: tuple[str, ...]) -> None:
    lake, pattern = session.lake, arguments[0] if arguments else "*"
    names = [name for name in lake.table_names() if fnmatch(name, pattern)]
    if len(names) > _MOST_DESCRIBED:
        # Each description reads a file of metadata.
        session.display.rows(["table"], [(name,) for name in names])
        session.display.note(f"{len(names)} tables; tables PATTERN describes up to {_MOST_DESCRIBED} of them.")
        return
    tables = [_describe(session, name) for name in names] if arguments else lake.tables()
    rows: list[Row] = [
        (
            str(info.name),
            info.format,
            info.current.rows_total if info.current else 0,
            size_text(info.current.bytes_total) if info.current else "",
            ", ".join(info.key),
            info.current.at if info.current else None,
        )
        for info in tables
    ]
    rows += [(view, "view", *[None] * 4) for view in lake.views() if fnmatch(view, pattern)]
    session.display.rows(
        ["table", "format", "rows", "bytes", "key", "changed_at"], sorted(rows, key=lambda row: row[0])
    )
    for info in tables:
        if info.problem:
            session.display.note(f"{info.name}: {info.problem}")
    if not rows:
        session.display.note("There are no such tables." if arguments else "There are no tables yet.")


def _describe(session: Session, name: str) -> TableInfo:
    """A table; one that cannot be read must not hide the others."""
    try:
        return session.lake.describe(name)
    except TableError as exc:
        return TableInfo(TableName.parse(name), "", "", (), problem=exc.message)


@command("describe TABLE", "Show the columns, key and layout of a table", least=1, most=1)
def describe(session: Session, arguments: tuple[str, ...]) -> None:
    info = session.lake.describe(arguments[0])
    rows = [(column.name, column.type, "" if column.required else "null", column.comment) for column in info.columns]
    session.display.rows(["column", "type", "nulls", "comment"], rows)
    details = [info.format, f"key {', '.join(info.key)}" if info.key else ""]
    details.append(f"partitioned by {', '.join(info.partitioning)}" if info.partitioning else "")
    if now := info.current:
        details.append(f"{now.rows_total} rows in {now.files_total} files, snapshot {now.id}")
    session.display.note(f"{info.name}: {'; '.join(filter(None, details))}")


@command("history TABLE", "List the snapshots of a table, oldest first", least=1, most=1)
def history(session: Session, arguments: tuple[str, ...]) -> None:
    names = ["id", "at", "operation", "added", "removed", "total", "source", "refs"]
    history = session.lake.history(arguments[0])
    rows = [snapshot_row(snapshot, relative_paths(snapshot.source), "current") for snapshot in history]
    session.display.rows(names, rows)


@command("travel TABLE WHEN", "Show a table as it was at WHEN: a snapshot id, tag, time or `2 hours ago`", 2, _MANY)
def travel(session: Session, arguments: tuple[str, ...]) -> None:
    when = " ".join(arguments[1:])
    session.read(lambda limit: session.lake.travel(arguments[0], when, limit))


@command("diff TABLE from WHEN [to WHEN]", "Show the rows that changed in a table between two moments", 3, _MANY)
def diff(session: Session, arguments: tuple[str, ...]) -> None:
    words = [argument.lower() for argument in arguments]
    if words[1] != "from":
        raise ShellUsageError("diff is used as: diff TABLE from WHEN [to WHEN]", "help diff")
    end = words.index("to") if "to" in words else len(words)
    start_when, end_when = " ".join(arguments[2:end]), " ".join(arguments[end + 1 :])
    diff = session.lake.diff(arguments[0], start_when, end_when, (), session.limit or _MANY)
    session.display.rows(diff.rows.names, printed_rows(diff.rows))
    changed = [f"+ {column.name} {column.type}" for column in diff.columns_added]
    changed += [f"- {column.name} {column.type}" for column in diff.columns_removed]
    changed += [f"{old.name} {old.type} -> {new.type}" for old, new in diff.columns_changed]
    for line in changed:
        session.display.note(f"column {line}")
    session.display.note(f"{diff.added} added, {diff.removed} removed, {diff.changed} changed")


@command('ask "QUESTION"', "Answer a question in plain words; the next one may refer to it: and by month?", 1, _MANY)
def ask(session: Session, arguments: tuple[str, ...]) -> None:
    from lakehouse.agent.answer import refusal_lines

    question = " ".join(arguments)
    answer = session.lake.ask(question, session.questions)
    if not answer.answered:
        session.display.note("\n".join(refusal_lines(answer)))
        return
    session.questions = [*session.questions, question]
    session.display.note(f"{answer.reading}\n{answer.sql}")
    session.display.rows(list(answer.columns), answer.rows)


@command("undrop TABLE", "Restore the table that was dropped last under a name", least=1, most=1)
def undrop(session: Session, arguments: tuple[str, ...]) -> None:
    info = session.lake.undrop(arguments[0])
    session.display.note(f"{info.name} is restored with {info.current.rows_total if info.current else 0} rows.")


@command(
    "insert FILE... into TABLE [key A,B] [mode append|upsert|replace] [format iceberg|hudi]",
    "Load files into a table in one commit; rows with the same key are updated",
    3,
    _MANY,
)
def insert(session: Session, arguments: tuple[str, ...]) -> None:
    place = [argument.lower() for argument in arguments].index("into")
    files, (table, *options) = arguments[:place], arguments[place + 1 :] or ("",)
    given = dict(zip((option.lower() for option in options[::2]), options[1::2], strict=False))
    if not table or len(options) % 2 or set(given) - {"key", "mode", "format"}:
        raise ShellUsageError(f"insert is used as: {COMMANDS['insert'].usage}", "help insert")
    key = [part.strip() for part in given.get("key", "").split(",") if part.strip()]
    report = session.lake.ingest(
        *files, into=table, key=key, mode=given.get("mode", ""), format=given.get("format", "")
    )
    for line in (*report.notes, *report.changes):
        session.display.note(line)
    for name in report.skipped:
        session.display.note(f"{relative_paths(name)} is already in {report.table}.")
    names = ["rows_read", "inserted", "updated", "unchanged", "rejected", "snapshot"]
    session.display.rows(["table", *names], [(str(report.table), *(getattr(report, name) for name in names))])


@command("use BRANCH", "Continue on another branch; `use main` returns. SQL's USE works as well", least=1, most=1)
def use(session: Session, arguments: tuple[str, ...]) -> None:
    name = arguments[0].lower()
    if name == MAIN or name in session.root.branches():
        session.switch(name)
        session.display.note(f"Now on {name}.")
    else:
        session.sql(Sql(f"USE {arguments[0]}"))


@command(
    "branch [create NAME [from REF] | drop NAME | merge NAME | diff NAME]",
    "List the branches, or create, drop, merge or compare one",
    most=4,
)
def branch(session: Session, arguments: tuple[str, ...]) -> None:
    action, *rest = arguments or ("list",)
    known = {"list": (0,), "create": (1, 3), "drop": (1,), "merge": (1,), "diff": (1,)}
    is_from = len(rest) < 2 or rest[1].lower() == "from"
    if len(rest) not in known.get(action.lower(), ()) or not is_from:
        raise ShellUsageError(f"branch is used as: {COMMANDS['branch'].usage}", "help branch")
    _BRANCH_ACTIONS[action.lower()](session, rest)


def _list_branches(session: Session, rest: list[str]) -> None:
    names = ["branch", "from", "made_at", "author", "message"]
    rows = [
        (ref.name, ref.created_from, ref.created_at, ref.author, ref.message)
        for ref, _ in session.root.refs.branches.list()
    ]
    session.display.rows(names, rows)
    if not rows:
        session.display.note("There is only main. Create a branch: branch create NAME")


def _create_branch(session: Session, rest: list[str]) -> None:
    created = session.root.refs.branches.create(rest[0], rest[2] if len(rest) == 3 else session.branch)
    session.display.note(f"Created the branch {created}. Use it: use {created}")


def _drop_branch(session: Session, rest: list[str]) -> None:
    session.root.refs.branches.drop(rest[0])
    if session.branch == rest[0].lower():
        session.switch(MAIN)
    session.display.note(f"Dropped the branch {rest[0]}; main is unchanged.")


def _merge_branch(session: Session, rest: list[str]) -> None:
    done = session.root.refs.branches.merge(rest[0])
    session.display.note(
        f"Published to all tables at once: commit {done.entry}." if done.entry else "There was nothing to publish."
    )
    if session.branch == rest[0].lower() and session.branch not in session.root.branches():
        session.switch(MAIN)


def _diff_branch(session: Session, rest: list[str]) -> None:
    names = ["table", "change", "rows_added", "rows_removed", "rows_changed", "conflict"]
    changes = session.root.refs.branches.diff(rest[0])
    session.display.rows(names, [tuple(getattr(change, name) for name in names) for change in changes])
    if not changes:
        session.display.note("The branch has changed nothing.")


_BRANCH_ACTIONS: dict[str, Any] = {
    "list": _list_branches,
    "create": _create_branch,
    "drop": _drop_branch,
    "merge": _merge_branch,
    "diff": _diff_branch,
}


@command("log [TABLE]", "List the commits of all tables or of one, newest first", most=1)
def log(session: Session, arguments: tuple[str, ...]) -> None:
    table = TableName.parse(arguments[0]) if arguments else None
    if table is not None:
        session.lake.table(str(table))  # raises NoSuchTableError with the nearest names
    names = ["commit", "at", "what", "author", "run", "message", "tables"]
    lines = session.root.refs.log.lines(table, _LINES, session.branch)
    session.display.rows(names, [tuple(getattr(line, name) for name in names) for line in lines])


@command("runs [RUN]", "List the last runs of pipelines, or show one in full", most=1)
def runs(session: Session, arguments: tuple[str, ...]) -> None:
    if arguments:
        _show_run(session, session.root.run_record(arguments[0]))
        return
    names = ["id", "pipeline", "state", "started_at", "rows", "rejected"]
    runs = session.root.runs()[:_LINES]
    session.display.rows(["run", *names[1:]], [tuple(getattr(run, name) for name in names) for run in runs])
    if not runs:
        session.display.note("There are no runs yet. Start one: run PIPELINE")


@command("run PIPELINE [PARTITION...]", "Run a pipeline as one transaction", 1, _MANY)
def run(session: Session, arguments: tuple[str, ...]) -> None:
    from lakehouse.runs.failure import user_code_errors

    with user_code_errors(arguments[0], ""):
        record = session.root.run(arguments[0], *arguments[1:], progress=session.display.note)
    _show_run(session, record)


def _show_run(session: Session, record: Any) -> None:
    names = ["table", "rows", "rejected", "snapshot", "seconds", "note"]
    session.display.rows(names, [tuple(getattr(table, name) for name in names) for table in record.tables])
    failed = [outcome for outcome in record.outcomes if not outcome.passed]
    for outcome in failed:
        session.display.note(f"{outcome.severity}: {outcome.table} {outcome.name}: {outcome.detail or outcome.broken}")
    if record.error:
        session.display.note(str(record.error.get("message", "")))
    session.display.note(f"Run {record.id}: {record.state}.")


@command("help [COMMAND]", "List the commands, or show how one is used", most=1)
def show_help(session: Session, arguments: tuple[str, ...]) -> None:
    if arguments:
        name = arguments[0].lower()
        command = COMMANDS.get(name) or COMMANDS.get(f"\\{name}") or find_command(name, ())
        session.display.note(f"{command.usage}\n  {command.help}.")
        return
    lines = ["SQL ends with ; and may have several lines. A command ends with its line.", ""]
    lines += [f"  {command.usage}\n      {command.help}." for command in COMMANDS.values() if not command.is_alias]
    others = " ".join(name for name, command in COMMANDS.items() if command.is_alias)
    lines += ["", f"Also known, as in psql, sqlite3 and DuckDB: {others}"]
    lines += [
        "",
        "Keys: Tab completes, Right takes the grey suggestion, Ctrl-R searches the history, Up recalls a whole statement, Ctrl-C stops one.",
    ]
    session.display.note("\n".join(lines))


@command("quit", "Leave the shell")
@command("exit", "Leave the shell")
def leave(session: Session, arguments: tuple[str, ...]) -> None:
    session.ended = True
