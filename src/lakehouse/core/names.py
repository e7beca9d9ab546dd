"""Table names: two validated parts, so that no name can be a path, a quote or a second statement."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import BadNameError

#: The catalog's name in SQL and the key of `main` in a SQL catalog's tables.
CATALOG = "lake"
#: The default branch.
MAIN = "main"
DEFAULT_NAMESPACE = "default"
LONGEST_NAME = 128
#: Suffix of the table that holds the rejected rows of another.
REJECTED_SUFFIX = "__rejected"

_PART = re.compile(r"[a-z_][a-z0-9_]*")


def check_part(text: str, what: str) -> str:
    """Validate one part of a name and return it in lower case."""
    folded = text.lower() if text.isascii() else text  # some non-ASCII letters lower-case to ASCII ones
    if not _PART.fullmatch(folded) or len(folded) > LONGEST_NAME:
        raise BadNameError(
            f"Invalid {what} name: {text!r}.",
            f"Use letters, digits and _, not starting with a digit, at most {LONGEST_NAME} characters.",
        )
    return folded


@dataclass(frozen=True, order=True)
class TableName:
    """`namespace.table`, validated and in lower case."""

    namespace: str
    table: str

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Parse `table`, `namespace.table` or `lake.namespace.table`."""
        parts = [part.strip("`") for part in text.split(".")]
        if len(parts) == 3 and parts[0].lower() == CATALOG:
            parts = parts[1:]
        if len(parts) == 1:
            parts = [DEFAULT_NAMESPACE, *parts]
        if len(parts) != 2:
            raise BadNameError(f"Invalid table name: {text!r}.", "Write NAMESPACE.TABLE, for example crm.leads.")
        return cls(check_part(parts[0], "namespace"), check_part(parts[1], "table"))

    @property
    def rejected(self) -> TableName:
        """The table of this table's rejected rows."""
        return TableName(self.namespace, self.table + REJECTED_SUFFIX)

    @property
    def spark(self) -> str:
        """The name in Spark SQL, quoted: its parts may be reserved words."""
        return f"`{self.namespace}`.`{self.table}`"

    def __str__(self) -> str:
        return f"{self.namespace}.{self.table}"


def nearest(given: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The known names closest to the given one; the right table in a wrong namespace counts as close."""
    import difflib  # for errors alone

    names = sorted(known)
    last = given.rsplit(".", 1)[-1]
    same_table = [name for name in names if name.rsplit(".", 1)[-1] == last]
    alike = difflib.get_close_matches(given, names, n=most, cutoff=0.7)
    return list(dict.fromkeys([*same_table, *alike]))[:most]


def suggestion(given: str, known: Iterable[str]) -> str:
    """The start of a hint, `Did you mean X? `, with the known name closest to the given one; empty if none is close."""
    near = nearest(given, known, 1)
    return f"Did you mean {near[0]}? " if near else ""


def listed(names: Sequence[str], most: int = 5, separator: str = ", ") -> str:
    """Names for a message: `a, b and 3 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return separator.join(names[:most]) + more
