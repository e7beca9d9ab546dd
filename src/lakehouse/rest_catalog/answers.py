"""What a handler is given and what it gives back, free of HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakehouse.rest_catalog import names
from lakehouse.rest_catalog.problems import Problem

if TYPE_CHECKING:
    from lakehouse.catalogs.sql.database import Transaction
    from lakehouse.core.names import TableName


@dataclass(frozen=True)
class Answer:
    """A status and a body, or the metadata file that the body is made from when it is sent.

    A metadata file never changes, so where it is says all: an answer can be kept and given again without a copy of it.
    """

    status: int = 200
    body: Mapping[str, Any] | None = None
    metadata: str = ""
    staged: bool = False
    """The body holds the metadata of a table that is not there yet."""

    def as_text(self) -> str:
        """The answer as it is kept for a request that comes again."""
        return json.dumps({"body": self.body, "metadata": self.metadata, "staged": self.staged})

    @classmethod
    def from_text(cls, status: int, text: str) -> Answer:
        """The answer that `as_text` wrote."""
        return cls(status, **json.loads(text))


#: Written into the transaction that makes a change, so that both are there or neither.
Note = Callable[["Transaction"], None]


def no_note(_: Transaction) -> None:
    """Nothing to write beside the change."""


def _unkept(_: Answer) -> Note:
    return no_note


@dataclass(frozen=True)
class Call:
    """One request: what it names, and what it says."""

    branch: str
    """The catalog's key of the branch; `main` is the lake's own name."""
    names: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)
    keep: Callable[[Answer], Note] = _unkept
    """What to write into the transaction so that the same request, sent again, is answered and not done twice."""

    @property
    def namespace(self) -> str:
        """The key of the namespace in the address."""
        return names.from_address(self.names["namespace"])

    @property
    def table(self) -> TableName:
        """The table or view in the address."""
        return names.table_name(self.namespace, self.names["table"])

    def text(self, key: str) -> str:
        """A text that the body must have."""
        value = self.body.get(key)
        if not isinstance(value, str) or not value:
            raise Problem(f"The request lacks {key!r}.")
        return value


def properties_of(given: object) -> dict[str, str]:
    """Properties as texts; whatever else was sent is refused."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise Problem("Properties must be an object of texts.")
    if any(value is None or isinstance(value, dict | list) for value in given.values()):
        raise Problem("Properties must be an object of texts.")
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in given.items()}
