"""Names as the protocol sends them and as the catalog's rows hold them.

A namespace has levels. JdbcCatalog and PyIceberg's SqlCatalog join them with dots, and so do we: all three see the same
namespaces. A dot inside a level, which those two cannot distinguish from a separator, becomes `%2E`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from lakehouse.core.names import TableName
from lakehouse.rest_catalog.errors import RestError

#: Separates the levels of a namespace in a path.
SEPARATOR = "\x1f"
_DOT = "%2E"
#: The width of the catalog's columns.
_MAX_LENGTH = 255
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]")


def namespace_key(levels: Sequence[str]) -> str:
    """Return the namespace's value in the catalog's rows."""
    for level in levels:
        if not level or _DOT in level or SEPARATOR in level or "\x00" in level:
            raise RestError(f"{level!r} cannot be part of a namespace's name.")
    key = ".".join(level.replace(".", _DOT) for level in levels)
    if len(key) > _MAX_LENGTH:
        raise RestError(f"The namespace {key[:40]}… is longer than {_MAX_LENGTH} characters.")
    return key


def levels_of(key: str) -> list[str]:
    """Return the levels of a namespace key."""
    return [level.replace(_DOT, ".") for level in key.split(".")] if key else []


def parse_namespace(text: str) -> str:
    """Return the key of a namespace from a path, already decoded."""
    return namespace_key(text.split(SEPARATOR))


def table_name(namespace: str, name: object) -> TableName:
    """Return the name of a table or view. Engines may use any characters; the lake's own commands do not."""
    if not isinstance(name, str) or not name or "\x00" in name or len(name) > _MAX_LENGTH:
        raise RestError(f"{name!r} cannot be the name of a table.")
    return TableName(namespace, name)


def folder_of(name: str) -> str:
    """Return the folder for one part of a name: the name itself if it is a safe and unique path."""
    if _PLAIN.fullmatch(name):
        return name
    return f"{_NOT_PLAIN.sub('_', name)}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def format_name(name: TableName) -> str:
    """Return a name for a message."""
    return ".".join([*levels_of(name.namespace), name.table])


def format_namespace(key: str) -> str:
    """Return a namespace for a message."""
    return ".".join(levels_of(key))
