"""The interactive loop: prompt, multi-line editing, history, completion; Ctrl-C stops a statement and never the shell."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.filters import is_searching
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer

from lakehouse.cli.app import report_error
from lakehouse.cli.shell.completer import LakeCompleter
from lakehouse.cli.shell.metadata import Metadata
from lakehouse.cli.shell.parser import Command, Statement, danger, is_complete, parse_input, target
from lakehouse.cli.shell.registry import execute
from lakehouse.cli.shell.running import StatementDetached
from lakehouse.cli.shell.session import Session
from lakehouse.core.errors import LakeError

#: Commands after which names may have changed, besides SQL.
_CHANGING = {"insert", "use", "branch", "run", "undrop", "\\i", "\\c", "\\copy", "\\query", ".import", ".read"}
#: How long a popup waits for the columns of a table that was not read yet; typing goes on meanwhile.
_PATIENCE_S = 1.0


def run_interactively(session: Session, history: Path) -> None:
    """Read and run statements until Ctrl-D or `\\q`."""
    metadata = Metadata(session.lake)
    prompt: PromptSession[str] = PromptSession(
        history=open_history(history),
        lexer=_lexer(),
        completer=LakeCompleter(metadata, patience_s=_PATIENCE_S),
        complete_while_typing=True,
        complete_in_thread=True,
        auto_suggest=AutoSuggestFromHistory(),
        multiline=True,
        key_bindings=_bindings(),
        prompt_continuation=lambda width, number, wrapped: " " * width if wrapped else ".".rjust(width - 2) + "> ",
    )
    session.display.note("SQL ends with ; — help lists the commands, Tab completes, \\q leaves.")
    while not session.ended:
        edited, session.edited = session.edited, ""
        try:
            text = prompt.prompt(lambda: prompt_text(session), default=edited)
        except KeyboardInterrupt:
            continue
        except EOFError:
            break
        statements = parse_input(text).statements
        _run_in_order(session, statements)
        if any(_may_change_names(statement) for statement in statements):
            metadata.refresh(session.lake)


def prompt_text(session: Session) -> FormattedText:
    """`shop main> `, with the moment that tables are read at, if one is set."""
    as_of = f" @{session.as_of}" if session.as_of else ""
    branch = "ansigreen" if session.branch == "main" else "ansiyellow"
    return FormattedText([("bold", session.label), (branch, f" {session.branch}"), ("ansimagenta", as_of), ("", "> ")])


def open_history(file: Path) -> FileHistory:
    """The history of all shells of this user: only the user may read it, since statements hold values."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(mode=0o600, exist_ok=True)
    return FileHistory(str(file))


def _run_in_order(session: Session, statements: Sequence[Statement]) -> None:
    """Run what was typed or pasted at once; as in a script, nothing runs after an error, a Ctrl-C or a refusal."""
    for number, statement in enumerate(statements, start=1):
        is_done = _run_safely(session, statement)
        if session.ended:
            return
        if not is_done and (left := len(statements) - number):
            session.display.note(f"The {'statement' if left == 1 else f'{left} statements'} after it did not run.")
            return


def _may_change_names(statement: Statement) -> bool:
    return not isinstance(statement, Command) or statement.name in _CHANGING


def _run_safely(session: Session, statement: Statement) -> bool:
    """Run a statement and report its error; returns whether it ran to its end."""
    try:
        if not _is_wanted(session, statement):
            return False
        execute(session, statement)
        return True
    except LakeError as exc:
        report_error(exc, "table", exc)
    except StatementDetached:
        session.display.note("\nThe statement goes on until its engine ends it; its result is not shown.")
    except KeyboardInterrupt:
        session.display.note("\nStopped.")
    except Exception as exc:  # noqa: BLE001 - whatever a statement raises, the shell goes on
        error = LakeError(f"Unexpected error: {type(exc).__name__}: {exc}", "LAKE_DEBUG=1 shows the whole trace.")
        report_error(error, "table", exc)
    return False


def _is_wanted(session: Session, statement: Statement) -> bool:
    """Ask before a statement that destroys something. What is not there needs no question: its error says so."""
    harm = danger(statement)
    if not harm or not _may_exist(session, statement):
        return True
    sys.stderr.write(f"This {harm}. Continue? [y/N] ")
    sys.stderr.flush()
    answer = sys.stdin.readline().strip().lower()
    return answer in ("y", "yes")


def _may_exist(session: Session, statement: Statement) -> bool:
    name = target(statement)
    if not name:
        return True
    if isinstance(statement, Command):
        return name in session.root.branches()
    return any(table == name or table.startswith(f"{name}.") for table in session.lake.table_names())


def _bindings() -> KeyBindings:
    """Enter runs a complete statement and else starts a new line; Alt-Enter always starts one."""
    bindings = KeyBindings()

    # In a search of the history, Enter takes what was found.
    @bindings.add("enter", filter=~is_searching)
    def accept_or_continue(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None  # takes the chosen completion
        elif not buffer.text.strip() or is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @bindings.add("escape", "enter")
    def continue_on_next_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return bindings


def _lexer() -> PygmentsLexer:
    from pygments.lexers.sql import SqlLexer

    return PygmentsLexer(SqlLexer)
