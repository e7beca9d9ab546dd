"""Facts about tables, branches and runs as JSON: the fields of the Python API under the same names."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from lakehouse.core.errors import BadRequestError
from lakehouse.core.jsonable import jsonable
from lakehouse.core.names import TableName
from lakehouse.core.result import Result

_PLAIN = (str, int, bool)
DEFAULT_PAGE, LARGEST_PAGE = 1000, 10_000


def plain(value: Any) -> Any:
    """A value of the Python API as JSON: a dataclass becomes an object, a table name a string."""
    if value is None or type(value) in _PLAIN:  # most values of a page
        return value
    if isinstance(value, TableName):
        return str(value)
    if isinstance(value, Result):
        return {"columns": plain(value.columns), "rows": plain(value.dicts())}
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return jsonable(value)


def page(name: str, items: Sequence[Any], size: int, token: str) -> dict[str, Any]:
    """One page of a list, and the token of the next; the token is opaque to clients."""
    start = _offset(token)
    size = min(size, LARGEST_PAGE) if size > 0 else DEFAULT_PAGE
    end = start + size
    following = _token(end) if end < len(items) else None
    return {name: plain(list(items[start:end])), "next_page_token": following}


def _token(offset: int) -> str:
    return base64.urlsafe_b64encode(f"o:{offset}".encode()).decode().rstrip("=")


def _offset(token: str) -> int:
    if not token:
        return 0
    try:
        kind, _, digits = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode("ascii").partition(":")
        if kind == "o" and digits.isdigit() and len(digits) < 12:
            return int(digits)
    except (binascii.Error, ValueError):
        pass
    raise BadRequestError("The page_token is not one of this service.", "Use next_page_token of the page before.")
