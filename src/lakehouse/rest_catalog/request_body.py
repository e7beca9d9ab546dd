"""Reads and parses the body of a request, within limits of size and depth."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from lakehouse.rest_catalog.errors import RestError

if TYPE_CHECKING:
    from starlette.requests import Request

#: The largest body in bytes. A commit carries schemas and snapshots, not data files.
MAX_BODY = 16 << 20
#: The deepest nesting. A level of a nested column takes three levels of JSON.
_MAX_DEPTH = 200
_NOT_TEXT = re.compile("[\x00\ud800-\udfff]")


async def read_body(request: Request) -> bytes:
    """Return the body; one that is too large is refused before it is read, or as soon as it exceeds the limit."""
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > MAX_BODY:
        raise _too_large()
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY:
            raise _too_large()
        parts.append(part)
    return b"".join(parts)


def parse_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object; an empty body is an empty object."""
    if not body:
        return {}
    try:
        parsed = json.loads(body.decode(), parse_constant=_refuse_constant)
    except RecursionError as exc:
        raise _too_deep() from exc
    except ValueError as exc:
        raise RestError("The request's body is not JSON.") from exc
    if not isinstance(parsed, dict):
        raise RestError("The request's body is not a JSON object.")
    _check(parsed)
    return parsed


def _check(content: object) -> None:
    """Refuse what a database or a metadata file cannot hold: deep nesting, lone surrogates and NUL characters."""
    level: list[object] = [content]
    for _ in range(_MAX_DEPTH):
        deeper: list[object] = []
        for value in level:
            if isinstance(value, dict):
                deeper += [*value, *value.values()]
            elif isinstance(value, list):
                deeper += value
            elif isinstance(value, str) and _NOT_TEXT.search(value):
                raise RestError("The request's body holds characters that are not valid text.")
        level = deeper
        if not level:
            return
    raise _too_deep()


def _refuse_constant(name: str) -> object:
    raise ValueError(name)


def _too_deep() -> RestError:
    return RestError(f"The request's body is nested deeper than {_MAX_DEPTH} levels.")


def _too_large() -> RestError:
    return RestError(f"The request's body is larger than {MAX_BODY} bytes.", status=413, kind="BadRequestException")
