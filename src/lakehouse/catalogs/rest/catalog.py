"""The REST catalog: tables of any server that speaks Iceberg's REST protocol, asked through PyIceberg's own client."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
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
from lakehouse.core.names import CATALOG, MAIN, TableName
from lakehouse.core.refs import Change, Commit, Published
from lakehouse.core.spark_catalog import spark_catalog
from lakehouse.core.unbranched import Unbranched

#: What our own server says of itself: a prefix names a branch.
BRANCHES = "lake.branches"
#: Dropped tables are moved to a namespace beside their own.
_DROPPED = "lake__dropped__"
_STAMP = 20  # digits that say when, behind a dropped table's name
_TRANSACTION = "POST /v1/{prefix}/transactions/commit"


@dataclass(eq=False)
class RestCatalog(Unbranched):
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
    main_prefix: str = ""
    """What leads back to main from a branch."""

    def __post_init__(self) -> None:
        if not self.uri.startswith(("http://", "https://")):
            raise BadSettingError(
                f"catalog.uri = {self.uri!r} is not the address of an Iceberg REST server.",
                "Write it as http://127.0.0.1:8181.",
            )

    def on(self, branch: str) -> RestCatalog:
        """The catalog as a branch has it, where the server is of this lakehouse: there, a prefix names a branch."""
        wanted = CATALOG if branch in ("", MAIN) else branch
        if wanted == self.name:
            return self
        main_prefix = self.prefix if self.name == CATALOG else self.main_prefix
        if wanted == CATALOG:
            return replace(self, prefix=main_prefix, name=CATALOG)
        if not self.has_branches:
            self._refuse(f"the branch {branch}")
        return replace(self, prefix=branch, name=branch, main_prefix=main_prefix)

    @property
    def has_branches(self) -> bool:
        """Whether the server shows branches."""
        return bool(self._theirs.properties.get(BRANCHES))

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

    def pinned(self, tables: Iterable[TableName]) -> RestCatalog:
        """This catalog, in which these tables stay where they point now: for a statement that reads several."""
        pinned = _Pinned(**{each.name: getattr(self, each.name) for each in fields(self)})
        pinned.found = self.pointers(tables)
        return pinned

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
        found = "\n".join(f"{table} {self.pointer(table)}" for table in self.tables())
        return hashlib.sha256(found.encode()).hexdigest()[:16]

    # ---- publishing what a branch of our own server has -----------------------------------------------------------

    def changes(self, branch: str) -> list[Change]:
        """What a branch has that this one has not, table by table. What it dropped cannot be told from what is new here."""
        return [change for change, _ in self._changed(branch)]

    def conflicts(self, branch: str) -> tuple[TableName, ...]:
        """The tables that a branch has changed from another state than they are in here."""
        return tuple(change.table for change, sent in self._changed(branch) if sent is None)

    def publish(self, branch: str, commit: Commit | None = None, tag: str = "") -> Published:
        """Make a branch's changes those of this one, all at once, or none if any of their tables has moved.

        The branch itself stays: over REST nobody can forget it. The server writes down no author and no tag.
        """
        changed = self._changed(branch)
        moved = tuple(change.table for change, sent in changed if sent is None)
        if moved:
            return Published(False, moved=moved)
        if len(changed) > 1 and not self._has_transactions():
            self._refuse(f"A publish of {len(changed)} tables at once")
        for space in {change.table.namespace for change, _ in changed if change.before is None}:
            self.ensure_namespace(space)
        if changed and not self._sent([(change.table, sent) for change, sent in changed if sent]):
            return Published(False, moved=self.conflicts(branch) or tuple(change.table for change, _ in changed))
        return Published(True)

    def _changed(self, branch: str) -> list[tuple[Change, dict[str, Any] | None]]:
        """The changes of a branch, each with what is to be sent for it; None where the table has moved here meanwhile."""
        found = []
        there = self.on(branch)
        for table in there.tables():
            ours, theirs = self._loaded(table), there._loaded(table)
            before, after = (ours or {}).get("metadata-location"), (theirs or {}).get("metadata-location")
            if theirs is None or before == after or (ours and after in _logged(ours)):
                continue
            fits = ours is None or before in _logged(theirs)
            sent = change_of(ours and ours["metadata"], theirs["metadata"]) if fits else None
            found.append((Change(table, before, after), sent))
        return found

    def _has_transactions(self) -> bool:
        return _TRANSACTION in {str(each) for each in self._theirs._supported_endpoints}

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
            "The catalogs `sql` and `nessie` can; a REST server of this lakehouse shows the branches of the first"
            " (docs/catalogs.md).",
        )


class _Pinned(RestCatalog):
    """A catalog some of whose tables stay where they pointed once."""

    found: Mapping[TableName, str | None]

    def pointer(self, table: TableName) -> str | None:
        return self.found[table] if table in self.found else super().pointer(table)


def _logged(table: Mapping[str, Any]) -> set[str]:
    """The metadata files that a table's newest one was made from."""
    return {each["metadata-file"] for each in table["metadata"].get("metadata-log") or ()}


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
