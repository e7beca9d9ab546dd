"""The author of commits, where it is not the user of this process: a service acts for its callers.

A context variable: what a request does is spread over threads, engines and catalogs, and a layer that forgot to pass the author
on would name the wrong one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_current: ContextVar[str] = ContextVar("author", default="")


@contextmanager
def acting_for(author: str) -> Iterator[None]:
    """Make this the author of what the block commits; empty for the default one."""
    token = _current.set(author)
    try:
        yield
    finally:
        _current.reset(token)


def acting_author() -> str:
    """The author for whom this process acts; empty if it acts for its own user."""
    return _current.get()
