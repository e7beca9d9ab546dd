"""The REST catalog: tables of any server that speaks Iceberg's REST protocol, asked through PyIceberg's own client."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

from lakehouse.catalogs.rest.updates import change_of
from lakehouse.core.errors import (
    BadSettingError,
    CatalogAccessError,
    CatalogError,
    CatalogUnreachableError,
    NotInstalledError,
    NotSupportedError,
    TableExistsError,
)
from lakehouse.core.files import LOCAL, Files
from lakehouse.core.names import CATALOG, TableName
from lakehouse.core.refs import Change, state_of
from lakehouse.core.spark_catalog import spark_catalog

#: Dropped tables are moved to a namespace beside their own.
_DROPPED = "lake__dropped__"
_STAMP = 20  # digits that say when, behind a dropped table's name
_TRANSACTION = "POST /v1/{prefix}/transactions/commit"


@dataclass(eq=False)
class RestCatalog:
    """The tables of one server.

    Args:
        uri: its address, without the `/v1`.
        warehouse: which of its warehouses, if it has several.
        prefix: the part of the address that it asks for, if it does not say so itself.
        token: what it lets us in by; or `credential`, `CLIENT:SECRET`, for which it gives tokens.
        io: properties of PyIceberg's file access (`s3.endpoint`, …), where the server does not tell them.
        spark_io: the same for Iceberg in Spark.
    """

    uri: str
    warehouse: str = ""
    prefix: str = ""
    token: str = field(default="", repr=False)
    credential: str = field(default="", repr=False)
    io: Mapping[str, str] = field(default_factory=dict, repr=False)  # there are keys among them
    spark_io: Mapping[str, str] = field(default_factory=dict, repr=False)
    name: str = CATALOG
    files: Files = LOCAL
    """Where the metadata files of changes are."""
    called = "The Iceberg REST server"

    def __post_init__(self) -> None:
        if not self.uri.startswith(("http://", "https://")):
            raise BadSettingError(
                f"catalog.uri = {self.uri!r} is not the address of an Iceberg REST server.",
                "Write it as http://127.0.0.1:8181.",
            )

    # ---- settings for others ------------------------------------------------------------------------------------

    def spark_conf(self) -> Mapping[str, str]:
        """What a Spark session needs to see this catalog under its name. It may hold a token and keys."""
        facts = {
            "type": "rest",
            **self._server(),
            **self.spark_io,
        }
        return spark_catalog(self.name, facts)

    def pyiceberg_properties(self) -> Mapping[str, str]:
        """What `pyiceberg.catalog.load_catalog` needs. It may hold a token and keys."""
        return {"type": "rest", **self._server(), **self.io}

    def _server(self) -> dict[str, str]:
        facts = {
            "uri": self.uri,
            "warehouse": self.warehouse,
            "prefix": self.prefix,
            "token": self.token,
            "credential": self.credential,
        }
        return {name: value for name, value in facts.items() if value}

    def ready(self) -> None:
        """See that the server is there and lets us in."""
        with self._asked() as theirs:
            theirs.list_namespaces()

    # ---- pointers -----------------------------------------------------------------------------------------------

    def tables(self) -> Sequence[TableName]:
        """Every table, by name."""
        with self._asked() as theirs:
            spaces = [".".join(each) for each in theirs.list_namespaces()]
            return sorted(
                TableName(space, each[-1])
                for space in spaces
                if not space.startswith(_DROPPED)
                for each in theirs.list_tables(space)
            )

    def pointer(self, table: TableName) -> str | None:
        """Where the newest metadata of a table is, or None if there is no such table."""
        found = self._loaded(table)
        return found["metadata-location"] if found else None

    def pointers(self, tables: Iterable[TableName]) -> dict[TableName, str | None]:
        """Where several tables point, asked one after the other: the protocol knows no moment of several tables."""
        return {table: self.pointer(table) for table in tables}

    def everything(self) -> dict[TableName, str]:
        """Where every table points, asked one after the other; one that goes meanwhile is not among them."""
        return {table: place for table, place in self.pointers(self.tables()).items() if place is not None}

    def has_view(self, name: TableName) -> bool:
        """Whether the name is a view's."""
        with self._asked() as theirs:
            return bool(theirs.view_exists((name.namespace, name.table)))

    def ensure_namespace(self, namespace: str) -> None:
        """Make the namespace unless it is there."""
        with self._asked() as theirs:
            theirs.create_namespace_if_not_exists(namespace)

    def move(self, table: TableName, start: str, end: str | None) -> bool:
        """Forget a table (`end` is None). Pointing it elsewhere is refused: over REST, the server writes the metadata."""
        if end is not None:
            self._refuse(f"A metadata file of one's own for {table}")
        return self.pointer(table) == start and self.drop(table, "")

    def state(self) -> str:
        """A hash of where everything points: it changes whenever anything does."""
        return state_of(self.everything())

    # ---- changes ------------------------------------------------------------------------------------------------

    @property
    def all_at_once(self) -> bool:
        """Whether several tables can change in one moment: the protocol can, and a server says whether it does."""
        return _TRANSACTION in {str(each) for each in self._theirs._supported_endpoints}

    def change(self, changes: Sequence[Change]) -> bool:
        """Make all changes in one request, or none; False if a table is not where its change begins."""
        gone = [each for each in changes if each.after is None]
        if gone:
            if len(changes) > 1:
                self._refuse(f"A drop of {gone[0].table} together with other changes")
            return self.pointer(gone[0].table) == gone[0].before and self.drop(gone[0].table, "")
        sent = []
        for each in changes:
            ours = self._loaded(each.table)
            if (ours or {}).get("metadata-location") != each.before:
                return False
            sent.append((each.table, change_of(ours and ours["metadata"], self._read(str(each.after)))))
            if ours is None:
                self.ensure_namespace(each.table.namespace)
        return self._sent(sent)

    def is_done(self, change: Change) -> bool:
        """Whether a table is what a change makes of it; the server's own metadata file has another name."""
        ours = self._loaded(change.table)
        if ours is None or change.after is None:
            return ours is None and change.after is None
        wanted = self._read(change.after)
        same = ("table-uuid", "current-snapshot-id", "current-schema-id", "default-spec-id", "properties")
        return all(ours["metadata"].get(name) == wanted.get(name) for name in same)

    def _read(self, pointer: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.files.read(pointer))
        return found

    def _sent(self, changes: Sequence[tuple[TableName, Mapping[str, Any]]]) -> bool:
        """All changes in one request; False if the server says that something has moved."""
        bodies = [
            {"identifier": {"namespace": table.namespace.split("."), "name": table.table}, **change}
            for table, change in changes
        ]
        with self._asked() as theirs:
            if len(bodies) == 1:
                path = theirs._split_identifier_for_path((changes[0][0].namespace, changes[0][0].table))
                answer = theirs._session.post(
                    theirs.url(f"namespaces/{path['namespace']}/tables/{path['table']}"), json=bodies[0]
                )
            else:
                answer = theirs._session.post(theirs.url("transactions/commit"), json={"table-changes": bodies})
            if answer.status_code != 409:
                answer.raise_for_status()
            return bool(answer.status_code != 409)

    # ---- soft drop ----------------------------------------------------------------------------------------------

    def drop(self, table: TableName, at: str) -> bool:
        """Move the table to a namespace beside its own; its files stay."""
        if self._loaded(table) is None:
            return False
        self.ensure_namespace(_DROPPED + table.namespace)
        return self._renamed(table, TableName(_DROPPED + table.namespace, f"{table.table}{time.time_ns():0{_STAMP}}"))

    def undrop(self, table: TableName) -> bool:
        """Bring back what was dropped last under that name."""
        found = max((place for place, was in self._dropped() if was == table), default=None)
        if found is None:
            return False
        if self._loaded(table) is not None:
            raise TableExistsError(
                f"There is a table {table} again, so the dropped one cannot come back under that name.",
                f"Rename the new one first: lake sql 'alter table {table} rename to {table}_new'",
            )
        return self._renamed(found, table)

    def dropped(self) -> Sequence[TableName]:
        """The names that `undrop` knows."""
        return sorted({was for _, was in self._dropped()})

    def _dropped(self) -> list[tuple[TableName, TableName]]:
        with self._asked() as theirs:
            spaces = [".".join(each) for each in theirs.list_namespaces()]
            places = [
                TableName(space, each[-1])
                for space in spaces
                if space.startswith(_DROPPED)
                for each in theirs.list_tables(space)
            ]
        return [(each, TableName(each.namespace.removeprefix(_DROPPED), each.table[:-_STAMP])) for each in places]

    def _renamed(self, start: TableName, end: TableName) -> bool:
        from pyiceberg.exceptions import NoSuchTableError

        with self._asked() as theirs:
            try:
                theirs.rename_table((start.namespace, start.table), (end.namespace, end.table))
            except NoSuchTableError:
                return False  # somebody else was faster
        return True

    # ---- the server ---------------------------------------------------------------------------------------------

    @cached_property
    def _theirs(self) -> Any:
        with _translated(self.uri):
            from pyiceberg.catalog.rest import RestCatalog as PyIceberg

            properties = {name: value for name, value in self.pyiceberg_properties().items() if name != "type"}
            return PyIceberg(self.name, **properties)

    @contextmanager
    def _asked(self) -> Iterator[Any]:
        with _translated(self.uri):
            yield self._theirs

    def _loaded(self, table: TableName) -> dict[str, Any] | None:
        """A table as the server tells it; None if there is none."""
        with self._asked() as theirs:
            path = theirs._split_identifier_for_path((table.namespace, table.table))
            answer = theirs._session.get(theirs.url(f"namespaces/{path['namespace']}/tables/{path['table']}"))
            if answer.status_code == 404:
                return None
            answer.raise_for_status()
            found: dict[str, Any] = answer.json()
            return found

    def _refuse(self, what: str) -> NoReturn:
        raise NotSupportedError(
            f"{what[0].upper()}{what[1:]} cannot be had over Iceberg REST from {self.uri}.",
            "The catalogs `sql` and `nessie` can (docs/catalogs.md).",
        )


@contextmanager
def _translated(uri: str) -> Iterator[None]:
    """What goes wrong between us and a server, in our words."""
    try:
        from pyiceberg.exceptions import ForbiddenError, OAuthError, RESTError, UnauthorizedError
        from requests.exceptions import HTTPError, RequestException
    except ImportError as exc:
        raise NotInstalledError("pyiceberg", "iceberg") from exc
    try:
        yield
    except (UnauthorizedError, ForbiddenError, OAuthError) as exc:
        raise CatalogAccessError(
            f"The Iceberg REST server at {uri} does not let us in.",
            "Set catalog.token or catalog.credential (LAKE_CATALOG__TOKEN, LAKE_CATALOG__CREDENTIAL).",
        ) from exc
    except (RESTError, HTTPError) as exc:
        raise CatalogError(f"The Iceberg REST server at {uri} failed: {str(exc)[:500]}", "See its own log.") from exc
    except RequestException as exc:
        raise CatalogUnreachableError(
            f"Nobody answers at {uri}: {type(exc).__name__}.",
            "Start the server (ours: lake up rest), or check catalog.uri: lake config show",
        ) from exc
