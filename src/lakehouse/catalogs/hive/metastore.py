"""The Hive Metastore over Thrift: entries looked up, changed, moved, under the lock that every writer of Iceberg takes."""

from __future__ import annotations

import getpass
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from lakehouse.core.errors import (
    BadSettingError,
    CatalogBusyError,
    CatalogError,
    CatalogUnreachableError,
    NotInstalledError,
    TableExistsError,
)
from lakehouse.core.names import TableName

#: The database that dropped tables are moved to.
DROPPED = "lake__dropped"
_WAS = "lake.dropped.name"
_TIMEOUT_S = 60
_LOCK_TRIES, _LOCK_PAUSE_S = 300, 0.1


@dataclass(frozen=True)
class Metastore:
    """A metastore at an address, as `thrift://127.0.0.1:9083`."""

    uri: str

    def __post_init__(self) -> None:
        place = urlsplit(self.uri)
        if place.scheme != "thrift" or not place.hostname or not place.port:
            raise BadSettingError(
                f"catalog.uri = {self.uri!r} is not the address of a Hive Metastore.",
                "Write it as thrift://127.0.0.1:9083.",
            )

    def entries(self) -> list[tuple[TableName, Any]]:
        """Every table of every format, and every view."""
        found = []
        with self.client() as client:
            for namespace in client.get_all_databases():
                if namespace != DROPPED:
                    told = objects(client, namespace, client.get_all_tables(namespace))
                    found += [(TableName(namespace, each.tableName), each) for each in told]
        return found

    def entry(self, table: TableName) -> Any:
        """One of them, or None."""
        with self.client() as client:
            return entry_of(client, table)

    def ensure_database(self, name: str, place: str) -> None:
        """Make a database unless it is there."""
        from hive_metastore.ttypes import AlreadyExistsException, Database

        with self.client() as client:
            if name not in client.get_all_databases():
                try:
                    client.create_database(Database(name=name, locationUri=place, parameters={}))
                except AlreadyExistsException:
                    return  # others made it in the same moment

    # ---- soft drop ----------------------------------------------------------------------------------------------

    def drop(self, table: TableName, kind: str, warehouse: str) -> bool:
        """Move a table's entry to another database; its files stay. False if there is none of that kind."""
        self.ensure_database(DROPPED, f"{warehouse.rstrip('/')}/{DROPPED}.db")
        with self.client() as client, locked(client, table):
            entry = entry_of(client, table)
            if entry is None or kind_of(entry) != kind:
                return False
            entry.parameters[_WAS] = str(table)
            rename(client, entry, TableName(DROPPED, f"t{time.time_ns():020}"))
        return True

    def undrop(self, table: TableName, kind: str) -> bool:
        """Bring back what was dropped last under that name."""
        found = max((each for each in self._dropped(kind) if each[1] == table), default=None, key=lambda each: each[0])
        if found is None:
            return False
        with self.client() as client, locked(client, found[0]):
            entry = entry_of(client, found[0])
            if entry is None:
                return False
            if entry_of(client, table) is not None:
                raise TableExistsError(
                    f"There is a table {table} again, so the dropped one cannot come back under that name.",
                    f"Rename the new one first: lake sql 'alter table {table} rename to {table}_new'",
                )
            entry.parameters.pop(_WAS)
            rename(client, entry, table)
        return True

    def dropped(self, kind: str) -> Sequence[TableName]:
        """The names that `undrop` knows."""
        return sorted({was for _, was in self._dropped(kind)})

    def _dropped(self, kind: str) -> list[tuple[TableName, TableName]]:
        """Where dropped tables are, and what they were called."""
        found = []
        with self.client() as client:
            if DROPPED in client.get_all_databases():
                for entry in objects(client, DROPPED, client.get_all_tables(DROPPED)):
                    namespace, _, table = entry.parameters.get(_WAS, "").rpartition(".")
                    if kind_of(entry) == kind:
                        found.append((TableName(DROPPED, entry.tableName), TableName(namespace, table)))
        return found

    # ---- the connection -----------------------------------------------------------------------------------------

    @contextmanager
    def client(self) -> Iterator[Any]:
        """A connection; what goes wrong with it is told in our words."""
        try:
            from hive_metastore.ThriftHiveMetastore import Client
            from hive_metastore.ttypes import MetaException
            from thrift.protocol.TBinaryProtocol import TBinaryProtocol
            from thrift.Thrift import TException
            from thrift.transport.TSocket import TSocket
            from thrift.transport.TTransport import TBufferedTransport, TTransportException
        except ImportError as exc:
            raise NotInstalledError("the thrift client of the Hive Metastore", "iceberg") from exc
        place = urlsplit(self.uri)
        connection = TSocket(place.hostname, place.port)
        connection.setTimeout(_TIMEOUT_S * 1000)
        transport = TBufferedTransport(connection)
        try:
            transport.open()
            yield Client(TBinaryProtocol(transport))
        except (TTransportException, OSError) as exc:
            raise CatalogUnreachableError(
                f"The Hive Metastore does not answer at {self.uri}: {exc}.",
                "Start it: lake up hive (lake status shows what runs). Another address: catalog.uri.",
            ) from exc
        except MetaException as exc:
            raise CatalogError(f"The Hive Metastore at {self.uri} refused: {exc.message}", "lake logs hive") from exc
        except TException as exc:
            raise CatalogError(f"The Hive Metastore at {self.uri} failed: {exc}", "lake logs hive") from exc
        finally:
            transport.close()


