"""The request and the response of a handler, free of HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from lakehouse.core.dataclass import dataclass
from lakehouse.rest_catalog import names
from lakehouse.rest_catalog.access import Caller, Owner
from lakehouse.rest_catalog.errors import RestError

if TYPE_CHECKING:
    from lakehouse.catalogs.sql.database import Transaction
    from lakehouse.core.names import TableName


@dataclass(frozen=True)
class CatalogResponse:
    """A status and a body, or the metadata file that the body is built from when it is sent.

    A metadata file never changes, so its location is enough to store a response and to send it again.
    """

    status: int = 200
    body: Mapping[str, Any] | None = None
    metadata: str = ""
    staged: bool = False
    """The body holds the metadata of a table that does not exist yet."""

    def to_json(self) -> str:
        """Return the response as it is stored for a repeated request."""
        return json.dumps({"body": self.body, "metadata": self.metadata, "staged": self.staged})

    @classmethod
    def from_json(cls, status: int, text: str) -> CatalogResponse:
        """Parse what `to_json` returned."""
        return cls(status, **json.loads(text))


#: Runs in the transaction of a change, so that both are committed or neither.
TransactionHook = Callable[["Transaction"], None]


def no_hook(_: Transaction) -> None:
    """Add nothing to the transaction."""


def _store_nothing(_: CatalogResponse) -> TransactionHook:
    return no_hook


@dataclass(frozen=True)
class CatalogRequest:
    """One request: the names in its path, its query and its body."""

    branch: str
    """The catalog name of the branch; `main` has the lake's own name."""
    names: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)
    store: Callable[[CatalogResponse], TransactionHook] = _store_nothing
    """Returns the hook that stores the response, so that a repeated request is answered and not executed twice."""
    caller: Caller = field(default_factory=Owner)
    """Who sends it. Names of namespaces, tables and views are read through this class, which refuses those of others."""

    @property
    def namespace(self) -> str:
        """The key of the namespace in the path."""
        return self._usable(names.parse_namespace(self.names["namespace"]))

    def namespace_of(self, levels: Sequence[str]) -> str:
        """The key of a namespace that the body names."""
        return self._usable(names.namespace_key(levels))

    def identifier(self, value: object) -> TableName:
        """The table or view that the body names."""
        if not isinstance(value, dict) or not isinstance(value.get("namespace"), list):
            raise RestError("An identifier needs a namespace and a name.")
        namespace = self.namespace_of([str(level) for level in value["namespace"]])
        return names.table_name(namespace, value.get("name"))

    def _usable(self, namespace: str) -> str:
        self.caller.check_namespace(namespace)
        return namespace

    @property
    def table(self) -> TableName:
        """The table or view in the path."""
        return names.table_name(self.namespace, self.names["table"])

    def text(self, key: str) -> str:
        """Return a required string of the body."""
        value = self.body.get(key)
        if not isinstance(value, str) or not value:
            raise RestError(f"The request lacks {key!r}.")
        return value


def parse_properties(value: object) -> dict[str, str]:
    """Return properties as strings; anything but an object of scalars is refused."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise RestError("Properties must be an object of strings.")
    if any(item is None or isinstance(item, dict | list) for item in value.values()):
        raise RestError("Properties must be an object of strings.")
    return {key: str(item).lower() if isinstance(item, bool) else str(item) for key, item in value.items()}
