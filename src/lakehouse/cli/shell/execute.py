"""Run one statement, or those of a text one after the other."""

from __future__ import annotations

from lakehouse.cli.shell.parser import Sql, Statement, parse_script
from lakehouse.cli.shell.registry import find_command
from lakehouse.cli.shell.session import Session


def execute(session: Session, statement: Statement) -> None:
    """Run one statement."""
    if isinstance(statement, Sql):
        session.last = statement
        session.sql(statement)
        return
    command = find_command(statement.name, statement.arguments)
    if not statement.name.startswith("\\") and statement.name != "help":
        session.last = statement
    command.run(session, statement.arguments)


def run_script(session: Session, text: str) -> None:
    """Run the statements of a text; the first error ends it."""
    for statement in parse_script(text):
        if session.ended:
            return
        execute(session, statement)