def kind_of(entry: Any) -> str:
    """The format of a table as whoever made the entry wrote it down: `iceberg`, `hudi` or nothing, for views as well."""
    told = entry.parameters or {}
    named = (told.get("table_type", "").lower(), told.get("spark.sql.sources.provider", "").lower())
    return next((kind for kind in ("iceberg", "hudi") if kind in named), "")


def entry_of(client: Any, table: TableName) -> Any:
    """A table's entry, or None."""
    return next(iter(objects(client, table.namespace, [table.table])), None)


def objects(client: Any, namespace: str, names: Sequence[str]) -> list[Any]:
    """The entries of several tables of one database, those that there are."""
    from hive_metastore.ttypes import UnknownDBException
    from thrift.Thrift import TApplicationException

    try:
        return list(client.get_table_objects_by_name(namespace, list(names))) if names else []
    except (UnknownDBException, TApplicationException):
        if namespace in client.get_all_databases():
            raise
        return []  # of a database that is not there, the metastore says only that something went wrong


def alter(client: Any, table: TableName, entry: Any) -> None:
    """Put an entry in the place of a table's."""
    from hive_metastore.ttypes import EnvironmentContext

    # Otherwise the metastore would list the table's folder to count its files.
    context = EnvironmentContext(properties={"DO_NOT_UPDATE_STATS": "true"})
    client.alter_table_with_environment_context(table.namespace, table.table, entry, context)


def rename(client: Any, entry: Any, to: TableName) -> None:
    """Give a table another name; its files stay where they are."""
    start = TableName(entry.dbName, entry.tableName)
    if entry.tableType != "EXTERNAL_TABLE":
        # The files of a table that was Hive's own are moved along with the name, so it must not be that any more.
        entry.tableType, entry.parameters["EXTERNAL"] = "EXTERNAL_TABLE", "TRUE"
        alter(client, start, entry)
    entry.dbName, entry.tableName = to.namespace, to.table
    alter(client, start, entry)


@contextmanager
def locked(client: Any, table: TableName) -> Iterator[None]:
    """The lock that every writer of Iceberg takes for a commit."""
    from hive_metastore.ttypes import (
        CheckLockRequest,
        LockComponent,
        LockLevel,
        LockRequest,
        LockState,
        LockType,
        UnlockRequest,
    )

    part = LockComponent(
        type=LockType.EXCLUSIVE,
        level=LockLevel.TABLE,
        dbname=table.namespace,
        tablename=table.table,
        isTransactional=True,
    )
    lock = client.lock(LockRequest(component=[part], user=getpass.getuser(), hostname=socket.gethostname()))
    try:
        for _ in range(_LOCK_TRIES):
            if lock.state == LockState.ACQUIRED:
                break
            time.sleep(_LOCK_PAUSE_S)
            lock = client.check_lock(CheckLockRequest(lockid=lock.lockid))
        else:
            raise CatalogBusyError(f"Others kept {table} locked in the Hive Metastore.", "Try again.")
        yield
    finally:
        client.unlock(UnlockRequest(lockid=lock.lockid))
