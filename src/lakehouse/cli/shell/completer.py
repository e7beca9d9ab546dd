"""Complete keywords, functions, tables, columns, branches, snapshots, pipelines and files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.completion.filesystem import PathCompleter
from prompt_toolkit.document import Document

from lakehouse.cli.shell.display import MODES
from lakehouse.cli.shell.metadata import Metadata
from lakehouse.cli.shell.parser import current_fragment
from lakehouse.cli.shell.registry import COMMANDS
from lakehouse.core.registry import kinds

#: The keywords and functions of SQL that completion offers.
KEYWORDS = tuple(
    """
    add all alter analyze and as asc between by case cast create cross delete desc describe distinct drop else end
    except exists explain false first from full group having if in inner insert intersect interval into is join last
    lateral left like limit namespace not null nulls on or order outer overwrite partition partitioned replace right
    select semi set show table tables tblproperties then true truncate union update use using values view when where
    with
    """.split()
)
FUNCTIONS = tuple(
    """
    abs approx_count_distinct array array_agg array_contains avg bool_and bool_or cast ceil coalesce collect_list
    collect_set concat concat_ws corr count count_if current_date current_timestamp date_add date_diff date_format
    date_sub date_trunc day dayofweek dense_rank element_at exp explode first_value floor from_json from_unixtime
    greatest hash hour if ifnull initcap instr isnan lag last_day last_value lead least length ln log10 lower lpad
    ltrim map max md5 median min minute mod month months_between named_struct nullif nvl percentile percentile_approx
    pow quarter rand rank regexp_extract regexp_replace repeat replace reverse round row_number rpad rtrim second
    sequence sha2 size sort_array split sqrt stddev struct substring sum to_date to_json to_timestamp transform trim
    trunc typeof unix_timestamp upper variance weekofyear year
    """.split()
)
WHENS = ("yesterday", "'1 hour ago'", "'1 day ago'", "'1 week ago'")

_WORD = re.compile(r"[\w.`]*$")
_ARGUMENT = re.compile(r"\S*$")
_TABLES_NEXT = {"from", "join", "into", "table", "update", "overwrite"}
_FROM = re.compile(
    r"\b(?:from|join|update|into)\s+([\w.]+)(?:\s+(?:as\s+)?"
    r"(?!(?:where|on|join|left|right|full|inner|cross|semi|anti|natural|using|group|order|having|limit|union|set|values)\b)(\w+))?",
    re.IGNORECASE,
)
#: Words and signs after which a column may follow, so that columns are offered before a letter is typed.
_COLUMNS_NEXT = {"select", "distinct", "where", "and", "or", "on", "by", "having", "set"}
_TABLE_COMMANDS = {"describe", "desc", "history", "travel", "diff", "log", "\\d", "\\copy", ".schema"}
_BRANCH_ACTIONS = ("create", "drop", "merge", "diff", "list")
_SWITCHES = {
    "\\timing": ("on", "off"),
    "\\pager": ("on", "off"),
    "\\x": ("on", "off", "auto"),
    "\\mode": MODES,
    ".mode": MODES,
}

Offer = Iterable[tuple[str, str]]
"""Texts with what they are."""


class LakeCompleter(Completer):
    """Completes from cached metadata, so that it never waits for the lake."""

    def __init__(self, metadata: Metadata, patience_s: float = 0.0) -> None:
        """
        Args:
            patience_s: how long a popup waits for what was not read yet; the completer must run in a thread then.
        """
        self._metadata, self._patience_s = metadata, patience_s
        self._files = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        fragment = current_fragment(document.text_before_cursor).rpartition("\n")
        line, words = fragment[2], fragment[2].split()
        first = words[0].lower() if words else ""
        is_first = len(words) <= 1 and not line.endswith(" ")
        if not fragment[0] and is_first:
            yield from _completions(line.lstrip(), _first_words())
        elif not fragment[0] and (complete := self._argument_of(first, words)) is not None:
            yield from complete(line, words[1:] if line.endswith(" ") else words[1:-1], complete_event)
        else:
            yield from self._sql(document)

    # ---- commands -----------------------------------------------------------------------------------------------

    def _argument_of(
        self, name: str, words: list[str]
    ) -> Callable[[str, list[str], CompleteEvent], Iterator[Completion]] | None:
        if name == "insert" and len(words) > 1 and words[1].lower() in ("into", "overwrite"):
            return None
        if name == "insert":
            return self._insert
        if name in ("\\o", "\\i"):
            return self._file
        return self._argument if name in COMMANDS or name == "desc" else None

    def _argument(self, line: str, before: list[str], event: CompleteEvent) -> Iterator[Completion]:
        name, typed = line.split()[0].lower(), _ARGUMENT.search(line)
        yield from _completions(typed[0] if typed else "", self._offer(name, before, typed[0] if typed else ""))

    def _offer(self, name: str, before: list[str], typed: str) -> Offer:
        metadata = self._metadata
        if name in _TABLE_COMMANDS and not before:
            return _kind(metadata.tables.starting_with(typed.lower()), "table")
        if name in ("travel", "diff") and before:
            words = () if name == "travel" else (("from", "word"), ("to", "word"))
            return (*words, *_snapshots(metadata, before[0].lower()), *_kind(WHENS, "when"))
        if name in ("use", "\\c") or (name == "branch" and before and before[0].lower() in _BRANCH_ACTIONS):
            return _kind(metadata.branches.starting_with(typed.lower()), "branch")
        if name == "branch":
            return _kind(_BRANCH_ACTIONS, "action")
        if name == "run":
            return _kind(metadata.pipelines.starting_with(typed), "pipeline")
        if name in ("help", "\\?"):
            return _kind(COMMANDS, "command")
        if name == "\\engine":
            return _kind(("auto", *kinds("lakehouse.engines")), "")
        return _kind(_SWITCHES.get(name, WHENS if name == "\\asof" else ()), "")

    def _insert(self, line: str, before: list[str], event: CompleteEvent) -> Iterator[Completion]:
        lower = [word.lower() for word in before]
        typed = line.split(" ")[-1]
        if lower[-1:] == ["into"]:
            yield from _completions(typed, _kind(self._metadata.tables.starting_with(typed.lower()), "table"))
        elif "into" in lower and lower[-1] == "key":
            columns = self._metadata.columns(lower[lower.index("into") + 1])
            yield from _completions(typed, _kind(columns, "column"))
        elif "into" in lower:
            yield from _completions(typed, _kind(("key", "mode", "format"), "word"))
        else:
            yield from _completions(typed, (("into", "word"),) if before else ())
            yield from self._file(line, before, event)

    def _file(self, line: str, before: list[str], event: CompleteEvent) -> Iterator[Completion]:
        typed = line.split(" ")[-1]
        yield from self._files.get_completions(Document(typed), event)

    def _fetch_columns(self, tables: Iterable[str]) -> None:
        """Have the columns of tables read, and wait a moment for those that are not known."""
        if any([not self._metadata.columns(table) for table in tables]):  # noqa: C419 - each asks for its columns
            self._metadata.wait(self._patience_s)

    def _join_conditions(self, before: str) -> Iterator[str]:
        """Conditions between the table joined last and those before it: references first, then columns of one name."""
        *others, (joined, joined_table) = _sources(before) or [("", "")]
        own = self._metadata.columns(joined_table)
        by_name = []
        for qualifier, table in others:
            columns = self._metadata.columns(table)
            for column in columns:
                yield from (
                    f"{qualifier}.{column} = {joined}.{key}"
                    for key in own
                    if column != key and _is_reference(column, joined_table, key)
                )
            for column in own:
                yield from (
                    f"{qualifier}.{key} = {joined}.{column}"
                    for key in columns
                    if column != key and _is_reference(column, table, key)
                )
            by_name += [f"{qualifier}.{column} = {joined}.{column}" for column in columns if column in own]
        yield from by_name

    # ---- SQL ----------------------------------------------------------------------------------------------------

    def _sql(self, document: Document) -> Iterator[Completion]:
        before = current_fragment(document.text_before_cursor)
        match = _WORD.search(before)
        typed = match[0] if match else ""
        previous = before[: len(before) - len(typed)].lower().split()[-1:]
        if not self._metadata.tables.sorted:
            self._metadata.wait(self._patience_s)
        if previous and previous[0] in _TABLES_NEXT:
            yield from _completions(typed, _kind(self._metadata.tables.starting_with(typed.lower()), "table"))
            return
        statement = before + document.text_after_cursor.partition(";")[0]
        tables = _tables_of(statement)
        self._fetch_columns(set(tables.values()))
        if previous == ["on"]:
            yield from _completions(typed, _kind(self._join_conditions(before), "join"))
        if "." in typed:
            qualifier, _, rest = typed.lower().rpartition(".")
            columns = self._metadata.columns(tables.get(qualifier, qualifier))
            yield from _completions(rest, _kind(columns, "column"))
            yield from _completions(typed, _kind(self._metadata.tables.starting_with(typed.lower()), "table"))
            return
        if not typed and previous and previous[0] not in _COLUMNS_NEXT and previous[0][-1] not in ",(":
            return
        columns = tuple(dict.fromkeys(name for table in set(tables.values()) for name in self._metadata.columns(table)))
        if not typed:
            yield from _completions(typed, _kind(columns, "column"))
            return
        words: Iterable[str] = (*KEYWORDS, *FUNCTIONS)
        words = [word.upper() for word in words] if typed.isupper() else words
        yield from _completions(typed, (*_kind(columns, "column"), *_kind(words, "sql")))
        yield from _completions(
            typed, _kind(self._metadata.tables.starting_with(typed.lower()), "table"), anywhere=True
        )


def _first_words() -> Offer:
    yield from ((name, command.help) for name, command in COMMANDS.items() if not command.is_alias)
    yield from ((name, command.help) for name, command in COMMANDS.items() if command.is_alias)
    starts = "select insert update delete merge create alter drop truncate show explain with use set".split()
    yield from ((word, "SQL") for word in starts if word not in COMMANDS)


def _snapshots(metadata: Metadata, table: str) -> Offer:
    return tuple(metadata.snapshots(table))


def _kind(texts: Iterable[str], kind: str) -> Offer:
    return ((text, kind) for text in texts)


def _tables_of(text: str) -> dict[str, str]:
    """The tables of a statement by their aliases and names."""
    tables: dict[str, str] = {}
    for name, alias in _FROM.findall(text):
        tables[name.lower()] = tables[name.lower().rpartition(".")[2]] = name.lower()
        if alias:
            tables[alias.lower()] = name.lower()
    return tables


def _sources(text: str) -> list[tuple[str, str]]:
    """The tables that a statement joins, each with the name that its columns are qualified with."""
    return [((alias or name.rpartition(".")[2]).lower(), name.lower()) for name, alias in _FROM.findall(text)]


def _is_reference(column: str, table: str, key: str) -> bool:
    """Whether a column such as `customer_id` refers to the key of a table such as `customers`."""
    name = table.rpartition(".")[2]
    return column in {f"{singular}_{key}" for singular in (name, name.removesuffix("s"), name.removesuffix("es"))}


def _completions(typed: str, offer: Offer, anywhere: bool = False) -> Iterator[Completion]:
    lower = typed.lower()
    for text, kind in offer:
        # A table is also found by its last part.
        fits = text.lower().startswith(lower) or (kind == "table") or anywhere
        if fits and text != typed:
            yield Completion(text, -len(typed), display_meta=kind)
