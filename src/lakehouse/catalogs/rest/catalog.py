"""Implements `BaseCatalog` with any Iceberg REST server, through PyIceberg's client."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import cached_property
from typing import Any, ClassVar, NoReturn

from lakehouse.catalogs.rest.updates import change_of
from lakehouse.core.catalog import CatalogCapabilities, NoClients
from lakehouse.core.clients import duckdb_attachment, spark_catalog
from lakehouse.core.dataclass import dataclass
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
from lakehouse.core.metadata_file import load_metadata
from lakehouse.core.names import CATALOG, TableName
from lakehouse.core.refs import Change, hash_pointers
from lakehouse.core.state import TableEntry
from lakehouse.core.tables import Drop
from lakehouse.core.when import iso_time

#: Dropped tables are renamed into the namespace with this prefix.
_DROPPED = "lake__dropped__"
#: The digits of the time that a dropped table's name ends with.
_TIME_DIGITS = 20
_TRANSACTION = "POST /v1/{prefix}/transactions/commit"


@dataclass(eq=False)
class RestCatalog(NoClients):
    """The tables of one server.

    Args:
        uri: its address, without the `/v1`.
        warehouse: one of its warehouses, if it has several.
        prefix: the prefix of its paths, if its configuration does not state one.
        token: the bearer token; or `credential`, `CLIENT:SECRET`, which it exchanges for tokens.
        io: PyIceberg's FileIO properties (`s3.endpoint`, …), where the server does not vend them.
        spark_io: the same for Iceberg in Spark.
    """

    uri: str
    warehouse: str = ""
    prefix: str = ""
    token: str = field(default="", repr=False)
    credential: str = field(default="", repr=False)
    io: Mapping[str, str] = field(default_factory=dict, repr=False)  # it may hold keys
    spark_io: Mapping[str, str] = field(default_factory=dict, repr=False)
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What else the server needs, passed on as it is: `scope`, `oauth2-server-uri`, `rest.sigv4-enabled`, …"""
    name: str = CATALOG
    files: Files = LOCAL
    """Reads the metadata files of changes."""
    display_name: ClassVar[str] = "The Iceberg REST server"

    def __post_init__(self) -> None:
        if not self.uri.startswith(("http://", "https://")):
            raise BadSettingError(
                f"catalog.uri = {self.uri!r} is not the address of an Iceberg REST server.",
                "Write it as http://127.0.0.1:8181.",
            )

    # ---- settings of other programs -----------------------------------------------------------------------------

    def spark_conf(self) -> Mapping[str, str]:
        return spark_catalog(self.name, {"type": "rest", **self._server(), **self.spark_io})

    def pyiceberg_properties(self) -> Mapping[str, str]:
        return {"type": "rest", **self._server(), **self.io}

    def _server(self) -> dict[str, str]:
        own = {name: getattr(self, name) for name in ("uri", "warehouse", "prefix", "token", "credential")}
        return {name: value for name, value in own.items() if value} | dict(self.properties)

    def rest_properties(self) -> Mapping[str, str]:
        return self.pyiceberg_properties()

    def trino_catalogs(self, name: str) -> Mapping[str, Mapping[str, str]]:
        server = self._server()
        properties = {
            "connector.name": "iceberg",
            "iceberg.catalog.type": "rest",
            "iceberg.rest-catalog.uri": self.uri,
            "iceberg.rest-catalog.prefix": server.get("prefix", ""),
            "iceberg.rest-catalog.warehouse": server.get("warehouse", ""),
            "iceberg.rest-catalog.security": "OAUTH2" if {"token", "credential"} & set(server) else "",
            "iceberg.rest-catalog.oauth2.token": self.token,
            "iceberg.rest-catalog.oauth2.credential": server.get("credential", ""),
            "iceberg.rest-catalog.oauth2.scope": server.get("scope", ""),
            "iceberg.rest-catalog.oauth2.server-uri": server.get("oauth2-server-uri", ""),
            # A token does not expire, and our server has no endpoint that exchanges it.
            "iceberg.rest-catalog.oauth2.token-refresh-enabled": "false" if self.token else "",
        }
        return {name: {key: value for key, value in properties.items() if value}}

    def duckdb_attach(self) -> str:
        return duckdb_attachment(self.uri, self._server())

    def ensure_ready(self) -> None:
        with self._connected() as client:
            client.list_namespaces()

    # ---- pointers -----------------------------------------------------------------------------------------------

    def tables(self) -> Sequence[TableName]:
        with self._connected() as client:
            spaces = filter(lambda space: not space.startswith(_DROPPED), map(".".join, client.list_namespaces()))
            return sorted(
                TableName(space, identifier[-1]) for space in spaces for identifier in client.list_tables(space)
            )

    def pointer(self, table: TableName) -> str | None:
        loaded = self._load(table)
        return loaded["metadata-location"] if loaded else None

    def pointers(self, tables: Iterable[TableName]) -> dict[TableName, str | None]:
        """Return the pointers of several tables, one request each: the protocol cannot read several at one moment."""
        return {table: self.pointer(table) for table in tables}

    def all_pointers(self) -> dict[TableName, str]:
        """Return the pointer of every table, one request each, without tables that are dropped meanwhile."""
        return {table: pointer for table, pointer in self.pointers(self.tables()).items() if pointer is not None}

    def has_view(self, name: TableName) -> bool:
        with self._connected() as client:
            return bool(client.view_exists((name.namespace, name.table)))

    def views(self) -> Sequence[TableName]:
        """Return every view; none if the server has no views."""
        with self._connected() as client:
            spaces = filter(lambda space: not space.startswith(_DROPPED), map(".".join, client.list_namespaces()))
            return sorted(
                TableName(space, identifier[-1]) for space in spaces for identifier in client.list_views(space)
            )

    def ensure_namespace(self, namespace: str) -> None:
        with self._connected() as client:
            client.create_namespace_if_not_exists(namespace)

    def swap_pointer(self, table: TableName, expected: str, new: str | None) -> bool:
        """Drop a table (`new` is None). Another pointer is refused: over REST, the server writes the metadata."""
        if new is not None:
            self._refuse(f"Setting the metadata file of {table}")
        return self._drop_unchanged(table, expected)

    def state_hash(self) -> str:
        return hash_pointers(self.all_pointers())

    # ---- changes ------------------------------------------------------------------------------------------------

    @cached_property
    def capabilities(self) -> CatalogCapabilities:
        """Multi-table commits are an optional endpoint, which the server's configuration states."""
        with self._connected() as client:
            from lakehouse.pyiceberg_internals import rest_endpoints

            return CatalogCapabilities(multi_table_publish=_TRANSACTION in rest_endpoints(client), shared=True)

    def commit(self, changes: Sequence[Change]) -> bool:
        """Send all changes in one request; False if the pointer of a table is not its change's `before`."""
        removed = [change for change in changes if change.after is None]
        if removed:
            if len(changes) > 1:
                self._refuse(f"Dropping {removed[0].table} together with other changes")
            return self._drop_unchanged(removed[0].table, removed[0].before)
        requests = []
        for change in changes:
            current = self._load(change.table)
            if (current or {}).get("metadata-location") != change.before:
                return False
            requests.append((change.table, change_of(current and current["metadata"], self._read(str(change.after)))))
            if current is None:
                self.ensure_namespace(change.table.namespace)
        return self._send(requests)

    def is_committed(self, change: Change) -> bool:
        """Compare the metadata, because the server's own file has another name."""
        current = self._load(change.table)
        if current is None or change.after is None:
            return current is None and change.after is None
        expected = self._read(change.after)
        same = ("table-uuid", "current-snapshot-id", "current-schema-id", "default-spec-id")
        # Our server adds this property to a new table that lacks it.
        properties, wanted = (
            {"gc.enabled": "false", **metadata.get("properties", {})} for metadata in (current["metadata"], expected)
        )
        return properties == wanted and all(current["metadata"].get(name) == expected.get(name) for name in same)

    def _read(self, pointer: str) -> dict[str, Any]:
        return load_metadata(pointer, self.files)

    def _send(self, changes: Sequence[tuple[TableName, Mapping[str, Any]]]) -> bool:
        """Send changes in one request; False if the server reports a conflict."""
        bodies = [
            {"identifier": {"namespace": table.namespace.split("."), "name": table.table}, **change}
            for table, change in changes
        ]
        with self._connected() as client:
            from lakehouse.pyiceberg_internals import rest_post, rest_table_url

            if len(bodies) == 1:
                url = rest_table_url(client, changes[0][0].namespace, changes[0][0].table)
                response = rest_post(client, url, bodies[0])
            else:
                response = rest_post(client, client.url("transactions/commit"), {"table-changes": bodies})
            if response.status_code != 409:
                response.raise_for_status()
            return bool(response.status_code != 409)

    # ---- soft drop ----------------------------------------------------------------------------------------------

    def drop(self, table: TableName, at: str) -> bool:
        """Rename the table into another namespace and keep its files."""
        if self._load(table) is None:
            return False
        self.ensure_namespace(_DROPPED + table.namespace)
        return self._rename(table, _dropped_name(table))

    def _drop_unchanged(self, table: TableName, expected: str | None) -> bool:
        """Drop a table if its pointer is the expected one; False if another client has changed it.

        REST has no condition for a rename. So the table is compared again once nobody else writes to it by its name, and is
        renamed back if a change came in between.
        """
        before = self._load(table)
        if before is None or before["metadata-location"] != expected:
            return False
        self.ensure_namespace(_DROPPED + table.namespace)
        dropped = _dropped_name(table)
        if not self._rename(table, dropped):
            return False
        after = self._load(dropped)
        # The name of the metadata file alone would not do: a server may write another file for a rename.
        if after and (after["metadata-location"] == expected or after["metadata"] == before["metadata"]):
            return True
        self._rename(dropped, table)
        return False

    def undrop(self, table: TableName, drop: str = "") -> bool:
        names = [name for name, original in self._dropped() if original == table]
        newest = max((name for name in names if drop in ("", name.table[-_TIME_DIGITS:])), default=None)
        if newest is None:
            return False
        return self._rename(newest, table)

    def dropped(self) -> Sequence[TableName]:
        return sorted({original for _, original in self._dropped()})

    def drops(self) -> Sequence[Drop]:
        ids = sorted((original, name.table[-_TIME_DIGITS:]) for name, original in self._dropped())
        return [Drop(table, id, iso_time(int(id))) for table, id in ids]

    def dropped_entries(self) -> Sequence[TableEntry]:
        names = dict(self._dropped())
        return [TableEntry(names[now], pointer) for now, pointer in self.pointers(names).items() if pointer]

    def _dropped(self) -> list[tuple[TableName, TableName]]:
        with self._connected() as client:
            spaces = [".".join(levels) for levels in client.list_namespaces()]
            names = [
                TableName(space, identifier[-1])
                for space in spaces
                if space.startswith(_DROPPED)
                for identifier in client.list_tables(space)
            ]
        return [(name, TableName(name.namespace.removeprefix(_DROPPED), name.table[:-_TIME_DIGITS])) for name in names]

    def _rename(self, start: TableName, end: TableName) -> bool:
        from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError

        with self._connected() as client:
            try:
                client.rename_table((start.namespace, start.table), (end.namespace, end.table))
            except NoSuchTableError:
                return False  # another client was first
            except TableAlreadyExistsError as exc:
                raise TableExistsError(
                    f"There is a table {end} again, so the dropped one cannot be restored under that name.",
                    f"Rename the new one first: lake sql 'alter table {end} rename to {end}_new'; then: lake undrop {end}",
                ) from exc
        return True

    # ---- the server ---------------------------------------------------------------------------------------------

    @cached_property
    def _client(self) -> Any:
        with _translated(self.uri):
            from pyiceberg.catalog.rest import RestCatalog as Client

            properties = {name: value for name, value in self.pyiceberg_properties().items() if name != "type"}
            return Client(self.name, **properties)

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        with _translated(self.uri):
            yield self._client

    def _load(self, table: TableName) -> dict[str, Any] | None:
        """Return the server's response for a table; None if there is none."""
        with self._connected() as client:
            from lakehouse.pyiceberg_internals import rest_get, rest_table_url

            response = rest_get(client, rest_table_url(client, table.namespace, table.table))
            if response.status_code == 404:
                return None
            response.raise_for_status()
            loaded: dict[str, Any] = response.json()
            return loaded

    def _refuse(self, what: str) -> NoReturn:
        raise NotSupportedError(
            f"{what} is not possible over Iceberg REST ({self.uri}).",
            "The catalogs `sql` and `nessie` can do it (docs/catalogs.md).",
        )


