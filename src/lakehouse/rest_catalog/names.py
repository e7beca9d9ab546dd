"""Names as the protocol sends them and as the catalog's rows hold them.

A namespace has levels. JdbcCatalog and PyIceberg's SqlCatalog write them as one text with dots in between, and so do
we: all three see the same namespaces. A dot inside a level, which those two cannot tell from a separator, is kept as
`%2E`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from lakehouse.core.names import TableName
from lakehouse.rest_catalog.problems import Problem

#: What separates the levels of a namespace in an address.
SEPARATOR = "\x1f"
_DOT = "%2E"
#: The width of the catalog's columns.
_LONGEST = 255
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]")


def namespace_key(levels: Sequence[str]) -> str:
    """The text under which a namespace's rows stand."""
    for level in levels:
        if not level or _DOT in level or SEPARATOR in level or "\x00" in level:
            raise Problem(f"{level!r} cannot be part of a namespace's name.")
    key = ".".join(level.replace(".", _DOT) for level in levels)
    if len(key) > _LONGEST:
        raise Problem(f"The namespace {key[:40]}… is longer than {_LONGEST} characters.")
    return key


def levels_of(key: str) -> list[str]:
    """The levels of the namespace that stands under a text."""
    return [level.replace(_DOT, ".") for level in key.split(".")] if key else []


def from_address(text: str) -> str:
    """The key of a namespace as it stands in an address, already decoded."""
    return namespace_key(text.split(SEPARATOR))


def table_name(namespace: str, name: object) -> TableName:
    """The name of a table or view below a namespace's key; unlike the lake's own commands, engines may use any letters."""
    if not isinstance(name, str) or not name or "\x00" in name or len(name) > _LONGEST:
        raise Problem(f"{name!r} cannot be the name of a table.")
    return TableName(namespace, name)


def folder_of(name: str) -> str:
    """The folder for one part of a name: the name itself, unless it could lead elsewhere or meet another's folder."""
    if _PLAIN.fullmatch(name):
        return name
    return f"{_NOT_PLAIN.sub('_', name)}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def shown(name: TableName) -> str:
    """A name in a message."""
    return ".".join([*levels_of(name.namespace), name.table])


def shown_namespace(key: str) -> str:
    """A namespace in a message."""
    return ".".join(levels_of(key))
