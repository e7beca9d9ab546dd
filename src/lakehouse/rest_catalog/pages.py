"""Lists, whole or page by page: a page's token is the last name that was told."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakehouse.rest_catalog.answers import Answer, Call
from lakehouse.rest_catalog.names import levels_of
from lakehouse.rest_catalog.problems import Problem

if TYPE_CHECKING:
    from lakehouse.rest_catalog.backing import Backing

_DEFAULT_SIZE = 1000


def page(backing: Backing, call: Call, kind: str) -> Answer:
    """The tables or views of a namespace."""
    after, most = asked(call)
    found = backing.pointers.names(call.branch, call.namespace, kind, after, most + 1 if most else 0)
    shown, token = cut(found, most)
    namespace = levels_of(call.namespace)
    identifiers = [{"namespace": namespace, "name": name} for name in shown]
    return Answer(body={"identifiers": identifiers, "next-page-token": token})


def asked(call: Call) -> tuple[str, int]:
    """After which name to go on and how many to tell; no number means all of them, for clients that know no pages."""
    size, token = call.query.get("pageSize", ""), call.query.get("pageToken", "")
    if not size and "pageToken" not in call.query:
        return "", 0
    if size and not (size.isascii() and size.isdigit() and int(size) > 0):
        raise Problem(f"pageSize={size!r} is not a number of entries.")
    try:
        after = base64.urlsafe_b64decode(token.encode("ascii")).decode()
    except (binascii.Error, ValueError) as exc:
        raise Problem("The pageToken is not one that was given here.") from exc
    return after, int(size) if size else _DEFAULT_SIZE


def cut(found: Sequence[str], most: int) -> tuple[Sequence[str], str | None]:
    """At most so many, and the token for the rest if there is one."""
    if not most or len(found) <= most:
        return found, None
    return found[:most], base64.urlsafe_b64encode(found[most - 1].encode()).decode()
