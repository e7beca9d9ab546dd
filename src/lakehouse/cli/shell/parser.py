"""Parse what is typed into the shell: SQL that ends with `;`, short commands and backslash commands. Pure functions."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import QueryRejectedError
from lakehouse.core.names import CATALOG, nearest
from lakehouse.core.quoting import spark_text

#: Literals, quoted names and comments, in which a `;` or a `:name` means nothing. The last two are not closed.
_OPAQUE = re.compile(
    r"""(?P<closed>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*(?:\n|$)|/\*.*?\*/)|(?P<open>['"`]|/\*)""",
    re.DOTALL,
)
_COMMENT = re.compile(r"\s+|--[^\n]*(?:\n|$)|/\*.*?\*/", re.DOTALL)
_VARIABLE = re.compile(r"(?<![:\w]):(?:(?P<name>[a-z_]\w*)|'(?P<text>[a-z_]\w*)')", re.IGNORECASE)
#: Short commands that no SQL statement begins with.
_ALWAYS_SHORT = {
    "ask",
    "tables",
    "history",
    "travel",
    "diff",
    "branch",
    "run",
    "runs",
    "undrop",
    "log",
    "help",
    "exit",
    "quit",
}
#: Words that statements begin with, here or in other databases: none of them is a misspelled command.
_SQL_WORDS = set(
    """
    add alter analyze attach begin cache call checkpoint clear comment commit copy create deallocate declare delete desc
    describe detach drop end execute explain export fetch from grant import insert install kill list load lock merge
    msck optimize pragma prepare refresh repair replace reset revoke rollback select set show start table truncate
    uncache unlock update use vacuum values with
    """.split()
)
#: A line that begins so is a command of another shell, such as `.tables`: no SQL begins with a dot and a letter.
_DOT_COMMAND = re.compile(r"\.[a-z]")


@dataclass(frozen=True)
class Sql:
    """A SQL statement, without its `;`."""

    text: str
    line: int = field(default=1, compare=False)
    """The line of the input that it begins on."""


@dataclass(frozen=True)
class Command:
    """A short command or a backslash command, which has the backslash in its name."""

    name: str
    arguments: tuple[str, ...]
    text: str
    line: int = field(default=1, compare=False)


Statement = Sql | Command


@dataclass(frozen=True)
class ParsedInput:
    """The statements of a text, and the rest that is not complete yet."""

    statements: tuple[Statement, ...]
    rest: str


def parse_input(text: str) -> ParsedInput:
    """Split a text into statements. A short or backslash command ends with its line, SQL with a `;`."""
    statements: list[Statement] = []
    position = _skip_comments(text, 0)
    while position < len(text):
        line, after_line = _first_line(text, position)
        command = _command(line)
        if command is not None:
            statements.append(replace(command, line=_line(text, position)))
            position = _skip_comments(text, after_line)
            continue
        end = _end_of_sql(text, position)
        if end is None:
            return ParsedInput(tuple(statements), text[position:])
        if body := text[position:end].strip():
            statements.append(Sql(body, _line(text, position)))
        position = _skip_comments(text, end + 1)
    return ParsedInput(tuple(statements), "")


def is_complete(text: str) -> bool:
    """Whether Enter runs the text: nothing is left open in it."""
    return not parse_input(text).rest


def parse_script(text: str) -> tuple[Statement, ...]:
    """The statements of a script; the `;` after the last one may be missing."""
    parsed = parse_input(text)
    rest = parsed.rest.strip()
    line = _line(text, len(text) - len(parsed.rest))
    return (*parsed.statements, Sql(rest, line)) if rest else parsed.statements


def current_fragment(text: str) -> str:
    """What follows the last complete SQL statement: the statement that is being typed."""
    end = max(_semicolons(text), default=-1)
    return text[_skip_comments(text, end + 1) :]


def substitute(text: str, variables: Mapping[str, str]) -> str:
    """Replace `:name` with the value of a variable and `:'name'` with the value as a SQL string.

    What is quoted, commented out or not a variable stays as it is.
    """
    if not variables or ":" not in text:
        return text

    def value(match: re.Match[str]) -> str:
        name = match["name"] or match["text"]
        if name not in variables:
            return match[0]
        return variables[name] if match["name"] else spark_text(variables[name])

    # `:'name'` has quotes of its own, so it is looked for before literals are.
    parts, position = [], 0
    pattern = re.compile(f"(?P<variable>{_VARIABLE.pattern})|{_OPAQUE.pattern}", re.DOTALL | re.IGNORECASE)
    for match in pattern.finditer(text):
        parts.append(text[position : match.start()])
        parts.append(value(match) if match["variable"] else match[0])
        position = match.end()
    return "".join(parts) + text[position:]


def split_arguments(text: str) -> tuple[str, ...]:
    """The words of a command; quotes keep words together."""
    try:
        lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
        lexer.whitespace_split, lexer.commenters, lexer.escape = True, "", ""
        return tuple(lexer)
    except ValueError as exc:
        raise QueryRejectedError(f"A quote is not closed: {text}", "Close it, or leave it out.") from exc


def without_literals(text: str) -> str:
    """A statement with its comments and literals emptied, to look for keywords."""
    return _OPAQUE.sub(lambda match: " " if match[0][:2] in ("--", "/*") else "''", text)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _skip_comments(text: str, position: int) -> int:
    while comment := _COMMENT.match(text, position):
        position = comment.end()
    # A `;` on its own is an empty statement.
    return _skip_comments(text, position + 1) if text[position : position + 1] == ";" else position


def _first_line(text: str, position: int) -> tuple[str, int]:
    end = text.find("\n", position)
    end = len(text) if end < 0 else end
    line = text[position:end]
    if not _is_outside_sql(line):
        semicolon = next(_semicolons(line), None)
        if semicolon is not None:
            return line[:semicolon], position + semicolon + 1
    return line, end + 1


def _end_of_sql(text: str, position: int) -> int | None:
    semicolon = next(_semicolons(text[position:]), None)
    return None if semicolon is None else position + semicolon


def _semicolons(text: str) -> Iterator[int]:
    """The positions of each `;` outside of quotes and comments."""
    position = 0
    while position < len(text):
        opaque = _OPAQUE.search(text, position)
        until = opaque.start() if opaque else len(text)
        semicolon = text.find(";", position, until)
        if semicolon >= 0:
            yield semicolon
            position = semicolon + 1
        elif opaque is None or opaque["open"]:
            return
        else:
            position = opaque.end()


def _command(line: str) -> Command | None:
    """The short or backslash command of a line; None if it is SQL."""
    word, _, tail = line.strip().partition(" ")
    name = word.lower()
    if _is_outside_sql(name):
        return Command(name, split_arguments(tail.strip().removesuffix(";")), line.strip())
    is_short = name in _ALWAYS_SHORT or (name in _SHORT_IF and _SHORT_IF[name](tail.split()))
    # What is no SQL and almost a command must not wait for a `;`, which would swallow the next lines.
    if not is_short and not _is_misspelled(name):
        return None
    return Command("describe" if name == "desc" else name, split_arguments(tail.strip()), line.strip())


def _is_misspelled(name: str) -> bool:
    """Whether a first word is almost a command, and not almost a statement of SQL."""
    if not name.isalpha() or name in _SQL_WORDS:
        return False
    near = nearest(name, (*_ALWAYS_SHORT, *_SQL_WORDS), most=1)
    return bool(near) and near[0] in {*_ALWAYS_SHORT, "describe"}


def _is_outside_sql(line: str) -> bool:
    """Whether a line is a backslash command, or a dot command of another shell."""
    return line.startswith("\\") or bool(_DOT_COMMAND.match(line.lower()))


def _is_insert_of_files(words: list[str]) -> bool:
    """`insert FILE... into T`; SQL has INTO, OVERWRITE or a table next."""
    lower = [word.lower() for word in words]
    return bool(lower) and lower[0] not in ("into", "overwrite") and "into" in lower[1:]


def _is_one_name(words: list[str]) -> bool:
    return len(words) == 1


#: Words that SQL has, too: the short form is recognised by what follows.
_SHORT_IF: Mapping[str, Callable[[list[str]], bool]] = {
    "insert": _is_insert_of_files,
    "use": _is_one_name,
    "describe": _is_one_name,
    "desc": _is_one_name,
}


_PATTERNS = (
    (re.compile(r"^drop\s+(table|view|namespace|schema|database)\b"), "drops a {0}"),
    (re.compile(r"^truncate\b"), "deletes all rows of a table"),
    (re.compile(r"^insert\s+overwrite\b"), "replaces rows of a table"),
    (re.compile(r"^create\s+or\s+replace\s+table\b"), "replaces a table"),
    (re.compile(r"^alter\s+table\b.*\bdrop\s+(column|columns|partition)\b"), "drops a {0}"),
)
_NEEDS_WHERE = {"delete": "deletes all rows of a table", "update": "changes all rows of a table"}


def danger(statement: Statement) -> str:
    """What a statement destroys, as the end of a sentence; empty if nothing."""
    if isinstance(statement, Command):
        is_drop = statement.name == "branch" and statement.arguments[:1] == ("drop",)
        return "drops a branch and what was not merged" if is_drop else ""
    return _danger_of_sql(statement)


_TARGET = re.compile(
    r"^(?:drop\s+(?:table|namespace|schema|database)|truncate\s+table|insert\s+overwrite(?:\s+table)?|update"
    r"|create\s+or\s+replace\s+table|alter\s+table|delete\s+from)\s+(?:if\s+exists\s+)?([\w.]+)"
)


def target(statement: Statement) -> str:
    """The branch, table or namespace that a dangerous statement destroys; empty if it is not plain to see."""
    if isinstance(statement, Command):
        return statement.arguments[1].lower() if len(statement.arguments) > 1 else ""
    match = _TARGET.match(" ".join(without_literals(statement.text).lower().split()))
    return match[1].removeprefix(f"{CATALOG}.") if match else ""


def _danger_of_sql(statement: Sql) -> str:
    text = " ".join(without_literals(statement.text).lower().split())
    for pattern, meaning in _PATTERNS:
        if match := pattern.search(text):
            return meaning.format(*match.groups())
    first = text.partition(" ")[0]
    return _NEEDS_WHERE[first] if first in _NEEDS_WHERE and not re.search(r"\bwhere\b", text) else ""