def _dropped_name(table: TableName) -> TableName:
    return TableName(_DROPPED + table.namespace, f"{table.table}{time.time_ns():0{_TIME_DIGITS}}")


@contextmanager
def _translated(uri: str) -> Iterator[None]:
    """Translate the errors of PyIceberg's client."""
    try:
        from pyiceberg.exceptions import ForbiddenError, OAuthError, RESTError, UnauthorizedError
        from requests.exceptions import HTTPError, RequestException
    except ImportError as exc:
        raise NotInstalledError("pyiceberg", "iceberg") from exc
    try:
        yield
    except (UnauthorizedError, ForbiddenError, OAuthError) as exc:
        raise CatalogAccessError(
            f"The Iceberg REST server at {uri} denies access.",
            "Set catalog.token (LAKE_CATALOG__TOKEN), or a credential under [catalog.properties] in lake.toml.",
        ) from exc
    except (RESTError, HTTPError) as exc:
        raise CatalogError(f"The Iceberg REST server at {uri} failed: {str(exc)[:500]}", "See its own log.") from exc
    except RequestException as exc:
        raise CatalogUnreachableError(
            f"No server answers at {uri}: {type(exc).__name__}.",
            "Start the server (ours: lake up rest), or check catalog.uri: lake config show",
        ) from exc
