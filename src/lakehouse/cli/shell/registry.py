"""The registry of the shell's commands: each is a function with a usage line and one sentence of help."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lakehouse.cli.shell.parser import Sql, Statement, parse_script
from lakehouse.cli.shell.session import Session
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import LakeError, UnknownChoiceError
from lakehouse.core.names import suggestion

Run = Callable[[Session, tuple[str, ...]], None]


@dataclass(frozen=True)
class ShellCommand:
    """A command of the shell."""

    name: str
    usage: str
    help: str
    run: Run
    arguments: tuple[int, int]
    """Minimum and maximum number of arguments."""
    is_alias: bool = False
    """The name that another shell has for a command of ours."""


COMMANDS: dict[str, ShellCommand] = {}
#: Commands of other shells, with what to do instead.
FOREIGN: dict[str, str] = {}


class ShellUsageError(LakeError):
    """A command of the shell has the wrong arguments."""

    code = "bad_usage"
    is_user_error = True


def command(usage: str, help: str, least: int = 0, most: int = 0) -> Callable[[Run], Run]:
    """Register a function as a command; the first word of the usage is its name."""

    def register(run: Run) -> Run:
        name = usage.split()[0]
        COMMANDS[name] = ShellCommand(name, usage, help, run, (least, most))
        return run

    return register


def find_command(name: str, arguments: tuple[str, ...]) -> ShellCommand:
    """A command by name, if it takes this number of arguments."""
    command = COMMANDS.get(name)
    if command is None and name in FOREIGN:
        raise ShellUsageError(f"There is no command {name} here.", FOREIGN[name])
    if command is None:
        raise ShellUsageError(f"There is no command {name}.", f"{suggestion(name, COMMANDS)}\\? lists all of them.")
    least, most = command.arguments
    if not least <= len(arguments) <= most:
        raise ShellUsageError(f"{name} is used as: {command.usage}", f"help {name}")
    return command


def one_of(name: str, given: str, choices: Mapping[str, str]) -> str:
    """The value of a choice that was typed; raises UnknownChoiceError."""
    if given.lower() not in choices:
        raise UnknownChoiceError(name, given, choices)
    return choices[given.lower()]


def execute(session: Session, statement: Statement) -> None:
    """Run one statement."""
    if isinstance(statement, Sql):
        session.last = statement
        session.sql(statement)
        return
    command = find_command(_plain(statement.name), statement.arguments)
    if statement.name[0] not in "\\." and statement.name != "help":
        session.last = statement
    session.typed = statement.text
    command.run(session, statement.arguments)


def _plain(name: str) -> str:
    """psql's `\\d+` is `\\d` with more details."""
    return name.rstrip("+") if name.startswith("\\") else name


def run_script(session: Session, text: str) -> None:
    """Run the statements of a text; the first error ends it."""
    for statement in parse_script(text):
        if session.ended:
            return
        execute(session, statement)
