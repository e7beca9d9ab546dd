"""Run scripts, and return the exit code."""

from __future__ import annotations

from pathlib import Path

from lakehouse.cli.app import report_error
from lakehouse.cli.shell import aliases as _aliases  # noqa: F401 - registers its commands
from lakehouse.cli.shell.parser import parse_script
from lakehouse.cli.shell.registry import ShellUsageError, execute
from lakehouse.cli.shell.session import Session
from lakehouse.core.errors import LakeError


def run_to_exit_code(session: Session, text: str, keep_going: bool) -> int:
    """Run a script; returns 0, or the exit code of its first error.

    Args:
        keep_going: go on after an error.
    """
    code = 0
    for statement in parse_script(text):
        if session.ended:
            break
        try:
            execute(session, statement)
        except LakeError as exc:
            report_error(exc, session.display.output, exc)
            if session.display.output != "json":
                session.display.note(f"  in the statement on line {statement.line}")
            code = code or (2 if exc.is_user_error else 1)
            if not keep_going:
                break
    return code


def read_script(file: str) -> str:
    """The text of a script."""
    try:
        return Path(file).expanduser().read_text()
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not text"
        raise ShellUsageError(f"{file} cannot be read: {reason}.", "lake shell -f FILE") from exc
